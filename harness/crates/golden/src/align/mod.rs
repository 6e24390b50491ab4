//! Which line of a golden belongs to which line of a capture.
//!
//! What is expected becomes a small [`program`]. [`follow`] runs it over the capture and finds, in
//! one pass, whether there is an alignment without a line left over: that alone is the verdict on
//! shape. When there is none, [`nearest`] finds one with few lines left over, for showing.
//! What names mean is left aside here.

mod assign;
mod classes;
mod follow;
mod head;
mod lines;
mod nearest;
mod program;
mod table;

use super::compare::Edit;
use super::select::Row;

pub(super) use lines::Lines;
pub(super) use program::Program;

/// An alignment, as far as it has come.
#[derive(Debug)]
pub(super) struct Alignment<'g> {
    /// Every line of both, in order.
    pub(super) edits: Vec<Edit>,
    /// The rows that name what they hold, each with its line (from 0), in order. They are told from
    /// the others while their patterns are at hand.
    pub(super) named: Vec<(Row<'g>, usize)>,
    /// No line is left over.
    pub(super) same_shape: bool,
}

// Lines of the capture count from 0 here, and from 1 in an edit.
impl<'g> Alignment<'g> {
    /// The row and the line belong together.
    fn both(&mut self, row: Row<'g>, line: usize) {
        self.edits.push(Edit::Same { golden: row.line, capture: line + 1 });
        if row.pattern.has_names() {
            self.named.push((row, line));
        }
    }

    /// Nothing in the capture belongs to the golden's line of this number.
    fn missing(&mut self, golden: usize) {
        self.edits.push(Edit::Missing { golden });
    }

    /// Nothing in the golden belongs to the line.
    fn unexpected(&mut self, line: usize) {
        self.edits.push(Edit::Unexpected { capture: line + 1 });
    }

    /// The line is passed over by `#@ any`.
    fn passed(&mut self, line: usize) {
        self.edits.push(Edit::Passed { capture: line + 1 });
    }
}

/// The alignment of a program with a capture.
pub(super) fn align<'g>(program: &Program<'g>, lines: &Lines<'_>) -> Alignment<'g> {
    let edits = Vec::with_capacity(lines.len());
    let mut found = Alignment { edits, named: Vec::new(), same_shape: true };
    let head = head::head(program, lines, &mut found);
    found.same_shape = follow::follow(program, lines, head, &mut found);
    if !found.same_shape {
        nearest::nearest(program, lines, head, &mut found);
    }
    found
}
