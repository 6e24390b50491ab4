//! Which rows of a comparison are shown: those that differ, with some context.

use std::ops::Range;

use super::rows::{Row, Sign};

/// Rows of context on each side of a difference.
const CONTEXT: usize = 3;
/// Hunks beyond these are counted, not shown.
pub(super) const HUNKS_MAX: usize = 40;
/// Of rows in a row that only one side has, these are shown. A capture may have millions of lines.
pub(super) const RUN_MAX: usize = 100;
/// Rows of all hunks beyond these are counted, not shown.
pub(super) const ROWS_MAX: usize = 1000;

/// A part of what is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    /// A row, by its index.
    Row(usize),
    /// This many rows of the sign are left out here.
    Left(Sign, usize),
    /// The next hunk begins.
    Gap,
    /// This many rows of this hunk are left out at its end.
    Rest(usize),
    /// This many hunks are left out at the end.
    Hunks(usize),
}

/// What is shown of the rows, in order.
pub(super) fn cut(rows: &[Row]) -> Vec<Item> {
    let ranges = ranges(rows);
    let mut items = Vec::new();
    let mut shown = 0;
    for (at, range) in ranges.iter().enumerate() {
        if at == HUNKS_MAX || shown >= ROWS_MAX {
            items.push(Item::Hunks(ranges.len() - at));
            break;
        }
        if at > 0 {
            items.push(Item::Gap);
        }
        shown += hunk(rows, range, ROWS_MAX - shown, &mut items);
    }
    items
}

/// Add a hunk's rows; how many are shown.
fn hunk(rows: &[Row], range: &Range<usize>, room: usize, items: &mut Vec<Item>) -> usize {
    let mut shown = 0;
    let mut at = range.start;
    while at < range.end {
        let sign = rows[at].sign;
        let run = rows[at..range.end].iter().take_while(|row| row.sign == sign).count();
        let fits = run.min(RUN_MAX).min(room - shown);
        items.extend((at..at + fits).map(Item::Row));
        shown += fits;
        if shown == room && at + fits < range.end {
            items.push(Item::Rest(range.end - at - fits));
            return shown;
        }
        if fits < run {
            items.push(Item::Left(sign, run - fits));
        }
        at += run;
    }
    shown
}

/// The hunks as ranges of rows. Those whose contexts meet are one.
fn ranges(rows: &[Row]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (at, _) in rows.iter().enumerate().filter(|(_, row)| row.sign.differs()) {
        let range = at.saturating_sub(CONTEXT)..(at + CONTEXT + 1).min(rows.len());
        match ranges.last_mut() {
            Some(last) if last.end >= range.start => last.end = range.end,
            _ => ranges.push(range),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(signs: &str) -> Vec<Row> {
        let sign = |c| match c {
            '-' => Sign::Golden,
            '+' => Sign::Capture,
            '.' => Sign::Ignored,
            _ => Sign::Both,
        };
        signs.chars().map(|c| Row { sign: sign(c), golden: Some(1), capture: Some(1) }).collect()
    }

    #[test]
    fn hunks_with_contexts_that_meet_are_one() {
        let whole = |n: usize| (0..n).map(Item::Row).collect::<Vec<_>>();
        assert_eq!(cut(&rows("-======-")), whole(8));
        assert_eq!(cut(&rows("-=======-")).iter().filter(|item| **item == Item::Gap).count(), 1);
        assert_eq!(cut(&rows("====")), []);
        assert_eq!(cut(&rows("")), []);
    }

    #[test]
    fn long_run_is_cut_and_counted() {
        let items = cut(&rows(&format!("={}={}", "-".repeat(RUN_MAX + 5), "+".repeat(RUN_MAX))));
        assert_eq!(items.len(), 1 + RUN_MAX + 1 + 1 + RUN_MAX);
        assert_eq!(items[RUN_MAX + 1], Item::Left(Sign::Golden, 5));
    }

    #[test]
    fn rows_and_hunks_left_out_at_the_end_are_counted() {
        let items = cut(&rows(&"-+".repeat(ROWS_MAX)));
        assert_eq!(items.len(), ROWS_MAX + 1);
        assert_eq!(items[ROWS_MAX], Item::Rest(ROWS_MAX));
        let items = cut(&rows(&"-=======".repeat(HUNKS_MAX + 2)));
        assert_eq!(items.last(), Some(&Item::Hunks(2)));
    }

    proptest! {
        #[test]
        fn difference_is_shown_or_counted(signs in "([=.]{0,9}[-+]{1,130}){0,60}") {
            let rows = rows(&signs);
            let (mut counted, mut gaps, mut left_out) = (0, 0, 0);
            for item in cut(&rows) {
                match item {
                    Item::Row(_) => counted += 1,
                    Item::Left(_, more) | Item::Rest(more) => counted += more,
                    Item::Gap => gaps += 1,
                    Item::Hunks(more) => left_out = more,
                }
            }
            let hunks = ranges(&rows);
            let begun = hunks.len() - left_out;
            prop_assert_eq!(gaps, begun.saturating_sub(1));
            prop_assert_eq!(counted, hunks[..begun].iter().map(Range::len).sum::<usize>());
            prop_assert!(hunks.is_empty() || begun > 0);
        }
    }
}
