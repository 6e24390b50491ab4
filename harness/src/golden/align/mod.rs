//! Which line of a golden belongs to which line of a capture.
//!
//! What is expected becomes a small [`program`]. [`follow`] runs it over the capture and finds, in
//! one pass, whether there is an alignment without a line left over: that alone is the verdict on
//! shape. When there is none, [`nearest`] finds one with few lines left over, for showing.
//! Names are left aside here.

mod follow;
mod nearest;
mod program;

use super::select::Row;
use crate::normalise::{Format, Token};

pub(super) use program::Program;

/// The lines of a capture, with their tokens at hand.
pub(super) struct Lines<'c> {
    texts: &'c [&'c [u8]],
    format: Format,
}

impl<'c> Lines<'c> {
    pub(super) fn new(texts: &'c [&'c [u8]], format: Format) -> Lines<'c> {
        Lines { texts, format }
    }

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }

    pub(super) fn text(&self, line: usize) -> &'c [u8] {
        self.texts[line]
    }

    pub(super) fn tokens(&self, line: usize) -> Vec<Token> {
        self.format.tokens(self.texts[line])
    }

    /// Whether a line has the shape of a row.
    fn fits(&self, row: &Row<'_>, line: usize) -> bool {
        // A line without holes needs no tokens, and most lines of most goldens are such.
        match row.pattern.as_literal() {
            Some(literal) => literal == self.texts[line],
            None => row.pattern.matches(self.texts[line], &self.tokens(line)),
        }
    }
}

/// One step of an alignment. Lines of the capture count from 0.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'g> {
    /// The row and the line belong together.
    Both(Row<'g>, usize),
    /// Nothing in the capture belongs to the golden's line of this number.
    GoldenOnly(usize),
    /// Nothing in the golden belongs to the line.
    LineOnly(usize),
    /// The line is passed over by `#@ any`.
    Passed(usize),
}

/// The alignment of a program with a capture, and whether no line is left over.
pub(super) fn align<'g>(program: &Program<'g>, lines: &Lines<'_>) -> (Vec<Step<'g>>, bool) {
    match follow::follow(program, lines) {
        Some(steps) => (steps, true),
        None => (nearest::nearest(program, lines), false),
    }
}

/// For each row the line that it takes when rows may stand in any order, as far as that goes.
fn assign(rows: &[Row<'_>], from: usize, to: usize, lines: &Lines<'_>) -> Vec<Option<usize>> {
    let mut row_of: Vec<Option<usize>> = vec![None; to - from];
    for row in 0..rows.len() {
        let mut tried = vec![false; to - from];
        augment(rows, row, from, lines, &mut row_of, &mut tried);
    }
    let mut line_of = vec![None; rows.len()];
    for (at, row) in row_of.iter().enumerate() {
        if let Some(row) = row {
            line_of[*row] = Some(from + at);
        }
    }
    line_of
}

/// Find a line for `row`, moving other rows to other lines where that makes room.
fn augment(
    rows: &[Row<'_>],
    row: usize,
    from: usize,
    lines: &Lines<'_>,
    row_of: &mut [Option<usize>],
    tried: &mut [bool],
) -> bool {
    for at in 0..row_of.len() {
        if tried[at] || !lines.fits(&rows[row], from + at) {
            continue;
        }
        tried[at] = true;
        let free = match row_of[at] {
            None => true,
            Some(other) => augment(rows, other, from, lines, row_of, tried),
        };
        if free {
            row_of[at] = Some(row);
            return true;
        }
    }
    false
}
