//! What is expected, as a list of simple operations.

use super::select::{Row, Slot, rows_from};
use crate::language::tree::{Counts, Xfail};

/// One operation. Jumps are to indices of operations, and none leads out of a block.
#[derive(Debug, Clone)]
pub(super) enum Op<'g> {
    /// Take a line that has the row's shape.
    Line(Row<'g>),
    /// Take such a line, or none.
    Optional(Row<'g>),
    /// Take any line; the `#@ any` is at the golden's line of this number.
    One(usize),
    /// Take any line, or none.
    OneOrNone,
    /// Take any number of lines.
    Some,
    /// A block that can be left out: go on, or jump to its end.
    Enter { end: usize },
    /// The end of a block that can be repeated: go on, or jump to its first operation.
    Again { start: usize },
    /// A known bug: go on to its actual part, or jump to its right one. `bug` is its index.
    Fork { bug: usize, right: usize },
    /// The end of a known bug's actual part.
    Jump { to: usize },
    /// The end of a known bug.
    Leave,
    /// The end of blocks in a row, each of which can be left out.
    Join,
    /// Take as many lines as there are rows, in any order.
    Unordered(Vec<Row<'g>>),
}

/// A known bug that the guest's kernel may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bug<'g> {
    /// The golden's line of its directive, from 1.
    pub(super) line: usize,
    pub(super) xfail: &'g Xfail,
}

/// Everything that is expected of a capture.
#[derive(Debug, Default)]
pub(super) struct Program<'g> {
    pub(super) ops: Vec<Op<'g>>,
    pub(super) bugs: Vec<Bug<'g>>,
}

impl<'g> Program<'g> {
    pub(super) fn new(slots: &[Slot<'g>]) -> Program<'g> {
        let count =
            |slot: &Slot<'_>| if let Slot::Lines { patterns, .. } = slot { patterns.len() } else { 1 };
        let ops = Vec::with_capacity(slots.iter().map(count).sum());
        let mut program = Program { ops, bugs: Vec::new() };
        for slot in slots {
            match slot {
                Slot::Lines { line, patterns } => {
                    program.ops.extend(rows_from(*line, patterns).map(Op::Line));
                }
                Slot::Optional(row) => program.ops.push(Op::Optional(*row)),
                Slot::Any { line, counts } => program.any(*line, *counts),
                Slot::Repeat { counts, rows } => program.repeat(*counts, rows),
                Slot::Xfail { line, xfail } => program.xfail(*line, xfail),
                Slot::Unordered { rows } => program.ops.push(Op::Unordered(rows.clone())),
            }
        }
        program
    }

    fn any(&mut self, line: usize, counts: Counts) {
        self.ops.extend((0..counts.least).map(|_| Op::One(line)));
        match counts.most {
            None => self.ops.push(Op::Some),
            Some(most) => self.ops.extend((counts.least..most).map(|_| Op::OneOrNone)),
        }
    }

    fn repeat(&mut self, counts: Counts, rows: &[Row<'g>]) {
        let lines = || rows.iter().map(|row| Op::Line(*row));
        for _ in 0..counts.least {
            self.ops.extend(lines());
        }
        match counts.most {
            None => {
                let start = self.ops.len() + 1;
                self.ops.push(Op::Enter { end: start + rows.len() + 1 });
                self.ops.extend(lines());
                self.ops.push(Op::Again { start });
            }
            Some(most) => {
                let more = most - counts.least;
                let end = self.ops.len() + more * (rows.len() + 1);
                for _ in 0..more {
                    self.ops.push(Op::Enter { end });
                    self.ops.extend(lines());
                }
                self.ops.extend((more > 0).then_some(Op::Join));
            }
        }
    }

    fn xfail(&mut self, line: usize, xfail: &'g Xfail) {
        let rows = |(line, pattern)| Op::Line(Row { line, pattern });
        let right = self.ops.len() + 1 + xfail.actual.len() + 1;
        self.ops.push(Op::Fork { bug: self.bugs.len(), right });
        self.ops.extend(xfail.actual_rows(line).map(rows));
        self.ops.push(Op::Jump { to: right + xfail.right.len() });
        self.ops.extend(xfail.right_rows(line).map(rows));
        self.ops.push(Op::Leave);
        self.bugs.push(Bug { line, xfail });
    }

    /// The row of an operation that takes exactly one line of a given shape.
    pub(super) fn plain(&self, op: usize) -> Option<&Row<'g>> {
        match self.ops.get(op) {
            Some(Op::Line(row)) => Some(row),
            _ => None,
        }
    }

    /// Where the block that begins with an operation ends: the first operation after it.
    pub(super) fn block_end(&self, op: usize) -> Option<usize> {
        match self.ops[op] {
            Op::Enter { end } if matches!(self.ops.get(end), Some(Op::Join)) => Some(end + 1),
            Op::Enter { end } => Some(end),
            Op::Fork { right, .. } => match self.ops[right - 1] {
                Op::Jump { to } => Some(to + 1),
                _ => None,
            },
            _ => None,
        }
    }
}
