//! The lines of a capture and their tokens.

use formats::{Format, Token};

use super::select::Row;

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
    pub(super) fn fits(&self, row: &Row<'_>, line: usize) -> bool {
        self.fits_with(row, line, &mut Vec::new())
    }

    /// The same, with a buffer for the line's tokens: for a caller that reads many lines.
    pub(super) fn fits_with(&self, row: &Row<'_>, line: usize, tokens: &mut Vec<Token>) -> bool {
        // A line without holes needs no tokens, and most lines of most goldens are such.
        if let Some(literal) = row.pattern.as_literal() {
            return literal == self.texts[line];
        }
        self.format.tokens_into(self.texts[line], tokens);
        row.pattern.matches(self.texts[line], tokens)
    }

    /// The lines from `first` on, for when each is held against many rows.
    pub(super) fn window(&self, first: usize) -> Window<'_, 'c> {
        Window { lines: self, first, tokens: Vec::new() }
    }
}

/// Lines that keep their tokens once they are known.
pub(super) struct Window<'l, 'c> {
    lines: &'l Lines<'c>,
    first: usize,
    tokens: Vec<Option<Vec<Token>>>,
}

impl Window<'_, '_> {
    /// Whether a line, not before the window's first, has the shape of a row.
    pub(super) fn fits(&mut self, row: &Row<'_>, line: usize) -> bool {
        let text = self.lines.text(line);
        if let Some(literal) = row.pattern.as_literal() {
            return literal == text;
        }
        let at = line - self.first;
        if self.tokens.len() <= at {
            self.tokens.resize(at + 1, None);
        }
        let tokens = self.tokens[at].get_or_insert_with(|| self.lines.tokens(line));
        row.pattern.matches(text, tokens)
    }
}
