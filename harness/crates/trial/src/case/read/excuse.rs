//! Entries of `xfail:` that excuse lines of a golden.

use std::collections::BTreeSet;

use regex::bytes::Regex;

use crate::case::excuse::Excuse;
use crate::case::model::Step;
use diagnostic::did_you_mean;
use golden::Condition;
use yaml::{Fields, Node, Reader};

pub(super) fn excuse(r: &mut Reader, node: Node<'_>, steps: Option<&[Step]>) -> Option<Excuse> {
    let line = node.line();
    let f = r.fields(node, &["capture", "lines", "instead", "when", "reason"])?;
    let capture = f.need(r, "capture").and_then(|node| Some((r.line(&node)?, node)));
    let lines = f.need(r, "lines").and_then(|node| Some((line_numbers(r, &node)?, node)));
    let instead = instead(r, &f);
    let when = when(r, &f);
    let reason = f.need(r, "reason").and_then(|node| r.line(&node));
    let ((capture, capture_node), (lines, lines_node)) = (capture?, lines?);
    let captures = || steps.unwrap_or_default().iter().filter_map(|step| step.capture.as_ref());
    let Some(found) = captures().find(|known| known.name == capture) else {
        if steps.is_some() {
            let help = did_you_mean(&capture, captures().map(|known| known.name.as_str()));
            let fault = capture_node.error(format!("no step captures `{capture}`"));
            r.report(help.map_or(fault.clone(), |help| fault.with_help(help)));
        }
        return None;
    };
    let held: BTreeSet<usize> = found.golden.patterns().iter().map(|(line, _)| *line).collect();
    if let Some(line) = lines.iter().find(|line| !held.contains(line)) {
        let message = format!("line {line} of `{}` holds no line of the capture", found.golden.file);
        r.report(lines_node.error(message));
    }
    Some(Excuse { line, capture, lines, instead: instead?, when: when?, reason: reason? })
}

/// The outer option is for faults.
#[expect(clippy::option_option, reason = "the two absences differ")]
fn instead(r: &mut Reader, f: &Fields<'_>) -> Option<Option<Regex>> {
    let Some(node) = f.get("instead") else { return Some(None) };
    let text = r.line(&node)?;
    match Regex::new(&text) {
        Ok(regex) => Some(Some(regex)),
        Err(why) => {
            // The last line says what is wrong; those before show where.
            let why = why.to_string();
            let last = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
            r.report(node.error(format!("this regular expression cannot be read: {last}")));
            None
        }
    }
}

/// `[3, 7..9]`
fn line_numbers(r: &mut Reader, node: &Node<'_>) -> Option<BTreeSet<usize>> {
    let mut lines = BTreeSet::new();
    for item in r.list(node)? {
        let Some((from, to)) = item.range() else {
            let fault = item.error("expected the number of a golden's line");
            r.report(fault.with_help("write a number, or a range such as 7..9"));
            return None;
        };
        lines.extend(from..=to);
    }
    if lines.is_empty() {
        r.report(node.error("an excuse for no line"));
    }
    Some(lines)
}

/// The outer option is for faults.
#[expect(clippy::option_option, reason = "the two absences differ")]
fn when(r: &mut Reader, f: &Fields<'_>) -> Option<Option<Condition>> {
    let Some(node) = f.get("when") else { return Some(None) };
    let text = r.line(&node)?;
    match text.parse() {
        Ok(condition) => Some(Some(condition)),
        Err(why) => {
            let fault = node.error(format!("this condition cannot be read: {why}"));
            r.report(fault.with_help("write it as in a golden's `#@ if`, such as kernel >= 7.2"));
            None
        }
    }
}
