//! Reading a line that `printf` made, field by field.
//!
//! The kernel and perf print columns: a number in a width, a text in a width, one blank between.
//! Padding is part of a field, the blank between two fields is not. This module knows columns and
//! no format.

use std::ops::Range;

/// A place in a line. Each step either moves past what it names, or returns `None` and stays.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'l> {
    line: &'l [u8],
    /// The index of the next byte.
    pub(super) at: usize,
}

impl<'l> Cursor<'l> {
    pub(super) fn new(line: &'l [u8], at: usize) -> Cursor<'l> {
        Cursor { line, at }
    }

    /// What has not been read yet.
    pub(super) fn rest(&self) -> &'l [u8] {
        self.line.get(self.at..).unwrap_or_default()
    }

    /// Past this text.
    pub(super) fn eat(&mut self, text: &[u8]) -> Option<()> {
        self.rest().starts_with(text).then(|| self.at += text.len())
    }

    /// Past all bytes that `belongs` holds for; there may be none.
    pub(super) fn run(&mut self, belongs: impl Fn(u8) -> bool) -> Range<usize> {
        let start = self.at;
        self.at += self.rest().iter().take_while(|b| belongs(**b)).count();
        start..self.at
    }

    /// Past all bytes that `belongs` holds for, at least one.
    pub(super) fn some(&mut self, belongs: impl Fn(u8) -> bool) -> Option<Range<usize>> {
        Some(self.run(belongs)).filter(|span| !span.is_empty())
    }

    /// Past decimal digits.
    pub(super) fn digits(&mut self) -> Option<Range<usize>> {
        self.some(is_digit)
    }

    /// Past digits and the blanks behind them that fill their column of `width` bytes.
    pub(super) fn left_aligned(&mut self, width: usize) -> Option<Range<usize>> {
        let digits = self.digits()?;
        let room = (digits.start + width).saturating_sub(digits.end);
        self.at += self.rest().iter().take(room).take_while(|b| **b == b' ').count();
        Some(digits.start..self.at)
    }
}

pub(super) fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

/// Whether the byte is a digit of a hexadecimal number as `%x` prints it: in lower case.
pub(super) fn is_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_fails_stays() {
        let mut cursor = Cursor::new(b"12 ab", 0);
        assert_eq!(cursor.eat(b"13"), None);
        assert_eq!(cursor.digits(), Some(0..2));
        assert_eq!(cursor.digits(), None);
        assert_eq!(cursor.eat(b" "), Some(()));
        assert_eq!(cursor.rest(), b"ab");
        assert_eq!(Cursor::new(b"a", 9).rest(), b"");
    }

    #[test]
    fn padding_fills_a_column_and_no_more() {
        assert_eq!(Cursor::new(b"12     [", 0).left_aligned(5), Some(0..5));
        assert_eq!(Cursor::new(b"123456 [", 0).left_aligned(5), Some(0..6));
    }
}
