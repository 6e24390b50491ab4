//! Known faults of the kernel that a case excuses, while its golden holds the right text.

use std::collections::BTreeSet;

use crate::golden::{Comparison, Condition, Edit, Facts};
use crate::qemu::Complaint;

/// Lines of a golden that a known fault touches.
#[derive(Debug, Clone)]
pub struct Excuse {
    /// Its line in the case's file, from 1.
    pub line: usize,
    /// The capture.
    pub capture: String,
    /// The golden's lines, from 1.
    pub lines: BTreeSet<usize>,
    /// The kernels and guests that have the fault; all without it.
    pub when: Option<Condition>,
    /// What is wrong, and since when.
    pub reason: String,
}

/// A known fault of which the kernel complains.
#[derive(Debug, Clone)]
pub struct ExpectedComplaint {
    /// Its line in the case's file, from 1.
    pub line: usize,
    /// How it complains.
    pub kind: ComplaintKind,
    /// A function that the console's report must name.
    pub symbol: Option<String>,
    /// The kernels and guests that have the fault; all without it.
    pub when: Option<Condition>,
    /// What is wrong, and since when.
    pub reason: String,
}

/// How the kernel complains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComplaintKind {
    /// It panics.
    Panic,
    /// It dies of an oops, on which it panics.
    Oops,
    /// It warns and goes on.
    Warning,
}

impl ComplaintKind {
    /// All of them, by the words that case files use.
    pub const ALL: [(&'static str, ComplaintKind); 3] =
        [("panic", ComplaintKind::Panic), ("oops", ComplaintKind::Oops), ("warning", ComplaintKind::Warning)];
}

impl Excuse {
    /// Whether it counts on a guest.
    pub fn applies(&self, facts: &Facts) -> bool {
        self.when.as_ref().is_none_or(|condition| condition.holds(facts))
    }

    /// Whether one of its lines is missing from the capture: the fault is there.
    pub fn is_needed(&self, comparison: &Comparison) -> bool {
        let touched = |edit: &Edit| matches!(edit, Edit::Missing { golden } if self.lines.contains(golden));
        comparison.edits.iter().any(touched)
    }
}

impl ExpectedComplaint {
    /// Whether it counts on a guest.
    pub fn applies(&self, facts: &Facts) -> bool {
        self.when.as_ref().is_none_or(|condition| condition.holds(facts))
    }

    /// Whether these are its complaints, on this console, and no others. A warning names its function
    /// in its own line; before a death there are many lines.
    pub fn is(&self, complaints: &[Complaint], console: &str) -> bool {
        match self.kind {
            ComplaintKind::Warning => {
                !complaints.is_empty()
                    && complaints
                        .iter()
                        .all(|c| !c.fatal && c.line.starts_with("WARNING: ") && self.is_named_in(&c.line))
            }
            ComplaintKind::Panic | ComplaintKind::Oops => {
                complaints.iter().any(|complaint| complaint.fatal) && self.is_named_in(console)
            }
        }
    }

    /// Whether its function stands in a text of the kernel.
    fn is_named_in(&self, text: &str) -> bool {
        self.symbol.as_ref().is_none_or(|symbol| {
            // `symbol+0x10/0x80`, with no other letter of a name before it.
            let found = format!("{symbol}+0x");
            text.match_indices(&found).any(|(at, _)| {
                !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.')
            })
        })
    }
}

/// Whether every difference is one that the excused `lines` explain: each block of differing lines
/// misses excused lines only, and has no more other lines than it misses.
pub fn explains(lines: &BTreeSet<usize>, comparison: &Comparison) -> bool {
    if comparison.unfinished || !comparison.conflicts.is_empty() || !comparison.violations.is_empty() {
        return false;
    }
    let is_same = |edit: &Edit| matches!(edit, Edit::Same { .. } | Edit::Passed { .. });
    comparison.edits.chunk_by(|a, b| is_same(a) == is_same(b)).filter(|block| !is_same(&block[0])).all(
        |block| {
            let missing: Vec<usize> = block
                .iter()
                .filter_map(|edit| match edit {
                    Edit::Missing { golden } => Some(*golden),
                    _ => None,
                })
                .collect();
            let unexpected = block.len() - missing.len();
            missing.iter().all(|line| lines.contains(line))
                && unexpected <= missing.len()
                && !missing.is_empty()
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(edits: &[Edit]) -> Comparison {
        Comparison {
            edits: edits.to_vec(),
            same_shape: false,
            conflicts: Vec::new(),
            violations: Vec::new(),
            unfinished: false,
        }
    }

    const SAME: Edit = Edit::Same { golden: 2, capture: 1 };
    const MISSING: Edit = Edit::Missing { golden: 3 };
    const OTHER: Edit = Edit::Unexpected { capture: 2 };

    #[test]
    fn an_excuse_explains_its_own_lines_and_nothing_else() {
        let lines = BTreeSet::from([3]);
        assert!(explains(&lines, &comparison(&[SAME, MISSING, OTHER, SAME])));
        assert!(explains(&lines, &comparison(&[MISSING])));
        assert!(!explains(&lines, &comparison(&[SAME, MISSING, OTHER, OTHER])));
        assert!(!explains(&lines, &comparison(&[MISSING, OTHER, SAME, OTHER])));
        assert!(!explains(&lines, &comparison(&[MISSING, Edit::Missing { golden: 4 }, OTHER])));
        assert!(!explains(&lines, &Comparison { unfinished: true, ..comparison(&[MISSING, OTHER]) }));
    }

    fn expected(kind: ComplaintKind, symbol: Option<&str>) -> ExpectedComplaint {
        let symbol = symbol.map(str::to_owned);
        ExpectedComplaint { line: 1, kind, symbol, when: None, reason: String::new() }
    }

    #[test]
    fn a_death_is_told_by_its_symbol() {
        let console = "[    1.0] NIP [c00000000012f070] vpa_dtl_event_add+0x70/0x178";
        let complaints = [Complaint { line: "Kernel panic - not syncing: x".to_owned(), fatal: true }];
        let is = |symbol| expected(ComplaintKind::Oops, symbol).is(&complaints, console);
        assert!(is(None));
        assert!(is(Some("vpa_dtl_event_add")));
        assert!(!is(Some("event_add")));
        assert!(!is(Some("vpa_dtl_event_del")));
        assert!(!expected(ComplaintKind::Panic, None).is(&[], console));
    }

    #[test]
    fn a_warning_is_one_when_it_is_all_that_is_told() {
        let line = |line: &str, fatal| Complaint { line: line.to_owned(), fatal };
        let warning = line("WARNING: kernel/x.c:1 at f+0x1/0x2, CPU#1: sh/1", false);
        let is = |complaints: &[Complaint]| expected(ComplaintKind::Warning, Some("f")).is(complaints, "");
        assert!(is(std::slice::from_ref(&warning)));
        assert!(!is(&[]));
        assert!(!is(&[warning.clone(), line("WARNING: kernel/x.c:2 at g+0x1/0x2, CPU#1: sh/1", false)]));
        assert!(!is(&[warning.clone(), line("BUG: f+0x1/0x2", false)]));
        assert!(!is(&[warning, line("Kernel panic - not syncing: f+0x1/0x2", true)]));
    }
}
