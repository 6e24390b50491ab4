//! An alignment for showing where the exact one would be too large: bounded in time and memory.
//!
//! Myers' greedy diff (An O(ND) Difference Algorithm, 1986), with a row and a line being equal when
//! they fit, pairs plain rows and lines up to a number of differences. What it leaves over is aligned
//! exactly where it is small enough, and is shown as replaced where it is not.

use std::ops::Range;

use super::alignment::Alignment;
use super::lines::Lines;
use super::program::{Op, Program};
use super::select::Row;
use super::table::{fits_a_table, table};

/// After this many differences the rest is shown as replaced. Time and memory grow by its square.
const DIFFERENCES_MAX: usize = 1000;
/// The cells of all tables together that are larger than [`SMALL`].
const CELLS_MAX: usize = 1 << 24;
/// A table of this many cells is always made, so that a small difference is shown as it is.
const SMALL: usize = 65 * 65;

/// Append an alignment of some operations with some lines.
pub(super) fn coarse<'g>(
    program: &Program<'g>,
    lines: &Lines<'_>,
    ops: Range<usize>,
    rest: Range<usize>,
    found: &mut Alignment<'g>,
) {
    let rows = free_rows(program, &ops);
    let mut tokens = Vec::new();
    let fits =
        |x: usize, y: usize| rows[x].is_some_and(|row| lines.fits_with(row, rest.start + y, &mut tokens));
    let runs = runs(rows.len(), rest.len(), fits);
    let mut hunks = Hunks { program, lines, found, op: ops.start, line: rest.start, cells: CELLS_MAX };
    for Run { x, y, length } in runs {
        hunks.flush(ops.start + x, rest.start + y);
        for (at, row) in rows[x..x + length].iter().enumerate() {
            hunks.found.both(*row.expect("a row of a run fits"), rest.start + y + at);
        }
        (hunks.op, hunks.line) = (ops.start + x + length, rest.start + y + length);
    }
    hunks.flush(ops.end, rest.end);
}

/// The rows of operations that take one line each, outside blocks: a block stays whole.
fn free_rows<'p, 'g>(program: &'p Program<'g>, ops: &Range<usize>) -> Vec<Option<&'p Row<'g>>> {
    let mut block_end = ops.start;
    let row = |op: usize| {
        block_end = block_end.max(program.block_end(op).unwrap_or(op));
        program.plain(op).filter(|_| op >= block_end)
    };
    ops.clone().map(row).collect()
}

/// Rows from `x` on and lines from `y` on that belong together.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    x: usize,
    y: usize,
    length: usize,
}

/// The furthest row on each diagonal -d, -d + 2, ..., d, after d differences; `None` where there is
/// none. On diagonal k row x is beside line x - k.
type Furthest = Vec<Option<usize>>;

/// Runs in order, of `n` rows and `m` lines, on a way with the fewest differences; the first part of
/// a way when it has too many.
fn runs(n: usize, m: usize, mut fits: impl FnMut(usize, usize) -> bool) -> Vec<Run> {
    let mut all: Vec<Furthest> = Vec::new();
    for d in 0..=DIFFERENCES_MAX {
        let mut here: Furthest = Vec::with_capacity(d + 1);
        for at in 0..=d {
            let x = all.last().map_or(Some(0), |before| enter(before, at, n, m).map(|(x, _)| x));
            let Some(mut x) = x else {
                here.push(None);
                continue;
            };
            let mut y = line_of(x, d, at);
            while x < n && y < m && fits(x, y) {
                (x, y) = (x + 1, y + 1);
            }
            here.push(Some(x));
            if (x, y) == (n, m) {
                all.push(here);
                return read_back(&all, at, n, m);
            }
        }
        all.push(here);
    }
    let last = all.len() - 1;
    let reach = |at: &usize| all[last][*at].map(|x| x + line_of(x, last, *at));
    let best = (0..=last).max_by_key(reach).unwrap_or(0);
    read_back(&all, best, n, m)
}

/// The line beside row `x` on the diagonal of index `at` after `d` differences, which is 2 at - d.
fn line_of(x: usize, d: usize, at: usize) -> usize {
    x + d - 2 * at
}

/// The row at which the diagonal of index `at` is entered after one difference more, and the index
/// that its diagonal had before.
fn enter(before: &Furthest, at: usize, n: usize, m: usize) -> Option<(usize, usize)> {
    let d = before.len();
    // A row is left over: one diagonal up.
    let row = at.checked_sub(1).and_then(|from| Some((before[from]? + 1, from))).filter(|(x, _)| *x <= n);
    // A line is left over.
    let line = before.get(at).and_then(|x| Some(((*x)?, at))).filter(|(x, _)| line_of(*x, d, at) <= m);
    // Of two that come as far a row is left over first.
    match (row, line) {
        (Some(row), Some(line)) => Some(if row.0 > line.0 { row } else { line }),
        (row, line) => row.or(line),
    }
}

fn read_back(all: &[Furthest], mut at: usize, n: usize, m: usize) -> Vec<Run> {
    let mut runs = Vec::new();
    for d in (0..all.len()).rev() {
        let Some(end) = all[d][at] else { break };
        let entered = if d == 0 { Some((0, 0)) } else { enter(&all[d - 1], at, n, m) };
        let Some((start, before)) = entered else { break };
        if end > start {
            runs.push(Run { x: start, y: line_of(start, d, at), length: end - start });
        }
        at = before;
    }
    runs.reverse();
    runs
}

/// Hunks between pairs that belong together.
struct Hunks<'p, 'g, 'c> {
    program: &'p Program<'g>,
    lines: &'p Lines<'c>,
    found: &'p mut Alignment<'g>,
    /// The first operation and the first line that are not aligned yet.
    op: usize,
    line: usize,
    cells: usize,
}

impl Hunks<'_, '_, '_> {
    /// Align everything before an operation and a line.
    fn flush(&mut self, op: usize, line: usize) {
        let (ops, rest) = (self.op..op, self.line..line);
        let cells = (ops.len() + 1).saturating_mul(rest.len() + 1);
        if cells == 1 {
            return;
        }
        if cells <= SMALL || (fits_a_table(&ops, &rest) && cells <= self.cells) {
            self.cells = self.cells.saturating_sub(cells);
            table(self.program, self.lines, ops, rest, self.found);
        } else {
            self.replaced(ops, rest);
        }
    }

    /// All lines of both sides as left over; of a known bug the right part.
    fn replaced(&mut self, ops: Range<usize>, rest: Range<usize>) {
        let mut op = ops.start;
        while op < ops.end {
            match &self.program.ops[op] {
                Op::Line(row) => self.found.missing(row.line),
                Op::One(golden) => self.found.missing(*golden),
                Op::Unordered(rows) => rows.iter().for_each(|row| self.found.missing(row.line)),
                // What may be left out is.
                Op::Enter { .. } => op = self.program.block_end(op).unwrap_or(op + 1) - 1,
                Op::Fork { bug, right } => {
                    self.found.enter(*bug, false);
                    op = right - 1;
                }
                Op::Leave => self.found.leave(),
                _ => {}
            }
            op += 1;
        }
        rest.for_each(|line| self.found.unexpected(line));
    }
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;
    use formats::Format;
    use proptest::prelude::*;

    use super::*;
    use crate::{Bindings, Edit, Facts, Golden, compare};

    /// The golden's lines that are missing and the capture's that are unexpected, when `change` is
    /// made to a capture that is too long for one table.
    fn left_over(change: impl Fn(&mut Vec<String>)) -> (Vec<usize>, Vec<usize>) {
        let mut golden = "#@ golden v1\n#@ optional \"it may be\"\nfirst\n".to_owned();
        let mut capture = Vec::new();
        for line in 0..6000 {
            if line == 3000 {
                golden.push_str("#@ optional \"it may be\"\nmiddle\n#@ repeat 0..\nagain\n#@ end\n");
            }
            golden.push_str(&format!("event {} pid={{{{n}}}} {line}\n", line % 7));
            capture.push(format!("event {} pid={} {line}\n", line % 7, line * 3));
        }
        let golden = Golden::parse(Utf8Path::new("g"), golden.as_bytes()).expect("valid");
        let verdict = |capture: &[String]| {
            let text = capture.concat();
            compare(&golden, text.as_bytes(), Format::Plain, &Facts::default(), &mut Bindings::new())
        };
        assert!(verdict(&capture).passes());
        change(&mut capture);
        let found = verdict(&capture);
        assert!(!found.passes());
        let missing = |edit: &Edit| if let Edit::Missing { golden } = edit { Some(*golden) } else { None };
        let unexpected =
            |edit: &Edit| if let Edit::Unexpected { capture } = edit { Some(*capture) } else { None };
        let edits = &found.edits;
        (edits.iter().filter_map(missing).collect(), edits.iter().filter_map(unexpected).collect())
    }

    #[test]
    fn changes_far_apart_cost_their_own_lines() {
        let found = left_over(|capture| {
            capture.insert(5000, "more\n".to_owned());
            capture[3500] = "changed\n".to_owned();
            capture[3502] = "changed\n".to_owned();
            capture.drain(1000..1003);
            capture.insert(10, "more\n".to_owned());
        });
        // Line 4 of the golden is the first event's; five lines of directives and what they are
        // about are before the 3000th.
        assert!(found.0.len() < 20, "{} lines are missing", found.0.len());
        assert_eq!(found, (vec![1004, 1005, 1006, 3509, 3511], vec![11, 3499, 3501, 4999]));
    }

    #[test]
    fn moved_block_costs_its_own_lines_twice() {
        let (missing, unexpected) = left_over(|capture| {
            let block: Vec<String> = capture.drain(3600..3800).collect();
            capture.splice(5000..5000, block);
            capture.remove(100);
        });
        assert_eq!(missing.len(), 201);
        assert_eq!(unexpected.len(), 200);
    }

    #[test]
    fn reversed_lines_cost_no_others() {
        let (missing, unexpected) = left_over(|capture| capture[3100..5900].reverse());
        assert_eq!((missing.len(), unexpected.len()), (2800, 2800));
    }

    #[test]
    fn more_differences_than_are_searched_are_bounded_work() {
        let mut tried = 0_usize;
        let found = runs(1_000_000, 1_000_000, |_, _| {
            tried += 1;
            false
        });
        assert_eq!(found, []);
        assert!(tried <= (DIFFERENCES_MAX + 1) * (DIFFERENCES_MAX + 1), "{tried}");
    }

    proptest! {
        #[test]
        fn runs_are_a_longest_common_subsequence(
            a in prop::collection::vec(0_u8..4, 0..30),
            b in prop::collection::vec(0_u8..4, 0..30),
        ) {
            let found = runs(a.len(), b.len(), |x, y| a[x] == b[y]);
            let (mut x, mut y, mut common) = (0, 0, 0);
            for run in found {
                prop_assert!(run.x >= x && run.y >= y);
                (x, y) = (run.x + run.length, run.y + run.length);
                prop_assert_eq!(&a[run.x..x], &b[run.y..y]);
                common += run.length;
            }
            let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
            for i in (0..a.len()).rev() {
                for j in (0..b.len()).rev() {
                    let skip = table[i + 1][j].max(table[i][j + 1]);
                    table[i][j] = if a[i] == b[j] { skip.max(table[i + 1][j + 1] + 1) } else { skip };
                }
            }
            prop_assert_eq!(common, table[0][0]);
        }
    }
}
