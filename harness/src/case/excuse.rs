//! Known faults of the kernel that a case excuses, while its golden holds the right text.

use std::collections::BTreeSet;

use crate::golden::{Comparison, Condition, Edit, Facts};

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

/// A known fault of which the guest dies.
#[derive(Debug, Clone)]
pub struct ExpectedDeath {
    /// Its line in the case's file, from 1.
    pub line: usize,
    /// A function that the console's report must name.
    pub symbol: Option<String>,
    /// The kernels and guests that have the fault; all without it.
    pub when: Option<Condition>,
    /// What is wrong, and since when.
    pub reason: String,
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

impl ExpectedDeath {
    /// Whether it counts on a guest.
    pub fn applies(&self, facts: &Facts) -> bool {
        self.when.as_ref().is_none_or(|condition| condition.holds(facts))
    }

    /// Whether the console tells of this death.
    pub fn is_told_by(&self, console: &str) -> bool {
        self.symbol.as_ref().is_none_or(|symbol| {
            // `symbol+0x10/0x80`, with no other letter of a name before it.
            let found = format!("{symbol}+0x");
            console.match_indices(&found).any(|(at, _)| {
                !console[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.')
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

    #[test]
    fn a_death_is_told_by_its_symbol() {
        let death = |symbol: Option<&str>| ExpectedDeath {
            line: 1,
            symbol: symbol.map(str::to_owned),
            when: None,
            reason: String::new(),
        };
        let console = "[    1.0] NIP [c00000000012f070] vpa_dtl_event_add+0x70/0x178";
        assert!(death(None).is_told_by(console));
        assert!(death(Some("vpa_dtl_event_add")).is_told_by(console));
        assert!(!death(Some("event_add")).is_told_by(console));
        assert!(!death(Some("vpa_dtl_event_del")).is_told_by(console));
    }
}
