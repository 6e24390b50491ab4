//! The reasons that occur, and how often.

use std::collections::BTreeMap;

use super::lane::Lane;
use super::palette::canonical;

/// Reasons with their counts, the most frequent first.
#[derive(Debug)]
pub(super) struct Legend {
    pub(super) dispatch: Vec<(String, usize)>,
    pub(super) preempt: Vec<(String, usize)>,
}

impl Legend {
    pub(super) fn of(lanes: &[Lane<'_>]) -> Legend {
        let records = || lanes.iter().flat_map(|lane| lane.entries.iter().map(|entry| entry.record));
        Legend {
            dispatch: counts(records().map(|record| &record.dispatch)),
            preempt: counts(records().map(|record| &record.preempt)),
        }
    }
}

fn counts<'r>(reasons: impl Iterator<Item = &'r String>) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for reason in reasons {
        *counts.entry(canonical(reason)).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}
