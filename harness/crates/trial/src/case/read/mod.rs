//! Case files: from YAML to a checked case, or to all errors of the file.

mod capture;
mod steps;
#[cfg(test)]
mod tests;
mod xfail;

use std::collections::BTreeSet;
use std::io;
use std::ops::RangeInclusive;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use diagnostic::{Diagnostic, did_you_mean};
use guest::{GuestName, ModuleSource};
use yaml::{Document, Fields, Node, Reader};

use super::model::{Case, CaseId, Requires};
use super::{names, renamed};

/// Where a case's steps start from without `cwd`.
const CWD: &str = "/sys/kernel/tracing";
/// How long a step may take without `timeout`.
const TIMEOUT: Duration = Duration::from_secs(20);
/// How many bytes a step may print without `output_limit`. A large hist_debug file has 20 KiB.
const OUTPUT_LIMIT: u32 = 8 << 20;
/// The limits that a case may set. What a step prints is kept in memory.
const OUTPUT_LIMITS: RangeInclusive<u64> = 1 << 10..=256 << 20;

const CASE_KEYS: [&str; 10] = [
    "title",
    "document",
    "guests",
    "requires",
    "modules",
    "cwd",
    "timeout",
    "output_limit",
    "steps",
    "xfail",
];

/// Gives a golden's shown name and its bytes for a capture's name.
pub(super) type ReadGolden<'r> = dyn Fn(&str) -> (Utf8PathBuf, io::Result<Vec<u8>>) + 'r;

/// What is known of a case while its file is read.
struct CaseReader<'c> {
    golden_errors: Vec<Diagnostic>,
    captures: BTreeSet<String>,
    /// Whether the case requires perf.
    perf: bool,
    /// Whether a step so far writes a dispatch trace log.
    writes_log: bool,
    read_golden: &'c ReadGolden<'c>,
}

/// What bounds a step.
#[derive(Debug, Clone, Copy)]
struct Limits {
    timeout: Duration,
    output_limit: u32,
}

/// Read a case in `directory`: the case when it can be made out, the names of its captures, and all errors.
pub(super) fn read_case(
    id: &CaseId,
    directory: &Utf8Path,
    file: &Utf8Path,
    document: &Document,
    guests: &[GuestName],
    read_golden: &ReadGolden<'_>,
) -> (Option<Case>, BTreeSet<String>, Vec<Diagnostic>) {
    let mut reader = CaseReader {
        golden_errors: Vec::new(),
        captures: BTreeSet::new(),
        perf: false,
        writes_log: false,
        read_golden,
    };
    let mut r = Reader::new();
    let case = reader.case(&mut r, id, (directory, file), document.root(), guests);
    let mut errors = r.into_errors();
    errors.extend(reader.golden_errors);
    errors.extend(case.iter().flat_map(|case| names::errors(&case.steps)));
    (case, reader.captures, errors)
}

impl CaseReader<'_> {
    fn case(
        &mut self,
        r: &mut Reader,
        id: &CaseId,
        (directory, file): (&Utf8Path, &Utf8Path),
        root: Node<'_>,
        known: &[GuestName],
    ) -> Option<Case> {
        let f = r.fields_with_renames(root, &CASE_KEYS, &renamed::CASE)?;
        let title = f.need(r, "title").and_then(|node| r.line(&node));
        let document = f.optional(r, "document", Reader::line);
        let guests = f.optional(r, "guests", |r, node| guests(r, node, known));
        let requires = f.optional(r, "requires", requires).map(Option::unwrap_or_default);
        self.perf = requires.as_ref().is_some_and(|requires| requires.perf);
        let modules = f.optional(r, "modules", |r, node| ModuleSource::read_list(r, node, directory));
        let cwd = f.optional(r, "cwd", Reader::line);
        let defaults = Limits { timeout: TIMEOUT, output_limit: OUTPUT_LIMIT };
        let limits = limits(r, &f, defaults);
        let steps = f.need(r, "steps").and_then(|node| self.steps(r, &node, limits.unwrap_or(defaults)));
        let expected_splats = f.optional(r, "xfail", |r, node| xfail::xfail(r, node, file, steps.as_deref()));
        limits?;
        Some(Case {
            id: id.clone(),
            title: title?,
            document: document?,
            file: file.to_owned(),
            digest: String::new(),
            guests: guests?.unwrap_or_else(|| known.to_vec()),
            requires: requires?,
            modules: modules?.unwrap_or_default(),
            cwd: cwd?.unwrap_or_else(|| CWD.to_owned()),
            expected_splats: expected_splats?.unwrap_or_default(),
            steps: steps?,
        })
    }
}

/// `timeout` and `output_limit`, of a case or of a step.
fn limits(r: &mut Reader, f: &Fields<'_>, defaults: Limits) -> Option<Limits> {
    let timeout = f.optional(r, "timeout", Reader::duration);
    let output_limit =
        f.optional(r, "output_limit", |r, node| u32::try_from(r.size(node, OUTPUT_LIMITS)?).ok());
    Some(Limits {
        timeout: timeout?.unwrap_or(defaults.timeout),
        output_limit: output_limit?.unwrap_or(defaults.output_limit),
    })
}

fn guests(r: &mut Reader, node: &Node<'_>, known: &[GuestName]) -> Option<Vec<GuestName>> {
    let mut guests = Vec::new();
    for item in r.list(node)? {
        let Some(name) = r.line(&item) else { continue };
        let guest = GuestName::new(&name);
        if !known.contains(&guest) {
            let help = did_you_mean(&name, known.iter().map(GuestName::as_str)).unwrap_or_else(|| {
                let names: Vec<&str> = known.iter().map(GuestName::as_str).collect();
                format!("known: {}", names.join(", "))
            });
            r.report(item.error(format!("unknown guest `{name}`")).with_help(help));
        } else if guests.contains(&guest) {
            r.report(item.error(format!("guest `{name}` is listed twice")));
        } else {
            guests.push(guest);
        }
    }
    if guests.is_empty() {
        r.report(node.error("the list of guests is empty"));
    }
    Some(guests)
}

fn requires(r: &mut Reader, node: &Node<'_>) -> Option<Requires> {
    let mut requires = Requires::default();
    for item in r.list(node)? {
        let Some(word) = r.line(&item) else { continue };
        if word.starts_with("CONFIG_") {
            requires.symbols.push(word);
        } else if word == Requires::PERF {
            requires.perf = true;
        } else if word == Requires::TCG {
            requires.tcg = true;
        } else {
            let bare = word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
            let help = if bare {
                format!("did you mean `CONFIG_{word}`?")
            } else {
                did_you_mean(&word, [Requires::PERF, Requires::TCG])
                    .unwrap_or_else(|| "write a kernel config symbol as CONFIG_NAME, perf or tcg".to_owned())
            };
            r.report(item.error(format!("a case cannot require `{word}`")).with_help(help));
        }
    }
    Some(requires)
}
