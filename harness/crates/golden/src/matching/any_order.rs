//! Rows that may stand in any order.

use std::collections::BTreeSet;
use std::ops::Range;

use super::lines::{Lines, Window};
use super::select::Row;

/// For each line the row that takes it when rows may stand in any order, as far as that goes. Rows
/// that are alike take lines in their own order.
pub(super) fn assign(rows: &[Row<'_>], lines: Range<usize>, all: &Lines<'_>) -> Vec<Option<usize>> {
    let count = lines.len();
    let mut assignment = Assignment {
        rows,
        first: lines.start,
        window: all.window(lines.start),
        row_of: vec![None; count],
        free: (0..count).collect(),
        movable: BTreeSet::new(),
    };
    for row in 0..rows.len() {
        assignment.place(row);
    }
    assignment.row_of
}

/// Rows and the places, from the first line on, that they have so far.
struct Assignment<'r, 'g, 'l, 'c> {
    rows: &'r [Row<'g>],
    first: usize,
    window: Window<'l, 'c>,
    row_of: Vec<Option<usize>>,
    /// Places without a row.
    free: BTreeSet<usize>,
    /// Places whose rows may be moved. From a place at which a search ended in vain none will ever
    /// lead to a free one.
    movable: BTreeSet<usize>,
}

impl Assignment<'_, '_, '_, '_> {
    /// Find a place for `row`, moving other rows to other places where that makes room.
    ///
    /// A search in depth whose stack is a list: one row may move as many others as there are, and
    /// that is more than the thread's stack holds.
    fn place(&mut self, row: usize) {
        // Each row that looks for a place, with the last one that it tried.
        let mut searches: Vec<(usize, Option<usize>)> = vec![(row, None)];
        let mut moved = Vec::new();
        while let Some((row, tried)) = searches.last_mut() {
            let row = &self.rows[*row];
            let mut fits = |place: &&usize| self.window.fits(row, self.first + **place);
            let free = if tried.is_none() { self.free.iter().find(&mut fits).copied() } else { None };
            if let Some(place) = free {
                *tried = free;
                self.free.remove(&place);
                self.movable.insert(place);
                self.movable.extend(moved);
                for (row, place) in searches {
                    if let Some(place) = place {
                        self.row_of[place] = Some(row);
                    }
                }
                return;
            }
            let further = tried.map_or(0, |tried| tried + 1);
            match self.movable.range(further..).find(&mut fits).copied() {
                Some(place) => {
                    *tried = Some(place);
                    self.movable.remove(&place);
                    moved.push(place);
                    searches.extend(self.row_of[place].map(|other| (other, None)));
                }
                None => _ = searches.pop(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use formats::Format;

    use super::*;
    use crate::language::pattern::Pattern;

    fn assigned(patterns: &[&str], lines: &[&str]) -> Vec<Option<usize>> {
        let patterns: Vec<Pattern> = patterns.iter().map(|p| Pattern::parse(p).expect("valid")).collect();
        let rows: Vec<Row<'_>> =
            patterns.iter().enumerate().map(|(line, pattern)| Row { line, pattern }).collect();
        let texts: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
        assign(&rows, 0..texts.len(), &Lines::new(&texts, Format::Plain))
    }

    #[test]
    fn rows_make_room_for_others() {
        assert_eq!(assigned(&["{{word}}", "x"], &["x", "y"]), [Some(1), Some(0)]);
        assert_eq!(assigned(&["{{..}}", "x{{..}}", "xy"], &["xy", "x", "a"]), [Some(2), Some(1), Some(0)]);
        assert_eq!(assigned(&["x", "x", "y"], &["x", "y", "z"]), [Some(0), Some(2), None]);
    }

    #[test]
    fn rows_that_are_alike_take_lines_in_their_own_order() {
        assert_eq!(assigned(&["a", "b", "a"], &["a", "a", "b"]), [Some(0), Some(2), Some(1)]);
    }

    #[test]
    fn many_rows_that_are_alike_are_little_work() {
        const MANY: usize = 20_000;
        let lines = vec!["x 1"; MANY];
        let mut rows = vec!["x {{n}}"; MANY];
        assert!(assigned(&rows, &lines).iter().all(Option::is_some));
        // Rows that find no place are no more work.
        rows.resize(2 * MANY, "x {{n}}");
        assert!(assigned(&rows, &lines).iter().all(Option::is_some));
    }
}
