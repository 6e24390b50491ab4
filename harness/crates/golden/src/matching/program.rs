//! What is expected, as a list of simple operations.

use super::select::{Row, Slot, rows_from};

/// One operation. Jumps are to indices of operations.
#[derive(Debug, Clone)]
pub(crate) enum Op<'g> {
    /// Take a line that has the row's shape.
    Line(Row<'g>),
    /// Take such a line, or none.
    Optional(Row<'g>),
    /// Take any line; `#@ any` stands in the golden's line of this number.
    One(usize),
    /// Take any line, or none.
    OneOrNone,
    /// Take any number of lines.
    Some,
    /// A block that can be left out: go on, or jump behind its end.
    Enter { end: usize },
    /// The end of a block that can come again: go on, or jump to its first operation.
    Again { start: usize },
    /// Take as many lines as there are rows, in any order.
    Unordered(Vec<Row<'g>>),
}

/// Everything that is expected of a capture.
#[derive(Debug, Default)]
pub(crate) struct Program<'g> {
    pub(super) ops: Vec<Op<'g>>,
}

impl<'g> Program<'g> {
    pub(crate) fn new(slots: &[Slot<'g>]) -> Program<'g> {
        let count =
            |slot: &Slot<'_>| if let Slot::Lines { patterns, .. } = slot { patterns.len() } else { 1 };
        let mut ops = Vec::with_capacity(slots.iter().map(count).sum());
        for slot in slots {
            match slot {
                Slot::Lines { line, patterns } => ops.extend(rows_from(*line, patterns).map(Op::Line)),
                Slot::Optional(row) => ops.push(Op::Optional(*row)),
                Slot::Any { line, least, most } => {
                    ops.extend((0..*least).map(|_| Op::One(*line)));
                    match most {
                        None => ops.push(Op::Some),
                        Some(most) => ops.extend((*least..*most).map(|_| Op::OneOrNone)),
                    }
                }
                Slot::Repeat { least, rows } => {
                    for _ in 0..*least {
                        ops.extend(rows.iter().map(|row| Op::Line(*row)));
                    }
                    let start = ops.len() + 1;
                    ops.push(Op::Enter { end: start + rows.len() + 1 });
                    ops.extend(rows.iter().map(|row| Op::Line(*row)));
                    ops.push(Op::Again { start });
                }
                Slot::Unordered { rows } => ops.push(Op::Unordered(rows.clone())),
            }
        }
        Program { ops }
    }

    /// The row of an operation that takes exactly one line of a given shape.
    pub(super) fn plain(&self, op: usize) -> Option<&Row<'g>> {
        match self.ops.get(op) {
            Some(Op::Line(row)) => Some(row),
            _ => None,
        }
    }
}
