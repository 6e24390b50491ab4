//! Reading a line that `printf` made, field by field.
//!
//! The kernel and perf print columns: a number in a width, a text in a width, one space between.
//! Padding is part of a field, the space between two fields is not. This module knows columns and
//! no format.

use std::ops::Range;

/// A place in a line. Each step either moves past what it names, or returns `None` and stays.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'l> {
    line: &'l [u8],
    /// The index of the next byte.
    pub(crate) at: usize,
}

impl<'l> Cursor<'l> {
    /// A cursor at byte `at` of a line.
    pub(crate) fn new(line: &'l [u8], at: usize) -> Cursor<'l> {
        Cursor { line, at }
    }

    /// What has not been read yet.
    pub(crate) fn rest(&self) -> &'l [u8] {
        self.line.get(self.at..).unwrap_or_default()
    }

    /// Past this text.
    pub(crate) fn eat(&mut self, text: &[u8]) -> Option<()> {
        self.rest().starts_with(text).then(|| self.at += text.len())
    }

    /// Past all bytes that `belongs` holds for; there may be none.
    pub(crate) fn run(&mut self, belongs: impl Fn(u8) -> bool) -> Range<usize> {
        let start = self.at;
        self.at += self.rest().iter().take_while(|b| belongs(**b)).count();
        start..self.at
    }

    /// Past all bytes that `belongs` holds for, at least one.
    pub(crate) fn some(&mut self, belongs: impl Fn(u8) -> bool) -> Option<Range<usize>> {
        Some(self.run(belongs)).filter(|span| !span.is_empty())
    }

    /// Past decimal digits.
    pub(crate) fn digits(&mut self) -> Option<Range<usize>> {
        self.some(is_digit)
    }

    /// Past a decimal number with its sign.
    pub(crate) fn integer(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        _ = self.eat(b"-");
        match self.digits() {
            Some(digits) => Some(start..digits.end),
            None => {
                self.at = start;
                None
            }
        }
    }

    /// Past digits and the spaces after them that fill their column of `width` bytes.
    pub(crate) fn left_aligned(&mut self, width: usize) -> Option<Range<usize>> {
        let digits = self.digits()?;
        let room = (digits.start + width).saturating_sub(digits.end);
        self.at += self.rest().iter().take(room).take_while(|b| **b == b' ').count();
        Some(digits.start..self.at)
    }
}

/// Whether a byte is a decimal digit.
pub(crate) fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

/// Whether the byte is a digit of a hexadecimal number as `%x` prints it: in lower case.
pub(crate) fn is_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// Where the run of bytes for which `belongs` holds starts that ends before `end`.
pub(crate) fn run_start(line: &[u8], end: usize, belongs: impl Fn(u8) -> bool) -> usize {
    end - line[..end].iter().rev().take_while(|b| belongs(**b)).count()
}

/// The decimal number that ends at `end`, with its sign: perf prints -1 where it knows no task.
pub(crate) fn integer(line: &[u8], end: usize) -> Option<Range<usize>> {
    let digits = run_start(line, end, is_digit);
    let start = if digits > 0 && line[digits - 1] == b'-' { digits - 1 } else { digits };
    (digits < end).then_some(start..end)
}

/// Where the column of `width` bytes starts whose text is `text`, aligned to the right.
///
/// One space before the column separates it from the field before, so where the spaces are fewer
/// than the width asks for, which other versions of a tool may print, the first of them stays out.
pub(crate) fn right_aligned(line: &[u8], text: Range<usize>, width: usize) -> usize {
    let room = width.saturating_sub(text.len());
    let spaces = line[..text.start].iter().rev().take(room).take_while(|b| **b == b' ').count();
    let start = text.start - spaces;
    if spaces > 0 && start > 0 && line[start - 1] != b' ' { start + 1 } else { start }
}

/// The places of all `: ` at or after `from`.
pub(crate) fn colons(line: &[u8], from: usize) -> impl Iterator<Item = usize> {
    let mut from = from;
    std::iter::from_fn(move || {
        loop {
            let at = from + line.get(from..)?.iter().position(|b| *b == b':')?;
            from = at + 1;
            if line.get(from) == Some(&b' ') {
                return Some(at);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_step_stays() {
        let mut cursor = Cursor::new(b"12 ab", 0);
        assert_eq!(cursor.eat(b"13"), None);
        assert_eq!(cursor.digits(), Some(0..2));
        assert_eq!(cursor.digits(), None);
        assert_eq!(cursor.eat(b" "), Some(()));
        assert_eq!(cursor.integer(), None);
        assert_eq!(cursor.rest(), b"ab");
        assert_eq!(Cursor::new(b"a", 9).rest(), b"");
    }

    #[test]
    fn padding_fills_its_column_only() {
        assert_eq!(Cursor::new(b"12     [", 0).left_aligned(5), Some(0..5));
        assert_eq!(Cursor::new(b"123456 [", 0).left_aligned(5), Some(0..6));
        assert_eq!(right_aligned(b"x      12", 7..9, 5), 4);
        assert_eq!(right_aligned(b"x  12", 3..5, 5), 2);
        assert_eq!(right_aligned(b"   12", 3..5, 5), 0);
        assert_eq!(right_aligned(b"x 1234567", 2..9, 5), 2);
    }

    #[test]
    fn integer_may_have_a_sign() {
        assert_eq!(Cursor::new(b"-1/2", 0).integer(), Some(0..2));
        let mut dash = Cursor::new(b"-x", 0);
        assert_eq!((dash.integer(), dash.at), (None, 0));
        assert_eq!(integer(b"a-12", 4), Some(1..4));
        assert_eq!(integer(b"a-", 2), None);
    }

    #[test]
    fn colon_needs_a_space() {
        let all = |line: &str, from| colons(line.as_bytes(), from).collect::<Vec<_>>();
        assert_eq!(all("a:b: c:: ", 0), [3, 7]);
        assert!(all("a:b: c:", 4).is_empty());
        assert!(all(":", 9).is_empty());
    }
}
