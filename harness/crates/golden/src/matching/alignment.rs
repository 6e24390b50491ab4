//! An alignment: each line of a golden and of a capture with its counterpart or without one, and
//! what was taken of known bugs on the way.

use std::ops::Range;

use super::select::Row;

/// One line of a comparison. Lines count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    /// The golden's line and the capture's line belong together.
    Same {
        /// The golden's line.
        golden: usize,
        /// The capture's line.
        capture: usize,
    },
    /// The golden's line is missing from the capture.
    Missing {
        /// The golden's line.
        golden: usize,
    },
    /// The capture's line is in no golden.
    Unexpected {
        /// The capture's line.
        capture: usize,
    },
    /// The golden ignores the line: `#@ any`.
    Ignored {
        /// The capture's line.
        capture: usize,
    },
}

impl Edit {
    /// Whether it is a line that has no counterpart.
    pub fn is_left_over(&self) -> bool {
        matches!(self, Edit::Missing { .. } | Edit::Unexpected { .. })
    }

    /// Its line of the capture.
    pub fn capture_line(&self) -> Option<usize> {
        match *self {
            Edit::Missing { .. } => None,
            Edit::Same { capture, .. } | Edit::Unexpected { capture } | Edit::Ignored { capture } => {
                Some(capture)
            }
        }
    }
}

/// Which part of a known bug a capture has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// What a kernel with the bug prints.
    Actual,
    /// What is right.
    Right,
    /// Something else. The edits are those against the nearer part.
    Neither,
}

/// Whether an alignment without a line left over was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Followed {
    Fits,
    Differs,
    /// The golden leaves more ways open than are kept.
    TooManyWays,
}

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
