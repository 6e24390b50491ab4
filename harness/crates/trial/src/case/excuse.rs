//! Known faults of the kernel that a case excuses, while its golden holds the right text.

use std::collections::BTreeSet;

use regex::bytes::Regex;

use golden::{Comparison, Condition, Edit, Facts};

/// Lines of a golden that a known fault touches.
#[derive(Debug, Clone)]
pub struct Excuse {
    /// Its line in the case's file, from 1.
    pub line: usize,
    /// The capture.
    pub capture: String,
    /// The golden's lines, from 1.
    pub lines: BTreeSet<usize>,
    /// What is found in each line that stands in the place of one of them; any line without it.
    pub instead: Option<Regex>,
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

/// Whether every difference is one that `excuses` explain: each block of differing lines misses excused
/// lines only, has no more other lines than it misses, and these are such as the excuses say. `capture`
/// has the lines that were compared.
pub fn explains(excuses: &[&Excuse], comparison: &Comparison, capture: &[&[u8]]) -> bool {
    if comparison.missing_final_newline
        || !comparison.conflicts.is_empty()
        || !comparison.violations.is_empty()
    {
        return false;
    }
    let is_same = |edit: &Edit| matches!(edit, Edit::Same { .. } | Edit::Ignored { .. });
    let mut blocks = comparison.edits.chunk_by(|a, b| is_same(a) == is_same(b));
    blocks.all(|block| is_same(&block[0]) || explains_block(excuses, block, capture))
}

fn explains_block(excuses: &[&Excuse], block: &[Edit], capture: &[&[u8]]) -> bool {
    let (mut missing, mut unexpected) = (Vec::new(), Vec::new());
    for edit in block {
        match *edit {
            Edit::Missing { golden } => missing.push(golden),
            Edit::Unexpected { capture } => unexpected.push(capture),
            Edit::Same { .. } | Edit::Ignored { .. } => {}
        }
    }
    let excused = |line: &usize| excuses.iter().any(|excuse| excuse.lines.contains(line));
    let concerned = || excuses.iter().filter(|excuse| missing.iter().any(|line| excuse.lines.contains(line)));
    let is_known = |line: &usize| {
        let text = capture.get(line - 1).copied().unwrap_or_default();
        concerned().any(|excuse| excuse.instead.as_ref().is_none_or(|instead| instead.is_match(text)))
    };
    !missing.is_empty()
        && unexpected.len() <= missing.len()
        && missing.iter().all(excused)
        && unexpected.iter().all(is_known)
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
            missing_final_newline: false,
            known_bugs: Vec::new(),
        }
    }

    const SAME: Edit = Edit::Same { golden: 2, capture: 1 };
    const MISSING: Edit = Edit::Missing { golden: 3 };
    const OTHER: Edit = Edit::Unexpected { capture: 2 };

    fn excuse(lines: &[usize], instead: Option<&str>) -> Excuse {
        Excuse {
            line: 1,
            capture: "out".to_owned(),
            lines: lines.iter().copied().collect(),
            instead: instead.map(|text| Regex::new(text).expect("valid")),
            when: None,
            reason: String::new(),
        }
    }

    #[test]
    fn an_excuse_explains_its_own_lines_and_nothing_else() {
        let excuse = excuse(&[3], None);
        let explains = |comparison: &Comparison| explains(&[&excuse], comparison, &[b"a", b"b"]);
        assert!(explains(&comparison(&[SAME, MISSING, OTHER, SAME])));
        assert!(explains(&comparison(&[MISSING])));
        assert!(!explains(&comparison(&[SAME, MISSING, OTHER, OTHER])));
        assert!(!explains(&comparison(&[MISSING, OTHER, SAME, OTHER])));
        assert!(!explains(&comparison(&[MISSING, Edit::Missing { golden: 4 }, OTHER])));
        assert!(!explains(&Comparison { missing_final_newline: true, ..comparison(&[MISSING, OTHER]) }));
    }

    #[test]
    fn what_stands_there_instead_is_as_the_excuse_says() {
        let (first, second) = (excuse(&[3], Some("^wrong$")), excuse(&[4], Some("^odd$")));
        let block = comparison(&[
            MISSING,
            Edit::Missing { golden: 4 },
            Edit::Unexpected { capture: 1 },
            Edit::Unexpected { capture: 2 },
        ]);
        let both = |one: &[u8], two: &[u8]| explains(&[&first, &second], &block, &[one, two]);
        assert!(both(b"wrong", b"odd") && both(b"odd", b"wrong"));
        assert!(!both(b"wrong", b"new"));
        // The other's words are no excuse for a line of this one alone.
        let alone = comparison(&[MISSING, Edit::Unexpected { capture: 1 }]);
        assert!(explains(&[&first, &second], &alone, &[b"wrong"]));
        assert!(!explains(&[&first, &second], &alone, &[b"odd"]));
        assert!(explains(&[&first, &excuse(&[3], None)], &alone, &[b"anything"]));
    }
}
