//! An alignment with few lines left over, for showing.
//!
//! The common start and end are cut off first. What remains is aligned by dynamic programming when
//! it is small enough. Else, from a difference the nearest place is sought at which both go on
//! together, and only what lies between is aligned so; where there is no such place near by, plain
//! lines are aligned by the diff of another library over classes of equal lines. All of it is
//! bounded: beyond the bounds a block stands as replaced.

use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use super::classes::Classes;
use super::program::{Op, Program};
use super::table::table;
use super::{Alignment, Lines};

/// The largest table of the dynamic program; 4 bytes a cell.
const CELLS_MAX: usize = 1 << 22;
/// The cells of all tables together.
const CELLS_OF_ALL_MAX: usize = CELLS_MAX * 4;
/// How many lines on either side can be left over before both go on together.
const REACH: usize = 64;
/// So many lines must fit one after the other to show that both go on together.
const RUN: usize = 4;
/// How often a line is held against a row in search of such places.
const TRIES_MAX: usize = 1 << 22;
/// The diff by classes takes the square of the differences at worst; after this time it leaves what
/// it has not looked at as replaced.
const DIFF_TIME_MAX: Duration = Duration::from_secs(5);

/// Append an alignment of what follows the first `head` lines, which fit.
pub(super) fn approximate<'g>(
    program: &Program<'g>,
    lines: &Lines<'_>,
    head: usize,
    found: &mut Alignment<'g>,
) {
    let (n, m) = (program.ops.len(), lines.len());
    let both = |op: usize, line: usize| program.plain(op).is_some_and(|row| lines.fits(row, line));
    let tail = (0..(n - head).min(m - head)).take_while(|at| both(n - 1 - at, m - 1 - at)).count();
    let mut search = Search { program, lines, found, tries: TRIES_MAX, cells: CELLS_OF_ALL_MAX };
    search.middle(head..n - tail, head..m - tail);
    search.pairs(n - tail..n, m - tail..m);
}

struct Search<'p, 'g, 'c> {
    program: &'p Program<'g>,
    lines: &'p Lines<'c>,
    found: &'p mut Alignment<'g>,
    tries: usize,
    cells: usize,
}

impl<'g> Search<'_, 'g, '_> {
    /// Plain operations and lines that belong together.
    fn pairs(&mut self, ops: Range<usize>, lines: Range<usize>) {
        for (op, line) in ops.zip(lines) {
            if let Some(row) = self.program.plain(op) {
                self.found.both(*row, line);
            }
        }
    }

    fn middle(&mut self, mut ops: Range<usize>, mut rest: Range<usize>) {
        while !fits_a_table(&ops, &rest) {
            let Some((skipped, passed)) = self.next_run(&ops, &rest) else { break };
            let (op, line) = (ops.start + skipped, rest.start + passed);
            self.hunk(ops.start..op, rest.start..line);
            (ops.start, rest.start) = (op, line);
            while let Some(row) =
                self.program.plain(ops.start).filter(|_| !ops.is_empty() && !rest.is_empty())
            {
                if !self.lines.fits(row, rest.start) {
                    break;
                }
                self.found.both(*row, rest.start);
                ops.start += 1;
                rest.start += 1;
            }
        }
        if !fits_a_table(&ops, &rest) && self.all_plain(&ops) {
            self.by_classes(ops, rest);
        } else {
            self.hunk(ops, rest);
        }
    }

    fn all_plain(&self, ops: &Range<usize>) -> bool {
        ops.clone().all(|op| self.program.plain(op).is_some())
    }

    /// How many operations and lines lie before the nearest place from which on both go on together.
    fn next_run(&mut self, ops: &Range<usize>, rest: &Range<usize>) -> Option<(usize, usize)> {
        if ops.is_empty() || rest.is_empty() {
            return None;
        }
        let reach = |side: &Range<usize>| side.len().saturating_sub(RUN).min(REACH);
        let (most_ops, most_lines) = (reach(ops), reach(rest));
        // A block that can be left out or repeated stays whole.
        let mut inside = false;
        let whole: Vec<bool> = self.program.ops[ops.start..=ops.start + most_ops]
            .iter()
            .map(|op| match op {
                Op::Enter { .. } => !std::mem::replace(&mut inside, true),
                Op::Again { .. } => !std::mem::replace(&mut inside, false),
                _ => !inside,
            })
            .collect();
        let mut window = self.lines.window(rest.start);
        for distance in 1..=REACH {
            let few = |most: usize| 0..distance.min(most + 1);
            let mut places: Vec<(usize, usize)> = Vec::new();
            if distance <= most_ops {
                places.extend(few(most_lines).map(|line| (distance, line)));
            }
            if distance <= most_lines {
                places.extend(few(most_ops).map(|op| (op, distance)));
            }
            if distance <= most_ops && distance <= most_lines {
                places.push((distance, distance));
            }
            // Where lines look alike many places will do: the one that leaves as many lines on both
            // sides is likely right.
            places.sort_by_key(|(op, line)| (ops.len() - op).abs_diff(rest.len() - line));
            for (op, line) in places.into_iter().filter(|(op, _)| whole[*op]) {
                let mut fits = |at: usize| {
                    self.tries = self.tries.saturating_sub(1);
                    let row = self.program.plain(ops.start + op + at);
                    row.is_some_and(|row| window.fits(row, rest.start + line + at))
                };
                if (0..RUN).all(&mut fits) {
                    return Some((op, line));
                }
            }
            if self.tries == 0 {
                break;
            }
        }
        None
    }

    /// Some operations and some lines, between those that belong together.
    fn hunk(&mut self, ops: Range<usize>, rest: Range<usize>) {
        let size = (ops.len() + 1).saturating_mul(rest.len() + 1);
        // The least search is always done, so that a small difference is shown as it is.
        if fits_a_table(&ops, &rest) && (size <= self.cells || size <= (REACH + 1) * (REACH + 1)) {
            self.cells = self.cells.saturating_sub(size);
            table(self.program, self.lines, ops, rest, self.found);
        } else {
            self.replaced(ops, rest);
        }
    }

    /// One replaced block.
    fn replaced(&mut self, ops: Range<usize>, rest: Range<usize>) {
        for op in ops {
            match &self.program.ops[op] {
                Op::Line(row) => self.found.missing(row.line),
                Op::Unordered(rows) => rows.iter().for_each(|row| self.found.missing(row.line)),
                _ => {}
            }
        }
        rest.for_each(|line| self.found.unexpected(line));
    }

    /// The diff of plain lines by classes.
    fn by_classes(&mut self, ops: Range<usize>, rest: Range<usize>) {
        let mut classes = Classes::new();
        let rows = ops.clone().filter_map(|op| self.program.plain(op));
        let golden: Vec<u32> = rows.map(|row| classes.insert(row.pattern)).collect();
        let mut unknown = u32::MAX;
        let class = |line: usize| {
            classes.find(self.lines.text(line), &self.lines.tokens(line)).unwrap_or_else(|| {
                unknown -= 1;
                unknown
            })
        };
        let capture: Vec<u32> = rest.clone().map(class).collect();
        drop(classes);
        let deadline = Some(Instant::now() + DIFF_TIME_MAX);
        for op in capture_diff_slices_deadline(Algorithm::Histogram, &golden, &capture, deadline) {
            let (old, new) = (op.old_range(), op.new_range());
            let ops = ops.start + old.start..ops.start + old.end;
            let lines = rest.start + new.start..rest.start + new.end;
            match op {
                DiffOp::Equal { .. } => self.pairs(ops, lines),
                _ => self.hunk(ops, lines),
            }
        }
    }
}

fn fits_a_table(ops: &Range<usize>, lines: &Range<usize>) -> bool {
    (ops.len() + 1).saturating_mul(lines.len() + 1) <= CELLS_MAX
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use crate::{Bindings, Edit, Facts, Golden, compare};
    use formats::Format;

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
        // about stand before the 3000th.
        assert_eq!(found, (vec![1004, 1005, 1006, 3509, 3511], vec![11, 3499, 3501, 4999]));
    }

    #[test]
    fn a_block_that_is_moved_costs_its_own_lines_twice() {
        let (missing, unexpected) = left_over(|capture| {
            let block: Vec<String> = capture.drain(3600..3800).collect();
            capture.splice(5000..5000, block);
            capture.remove(100);
        });
        assert_eq!(missing.len(), 201);
        assert_eq!(unexpected.len(), 200);
    }

    #[test]
    fn lines_that_are_reversed_cost_no_others() {
        let (missing, unexpected) = left_over(|capture| capture[3100..5900].reverse());
        assert_eq!((missing.len(), unexpected.len()), (2799, 2799));
    }
}
