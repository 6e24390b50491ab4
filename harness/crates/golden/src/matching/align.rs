//! Which line of a golden belongs to which line of a capture, by their shape alone.
//!
//! Plain lines at the start that leave no choice are paired first: of most captures that is all.
//! [`follow`] then finds, in one pass, whether there is an alignment without a line left over: that
//! alone is the verdict on shape. When there is none, one with few lines left over is made for
//! showing: exact where it is small ([`table`]), coarse where it is not ([`coarse`]). What names
//! mean is not looked at here.

use std::ops::Range;

use super::coarse::coarse;
use super::compare::{Edit, Seen};
use super::lines::Lines;
use super::matcher::{Followed, follow};
use super::program::Program;
use super::select::Row;
use super::table::{fits_a_table, table};

/// Which part of a known bug an alignment has taken.
#[derive(Debug, Clone)]
pub(super) struct TakenPart {
    /// The bug's index in the program.
    pub(super) bug: usize,
    pub(super) is_actual: bool,
    /// Its edits, by their indices in the alignment.
    pub(super) edits: Range<usize>,
}

/// An alignment, as far as it has come.
#[derive(Debug)]
pub(super) struct Alignment<'g> {
    /// Every line of both, in order.
    pub(super) edits: Vec<Edit>,
    /// The rows that name values, each with its line (from 0), in order: collected while their
    /// patterns are at hand.
    pub(super) named: Vec<(Row<'g>, usize)>,
    /// The known bugs that were met, in order.
    pub(super) parts: Vec<TakenPart>,
    /// Whether no line is left over.
    pub(super) followed: Followed,
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

    /// The line is ignored by `#@ any`.
    pub(super) fn ignored(&mut self, line: usize) {
        self.edits.push(Edit::Ignored { capture: line + 1 });
    }

    /// A part of a known bug begins.
    pub(super) fn enter(&mut self, bug: usize, is_actual: bool) {
        let at = self.edits.len();
        self.parts.push(TakenPart { bug, is_actual, edits: at..at });
    }

    /// The part that has begun ends.
    pub(super) fn leave(&mut self) {
        if let Some(part) = self.parts.last_mut() {
            part.edits.end = self.edits.len();
        }
    }

    /// What was seen of a known bug. A part counts when it is whole: nothing is missing from it, and
    /// nothing unexpected is between its lines, or at its place when it is empty.
    pub(super) fn seen(&self, part: &TakenPart) -> Seen {
        let Range { start, end } = part.edits;
        let is_extra = |edit: &Edit| matches!(edit, Edit::Unexpected { .. });
        let is_whole = match self.pairs_of(part) {
            _ if self.edits[start..end].iter().any(|edit| matches!(edit, Edit::Missing { .. })) => false,
            Some(pairs) => !self.edits[pairs].iter().any(is_extra),
            None => {
                !self.edits[start.saturating_sub(1)..(end + 1).min(self.edits.len())].iter().any(is_extra)
            }
        };
        match (is_whole, part.is_actual) {
            (false, _) => Seen::Neither,
            (true, true) => Seen::Actual,
            (true, false) => Seen::Right,
        }
    }

    /// The edits of a part from its first pair of lines to its last one.
    pub(super) fn pairs_of(&self, part: &TakenPart) -> Option<Range<usize>> {
        let is_pair = |at: &usize| matches!(self.edits[*at], Edit::Same { .. });
        let first = part.edits.clone().find(is_pair)?;
        let last = part.edits.clone().rfind(is_pair)?;
        Some(first..last + 1)
    }
}

/// The alignment of a program with a capture.
pub(super) fn align<'g>(program: &Program<'g>, lines: &Lines<'_>) -> Alignment<'g> {
    let edits = Vec::with_capacity(lines.len());
    let mut found = Alignment { edits, named: Vec::new(), parts: Vec::new(), followed: Followed::Fits };
    let start = prefix(program, lines, &mut found);
    found.followed = follow(program, lines, start, &mut found);
    if found.followed != Followed::Fits {
        approximate(program, lines, start, &mut found);
    }
    found
}

/// Append the first lines that fit the first rows, and give their number.
fn prefix<'g>(program: &Program<'g>, lines: &Lines<'_>, found: &mut Alignment<'g>) -> usize {
    let mut tokens = Vec::new();
    for line in 0..lines.len() {
        match program.plain(line) {
            Some(row) if lines.fits_with(row, line, &mut tokens) => found.both(*row, line),
            _ => return line,
        }
    }
    lines.len()
}

/// Append an alignment of what follows the first `start` lines, which fit.
fn approximate<'g>(program: &Program<'g>, lines: &Lines<'_>, start: usize, found: &mut Alignment<'g>) {
    let (n, m) = (program.ops.len(), lines.len());
    let both = |at: usize| program.plain(n - 1 - at).is_some_and(|row| lines.fits(row, m - 1 - at));
    let end = (0..(n - start).min(m - start)).take_while(|at| both(*at)).count();
    let (ops, rest) = (start..n - end, start..m - end);
    if fits_a_table(&ops, &rest) {
        table(program, lines, ops, rest, found);
    } else {
        coarse(program, lines, ops, rest, found);
    }
    for (op, line) in (n - end..n).zip(m - end..m) {
        if let Some(row) = program.plain(op) {
            found.both(*row, line);
        }
    }
}
