//! Case files.

mod capture;
mod excuse;
mod steps;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::model::{Case, CaseId, Requires};
use super::names;
use diagnostic::{Diagnostic, did_you_mean};
use guest::{GuestName, ModuleSource};
use yaml::{Document, Node, Reader};

/// Where a case's steps start from when it does not say.
const CWD: &str = "/sys/kernel/tracing";
/// How long a step may take when neither it nor its case says.
const TIMEOUT: Duration = Duration::from_secs(20);

const CASE_KEYS: [&str; 10] =
    ["title", "document", "guests", "requires", "modules", "directory", "limit", "steps", "xfail", "expect"];

/// Gives a golden's shown name and its bytes for a capture's name.
pub(super) type ReadGolden<'r> = dyn Fn(&str) -> (Utf8PathBuf, io::Result<Vec<u8>>) + 'r;

struct Context<'c> {
    reader: Reader,
    golden_faults: Vec<Diagnostic>,
    captures: BTreeSet<String>,
    /// Whether the case requires perf.
    perf: bool,
    read_golden: &'c ReadGolden<'c>,
}

/// Read a case in `folder`: the case when it can be made out, the names of its captures, and all
/// faults.
pub(super) fn read_case(
    id: &CaseId,
    folder: &Utf8Path,
    file: &Utf8Path,
    document: &Document,
    guests: &[GuestName],
    read_golden: &ReadGolden<'_>,
) -> (Option<Case>, BTreeSet<String>, Vec<Diagnostic>) {
    let mut context = Context {
        reader: Reader::new(),
        golden_faults: Vec::new(),
        captures: BTreeSet::new(),
        perf: false,
        read_golden,
    };
    let case = context.case(id, (folder, file), document.root(), guests);
    let mut faults = context.reader.into_errors();
    faults.extend(context.golden_faults);
    faults.extend(case.iter().flat_map(|case| names::faults(&case.steps)));
    (case, context.captures, faults)
}

impl Context<'_> {
    fn case(
        &mut self,
        id: &CaseId,
        (folder, file): (&Utf8Path, &Utf8Path),
        root: Node<'_>,
        known: &[GuestName],
    ) -> Option<Case> {
        let f = self.reader.fields(root, &CASE_KEYS)?;
        let title = f.need(&mut self.reader, "title").and_then(|node| self.reader.line(&node));
        let document = f.get("document").map(|node| self.reader.line(&node));
        let guests = match f.get("guests") {
            Some(node) => self.guests(&node, known),
            None => Some(known.to_vec()),
        };
        let requires = f.get("requires").map_or(Some(Requires::default()), |node| self.requires(&node));
        self.perf = requires.as_ref().is_some_and(|requires| requires.perf);
        let modules = match f.get("modules") {
            Some(node) => ModuleSource::read_list(&mut self.reader, &node, folder),
            None => Some(Vec::new()),
        };
        let cwd = f.get("directory").map_or(Some(CWD.to_owned()), |node| self.reader.line(&node));
        let timeout = f.get("limit").map_or(Some(TIMEOUT), |node| self.reader.duration(&node));
        let steps =
            f.need(&mut self.reader, "steps").and_then(|node| self.steps(&node, timeout.unwrap_or(TIMEOUT)));
        let xfail = f.get("xfail").map_or(Some(Vec::new()), |node| self.excuses(&node, steps.as_deref()));
        let expected = f.get("expect").map(|node| self.expected_complaint(node));
        Some(Case {
            id: id.clone(),
            title: title?,
            document: document.flatten(),
            file: file.to_owned(),
            digest: String::new(),
            guests: guests?,
            requires: requires?,
            modules: modules?,
            cwd: cwd?,
            xfail: xfail?,
            expected: expected.flatten(),
            steps: steps?,
        })
    }

    fn guests(&mut self, node: &Node<'_>, known: &[GuestName]) -> Option<Vec<GuestName>> {
        let mut guests = Vec::new();
        for item in self.reader.list(node)? {
            let Some(name) = self.reader.line(&item) else { continue };
            let guest = GuestName::new(&name);
            if !known.contains(&guest) {
                let help = did_you_mean(&name, known.iter().map(GuestName::as_str)).unwrap_or_else(|| {
                    let names: Vec<&str> = known.iter().map(GuestName::as_str).collect();
                    format!("known guests: {}", names.join(", "))
                });
                self.reader.report(item.error(format!("unknown guest `{name}`")).with_help(help));
            } else if guests.contains(&guest) {
                self.reader.report(item.error(format!("guest `{name}` is named twice")));
            } else {
                guests.push(guest);
            }
        }
        if guests.is_empty() {
            self.reader.report(node.error("the case would run on no guest"));
        }
        Some(guests)
    }

    fn requires(&mut self, node: &Node<'_>) -> Option<Requires> {
        let mut requires = Requires::default();
        for item in self.reader.list(node)? {
            let Some(word) = self.reader.line(&item) else { continue };
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
                    did_you_mean(&word, [Requires::PERF, Requires::TCG]).unwrap_or_else(|| {
                        "write a kernel config symbol as CONFIG_NAME, perf or tcg".to_owned()
                    })
                };
                self.reader.report(item.error(format!("a case cannot require `{word}`")).with_help(help));
            }
        }
        Some(requires)
    }
}
