//! Which line of a golden belongs to which line of a capture.
//!
//! What is expected becomes a small [`Program`]. [`follow`] runs it over the capture and finds, in
//! one pass, whether there is an alignment without a line left over: that alone is the verdict on
//! shape. When there is none, [`approximate`] finds one with few lines left over, for showing.
//! What names mean is left aside here.

use super::approximate::approximate;
use super::compare::Edit;
use super::lines::Lines;
use super::matcher::follow;
use super::prefix::prefix;
use super::program::Program;
use super::select::Row;

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
    pub(super) fn both(&mut self, row: Row<'g>, line: usize) {
        self.edits.push(Edit::Same { golden: row.line, capture: line + 1 });
        if row.pattern.has_names() {
            self.named.push((row, line));
        }
    }

    /// Nothing in the capture belongs to the golden's line of this number.
    pub(super) fn missing(&mut self, golden: usize) {
        self.edits.push(Edit::Missing { golden });
    }

    /// Nothing in the golden belongs to the line.
    pub(super) fn unexpected(&mut self, line: usize) {
        self.edits.push(Edit::Unexpected { capture: line + 1 });
    }

    /// The line is passed over by `#@ any`.
    pub(super) fn ignored(&mut self, line: usize) {
        self.edits.push(Edit::Ignored { capture: line + 1 });
    }
}

/// The alignment of a program with a capture.
pub(super) fn align<'g>(program: &Program<'g>, lines: &Lines<'_>) -> Alignment<'g> {
    let edits = Vec::with_capacity(lines.len());
    let mut found = Alignment { edits, named: Vec::new(), same_shape: true };
    let head = prefix(program, lines, &mut found);
    found.same_shape = follow(program, lines, head, &mut found);
    if !found.same_shape {
        approximate(program, lines, head, &mut found);
    }
    found
}
