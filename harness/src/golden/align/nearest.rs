//! An alignment with few lines left over, for showing.
//!
//! The common start and end are cut off first. What remains is aligned by dynamic programming when
//! it is small enough, else, for a golden of plain lines, by the diff of another library over
//! classes of equal lines, refined by dynamic programming hunk by hunk.

use std::collections::HashMap;
use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::program::{Op, Program};
use super::{Lines, Step, assign};

/// The largest table of the dynamic program; 4 bytes a cell.
const CELLS_MAX: usize = 1 << 22;

pub(super) fn nearest<'g>(program: &Program<'g>, lines: &Lines<'_>) -> Vec<Step<'g>> {
    let (n, m) = (program.ops.len(), lines.len());
    let both = |op: usize, line: usize| program.plain(op).is_some_and(|row| lines.fits(row, line));
    let head = (0..n.min(m)).take_while(|at| both(*at, *at)).count();
    let tail = (0..(n - head).min(m - head)).take_while(|at| both(n - 1 - at, m - 1 - at)).count();
    let step = |op: usize, line: usize| program.plain(op).map(|row| Step::Both(*row, line));
    let mut steps: Vec<Step<'g>> = (0..head).filter_map(|at| step(at, at)).collect();
    let (ops, rest) = (head..n - tail, head..m - tail);
    if fits_a_table(&ops, &rest) {
        table(program, lines, ops, rest, &mut steps);
    } else if ops.clone().all(|op| program.plain(op).is_some()) {
        by_classes(program, lines, ops, rest, &mut steps);
    } else {
        left_over(program, ops, rest, &mut steps);
    }
    steps.extend((0..tail).rev().filter_map(|at| step(n - 1 - at, m - 1 - at)));
    steps
}

fn fits_a_table(ops: &Range<usize>, lines: &Range<usize>) -> bool {
    (ops.len() + 1).saturating_mul(lines.len() + 1) <= CELLS_MAX
}

/// One replaced block.
fn left_over<'g>(program: &Program<'g>, ops: Range<usize>, lines: Range<usize>, steps: &mut Vec<Step<'g>>) {
    for op in ops {
        match &program.ops[op] {
            Op::Line(row) => steps.push(Step::GoldenOnly(row.line)),
            Op::Unordered(rows) => steps.extend(rows.iter().map(|row| Step::GoldenOnly(row.line))),
            _ => {}
        }
    }
    steps.extend(lines.map(Step::LineOnly));
}

/// The diff of plain lines by classes: two lines are of one class when they are equal once what the
/// golden's holes cover is left out. A line belongs to the first class of the golden that it fits.
fn by_classes<'g>(
    program: &Program<'g>,
    lines: &Lines<'_>,
    ops: Range<usize>,
    rest: Range<usize>,
    steps: &mut Vec<Step<'g>>,
) {
    let mut classes: HashMap<String, u32> = HashMap::new();
    let mut wild: Vec<usize> = Vec::new();
    let mut literals: HashMap<&[u8], u32> = HashMap::new();
    let mut golden: Vec<u32> = Vec::with_capacity(ops.len());
    for op in ops.clone() {
        let row = program.plain(op).expect("all are plain");
        let next = u32::try_from(classes.len() + literals.len()).unwrap_or(u32::MAX);
        let class = match row.pattern.as_literal() {
            Some(text) => *literals.entry(text).or_insert(next),
            None => *classes.entry(row.pattern.to_string()).or_insert_with(|| {
                wild.push(op);
                next
            }),
        };
        golden.push(class);
    }
    // Patterns with holes are tried by the text before their first hole.
    let mut by_start: HashMap<&str, Vec<(usize, u32)>> = HashMap::new();
    let mut lengths: Vec<usize> = Vec::new();
    for op in wild {
        let start = program.plain(op).expect("all are plain").pattern.literal_start();
        by_start.entry(start).or_default().push((op, golden[op - ops.start]));
        if !lengths.contains(&start.len()) {
            lengths.push(start.len());
        }
    }
    let mut unknown = u32::MAX;
    let capture: Vec<u32> = rest
        .clone()
        .map(|line| {
            let text = lines.text(line);
            if let Some(class) = literals.get(text) {
                return *class;
            }
            let starts = lengths.iter().filter_map(|length| std::str::from_utf8(text.get(..*length)?).ok());
            for (op, class) in starts.filter_map(|start| by_start.get(start)).flatten() {
                if lines.fits(program.plain(*op).expect("all are plain"), line) {
                    return *class;
                }
            }
            unknown -= 1;
            unknown
        })
        .collect();
    for op in capture_diff_slices(Algorithm::Histogram, &golden, &capture) {
        let (old, new) = (op.old_range(), op.new_range());
        let ops = ops.start + old.start..ops.start + old.end;
        let lines_here = rest.start + new.start..rest.start + new.end;
        match op {
            DiffOp::Equal { .. } => {
                let pairs = ops.zip(lines_here);
                steps.extend(
                    pairs.filter_map(|(op, line)| program.plain(op).map(|row| Step::Both(*row, line))),
                );
            }
            _ if fits_a_table(&ops, &lines_here) => table(program, lines, ops, lines_here, steps),
            _ => left_over(program, ops, lines_here, steps),
        }
    }
}

/// The cheapest alignment of some operations with some lines. A line or a row that is left over
/// costs 1. Jumps stay inside the operations, as blocks are never cut.
fn table<'g>(
    program: &Program<'g>,
    lines: &Lines<'_>,
    ops: Range<usize>,
    rest: Range<usize>,
    steps: &mut Vec<Step<'g>>,
) {
    let table = Table::fill(program, lines, ops, rest);
    table.read(steps);
}

struct Table<'t, 'g, 'c> {
    program: &'t Program<'g>,
    lines: &'t Lines<'c>,
    ops: Range<usize>,
    rest: Range<usize>,
    /// What is left over from operation i and line j on, at j * (ops + 1) + i.
    cost: Vec<u32>,
}

/// What an operation can do at a line: the operation that follows, whether the line is taken, and
/// what is left over by it.
#[derive(Debug, Clone, Copy)]
struct Move {
    next: usize,
    takes: bool,
    cost: u32,
}

impl<'t, 'g, 'c> Table<'t, 'g, 'c> {
    fn fill(
        program: &'t Program<'g>,
        lines: &'t Lines<'c>,
        ops: Range<usize>,
        rest: Range<usize>,
    ) -> Table<'t, 'g, 'c> {
        let (n, m) = (ops.len(), rest.len());
        let mut table = Table { program, lines, ops, rest, cost: vec![u32::MAX; (n + 1) * (m + 1)] };
        for j in (0..=m).rev() {
            // An `Again` looks back to a start that is not known in the first pass.
            for _pass in 0..2 {
                for i in (0..=n).rev() {
                    let best = table.moves(i, j).map(|step| table.after(step, j)).min();
                    table.cost[j * (n + 1) + i] = best.unwrap_or(0);
                }
            }
        }
        table
    }

    fn after(&self, step: Move, j: usize) -> u32 {
        let j = j + usize::from(step.takes);
        self.cost[j * (self.ops.len() + 1) + step.next].saturating_add(step.cost)
    }

    /// Everything that can be done at operation `i` (relative to the first) and line `j`, the
    /// preferred first.
    fn moves(&self, i: usize, j: usize) -> impl Iterator<Item = Move> + use<'g, 'c> {
        let more = j < self.rest.len();
        let fits = |row| more && self.lines.fits(row, self.rest.start + j);
        let take = |next, cost| Some(Move { next, takes: true, cost }).filter(|_| more);
        let skip = |next, cost| Some(Move { next, takes: false, cost });
        let relative = |op: usize| op - self.ops.start;
        let moves = if i == self.ops.len() {
            [take(i, 1), None, None]
        } else {
            match &self.program.ops[self.ops.start + i] {
                Op::Line(row) => [take(i + 1, 0).filter(|_| fits(row)), skip(i + 1, 1), take(i, 1)],
                Op::Optional(row) => [take(i + 1, 0).filter(|_| fits(row)), skip(i + 1, 0), take(i, 1)],
                Op::One(_) => [take(i + 1, 0), skip(i + 1, 1), None],
                Op::OneOrNone => [take(i + 1, 0), skip(i + 1, 0), None],
                Op::Some => [skip(i + 1, 0), take(i, 0), None],
                Op::Enter { end } => [skip(i + 1, 0), skip(relative(*end), 0), None],
                Op::Again { start } => [skip(i + 1, 0), skip(relative(*start), 0), None],
                Op::Unordered(rows) => {
                    let some = rows.iter().any(fits);
                    [take(i, 0).filter(|_| some), skip(i + 1, 0), take(i, 1)]
                }
            }
        };
        moves.into_iter().flatten()
    }

    fn read(&self, steps: &mut Vec<Step<'g>>) {
        let (n, m) = (self.ops.len(), self.rest.len());
        let (mut i, mut j) = (0, 0);
        // Blocks of any order are settled when they are left.
        let mut entered = None;
        // A jump back without a line taken would go round for ever: it is never cheaper.
        while i < n || j < m {
            let here = self.cost[j * (n + 1) + i];
            let op = self.program.ops.get(self.ops.start + i).filter(|_| i < n);
            let chosen = self.moves(i, j).find(|step| self.after(*step, j) == here);
            let Some(step) = chosen else { break };
            let line = self.rest.start + j;
            match op {
                Some(Op::Unordered(rows)) => {
                    let from = *entered.get_or_insert(line);
                    if !step.takes {
                        settle(rows, from, line, self.lines, steps);
                        entered = None;
                    }
                }
                Some(Op::Line(row) | Op::Optional(row)) if step.takes && step.cost == 0 => {
                    steps.push(Step::Both(*row, line));
                }
                Some(Op::Line(row)) if !step.takes => steps.push(Step::GoldenOnly(row.line)),
                Some(Op::One(golden)) if !step.takes => steps.push(Step::GoldenOnly(*golden)),
                Some(Op::One(_) | Op::OneOrNone | Op::Some) if step.takes => steps.push(Step::Passed(line)),
                _ if step.takes => steps.push(Step::LineOnly(line)),
                _ => {}
            }
            i = step.next;
            j += usize::from(step.takes);
        }
    }
}

/// Pair the rows of a block of any order with the lines that it took.
fn settle<'g>(rows: &[super::Row<'g>], from: usize, to: usize, lines: &Lines<'_>, steps: &mut Vec<Step<'g>>) {
    let assigned = assign(rows, from, to, lines);
    for line in from..to {
        match assigned.iter().position(|found| *found == Some(line)) {
            Some(row) => steps.push(Step::Both(rows[row], line)),
            None => steps.push(Step::LineOnly(line)),
        }
    }
    let unmet = rows.iter().zip(&assigned).filter(|(_, line)| line.is_none());
    steps.extend(unmet.map(|(row, _)| Step::GoldenOnly(row.line)));
}
