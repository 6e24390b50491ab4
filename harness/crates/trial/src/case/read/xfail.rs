//! `xfail:` of a case's file: the known bugs that the kernel reports on its console. Those that show in a
//! capture are in its golden.

use camino::Utf8Path;
use golden::Condition;
use guest::KnownMessage;
use vm::SplatKind;
use yaml::{Node, Reader};

use crate::case::model::Step;
use crate::case::renamed;
use crate::case::splat::{ExpectedAt, ExpectedSplat};

/// Keys of an entry that named lines of a golden.
const OF_A_CAPTURE: [&str; 3] = ["capture", "lines", "instead"];

/// Read the list.
pub(super) fn xfail(
    r: &mut Reader,
    node: &Node<'_>,
    file: &Utf8Path,
    steps: Option<&[Step]>,
) -> Option<Vec<ExpectedSplat>> {
    r.each(node, |r, node| {
        if OF_A_CAPTURE.iter().any(|key| node.has(key)) {
            let error = node.error("a known bug that shows in a capture belongs in its golden");
            r.report(error.with_help(
                "write `#@ xfail \"REASON\" if CONDITION`, the right lines, `#@ actual`, the lines that the \
                 kernel prints, `#@ end`",
            ));
            return None;
        }
        splat(r, node, file, steps)
    })
}

/// `{splat: KIND, symbol: FUNCTION, message: PATTERN, step: N or any, if: CONDITION, reason: TEXT}`
fn splat(r: &mut Reader, node: Node<'_>, file: &Utf8Path, steps: Option<&[Step]>) -> Option<ExpectedSplat> {
    let line = node.line();
    let f = r.fields_with_renames(
        node,
        &["splat", "symbol", "message", "step", "if", "reason"],
        &renamed::XFAIL,
    )?;
    let kind_node = f.need(r, "splat");
    let kind = kind_node.as_ref().and_then(|node| r.choice(node, "splat", &SplatKind::ALL));
    let symbol = f.optional(r, "symbol", Reader::line);
    let pattern = f.optional(r, "message", guest::read_message_pattern);
    match (&kind_node, kind, &symbol, &pattern) {
        (Some(node), Some(SplatKind::Oops | SplatKind::Warning), Some(None), _) => {
            let error = node.error("an oops or a warning is identified by its function");
            r.report(error.with_help(
                "add `symbol: FUNCTION`, as the report names it after RIP, NIP or `WARNING: ... at`",
            ));
        }
        (Some(node), Some(kind), Some(None), Some(None)) => {
            let error = node.error(format!("any {kind} would be the expected one"));
            r.report(
                error.with_help("add `symbol: FUNCTION`, or `message: PATTERN` for the report's own line"),
            );
        }
        _ => {}
    }
    let last = steps.map_or(u64::MAX, |steps| steps.len() as u64);
    let step = f.optional(r, "step", |r, node| expected_at(r, node, last));
    let condition = f.optional(r, "if", condition);
    let reason = f.need(r, "reason").and_then(|node| r.line(&node));
    let reason = reason?;
    let message = |pattern| KnownMessage { pattern, reason: reason.clone(), sometimes: false, line };
    Some(ExpectedSplat {
        file: file.to_owned(),
        line,
        kind: kind?,
        symbol: symbol?,
        message: pattern?.map(message),
        step: step?.unwrap_or(ExpectedAt::Last),
        condition: condition?,
        reason,
    })
}

/// The number of a step from 1 to `last`, or `any`.
fn expected_at(r: &mut Reader, node: &Node<'_>, last: u64) -> Option<ExpectedAt> {
    if node.is("any") {
        return Some(ExpectedAt::Any);
    }
    usize::try_from(r.number(node, 1..=last)? - 1).ok().map(ExpectedAt::Step)
}

/// A condition as in a golden's `#@ if`.
pub(super) fn condition(r: &mut Reader, node: &Node<'_>) -> Option<Condition> {
    match r.line(node)?.parse() {
        Ok(condition) => Some(condition),
        Err(why) => {
            let error = node.error(format!("invalid condition: {why}"));
            r.report(error.with_help("write it as in a golden's `#@ if`, such as kernel >= 7.2"));
            None
        }
    }
}
