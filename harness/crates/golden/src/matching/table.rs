//! The cheapest alignment of a few operations with a few lines, by dynamic programming.

use std::ops::Range;

use super::alignment::Alignment;
use super::any_order::assign;
use super::lines::{Lines, Window};
use super::program::{Op, Program};
use super::select::Row;

/// The largest table; 4 bytes a cell.
const CELLS_MAX: usize = 1 << 22;

/// Whether the table of N operations and M lines is not too large.
pub(super) fn fits_a_table(ops: &Range<usize>, lines: &Range<usize>) -> bool {
    (ops.len() + 1).saturating_mul(lines.len() + 1) <= CELLS_MAX
}

/// Append the cheapest alignment of some operations with some lines. A line or a row that is left
/// over costs 1. Jumps stay inside the operations, as blocks are never cut.
pub(super) fn table<'g>(
    program: &Program<'g>,
    lines: &Lines<'_>,
    ops: Range<usize>,
    rest: Range<usize>,
    found: &mut Alignment<'g>,
) {
    Table::fill(program, lines, ops, rest).read(found);
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
        // An `Again` looks back to a start that is not known in the first pass.
        let again = program.ops[table.ops.clone()].iter().any(|op| matches!(op, Op::Again { .. }));
        let passes = if again { 2 } else { 1 };
        let mut fits = vec![false; n + 1];
        for j in (0..=m).rev() {
            let mut window = lines.window(table.rest.start + j);
            for (i, fits) in fits[..n].iter_mut().enumerate() {
                *fits = table.fits(&mut window, i, j);
            }
            for _pass in 0..passes {
                for i in (0..=n).rev() {
                    let best = table.moves(i, j, fits[i]).map(|step| table.after(step, j)).min();
                    table.cost[j * (n + 1) + i] = best.unwrap_or(0);
                }
            }
        }
        table
    }

    /// Whether line `j` has the shape of a row of operation `i`.
    fn fits(&self, window: &mut Window<'_, '_>, i: usize, j: usize) -> bool {
        let mut fits = |row| j < self.rest.len() && window.fits(row, self.rest.start + j);
        match &self.program.ops[self.ops.start + i] {
            Op::Line(row) | Op::Optional(row) => fits(row),
            Op::Unordered(rows) => rows.iter().any(fits),
            _ => false,
        }
    }

    fn after(&self, step: Move, j: usize) -> u32 {
        let j = j + usize::from(step.takes);
        self.cost[j * (self.ops.len() + 1) + step.next].saturating_add(step.cost)
    }

    /// Everything that can be done at operation `i` (relative to the first) and line `j`, which fits
    /// or not, the preferred first.
    fn moves(&self, i: usize, j: usize, fits: bool) -> impl Iterator<Item = Move> + use<'g, 'c> {
        let more = j < self.rest.len();
        let take = |next, cost| Some(Move { next, takes: true, cost }).filter(|_| more);
        let skip = |next, cost| Some(Move { next, takes: false, cost });
        let relative = |op: usize| op - self.ops.start;
        let moves = if i == self.ops.len() {
            [take(i, 1), None, None]
        } else {
            match &self.program.ops[self.ops.start + i] {
                Op::Line(_) => [take(i + 1, 0).filter(|_| fits), skip(i + 1, 1), take(i, 1)],
                Op::Optional(_) => [take(i + 1, 0).filter(|_| fits), skip(i + 1, 0), take(i, 1)],
                Op::One(_) => [take(i + 1, 0), skip(i + 1, 1), None],
                Op::OneOrNone => [take(i + 1, 0), skip(i + 1, 0), None],
                Op::Some => [skip(i + 1, 0), take(i, 0), None],
                Op::Enter { end } => [skip(i + 1, 0), skip(relative(*end), 0), None],
                Op::Again { start } => [skip(i + 1, 0), skip(relative(*start), 0), None],
                Op::Fork { right, .. } => [skip(relative(*right), 0), skip(i + 1, 0), None],
                Op::Jump { to } => [skip(relative(*to), 0), None, None],
                Op::Leave | Op::Join => [skip(i + 1, 0), None, None],
                Op::Unordered(_) => [take(i, 0).filter(|_| fits), skip(i + 1, 0), take(i, 1)],
            }
        };
        moves.into_iter().flatten()
    }

    fn read(&self, found: &mut Alignment<'g>) {
        let (n, m) = (self.ops.len(), self.rest.len());
        let mut window = self.lines.window(self.rest.start);
        let (mut i, mut j) = (0, 0);
        // Blocks of any order are settled when they are left.
        let mut entered = None;
        // A jump back without a line taken would go round for ever: it is never cheaper.
        while i < n || j < m {
            let here = self.cost[j * (n + 1) + i];
            let op = self.program.ops.get(self.ops.start + i).filter(|_| i < n);
            let fits = op.is_some() && self.fits(&mut window, i, j);
            let chosen = self.moves(i, j, fits).find(|step| self.after(*step, j) == here);
            let Some(step) = chosen else { break };
            let line = self.rest.start + j;
            match op {
                Some(Op::Unordered(rows)) => {
                    let from = *entered.get_or_insert(line);
                    if !step.takes {
                        settle(rows, from, line, self.lines, found);
                        entered = None;
                    }
                }
                Some(Op::Line(row) | Op::Optional(row)) if step.takes && step.cost == 0 => {
                    found.both(*row, line);
                }
                Some(Op::Fork { bug, .. }) => found.enter(*bug, step.next == i + 1),
                Some(Op::Leave) => found.leave(),
                Some(Op::Line(row)) if !step.takes => found.missing(row.line),
                Some(Op::One(golden)) if !step.takes => found.missing(*golden),
                Some(Op::One(_) | Op::OneOrNone | Op::Some) if step.takes => found.ignored(line),
                _ if step.takes => found.unexpected(line),
                _ => {}
            }
            i = step.next;
            j += usize::from(step.takes);
        }
    }
}

/// Pair the rows of a block of any order with the lines that it took.
fn settle<'g>(rows: &[Row<'g>], from: usize, to: usize, lines: &Lines<'_>, found: &mut Alignment<'g>) {
    let row_of = assign(rows, from..to, lines);
    let mut met = vec![false; rows.len()];
    for (line, row) in (from..to).zip(row_of) {
        match row {
            Some(row) => {
                met[row] = true;
                found.both(rows[row], line);
            }
            None => found.unexpected(line),
        }
    }
    let unmet = rows.iter().zip(met).filter(|(_, met)| !met);
    unmet.for_each(|(row, _)| found.missing(row.line));
}
