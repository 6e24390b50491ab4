//! Symbols and hashed pointers in free text: what an event prints after its name.
//!
//! All other text of an event is literal: its numbers are what a golden is about.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::cursor::{Cursor, is_hex};
use super::{Token, TokenKind};

/// Hexadecimal digits of a 64-bit address.
pub(super) const ADDRESS: usize = 16;

/// How a symbol's offset is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offset {
    /// `name+0x1f/0x2b`, the kernel's `%pS` (kernel/kallsyms.c, `__sprint_symbol`, Linux 7.2).
    WithSize,
    /// `name+0x1f`, as perf prints it, or with the size.
    SizeOrNot,
}

/// How hashed pointers begin.
const HASHED: &[u8] = b"00000000";

/// Whether a text may hold a symbol or a pointer. Most hold none, and to see that is far quicker than
/// to read words.
fn may_hold(text: &[u8]) -> bool {
    static FINDER: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(HASHED));
    memchr::memchr2(b'+', b'<', text).is_some() || FINDER.find(text).is_some()
}

/// Add the symbols and pointers of `line[text]` to `found`, in order.
pub(super) fn scan(line: &[u8], text: Range<usize>, offset: Offset, found: &mut Vec<Token>) {
    if !may_hold(&line[text.clone()]) {
        return;
    }
    let line = &line[..text.end];
    let mut words = Cursor::new(line, text.start);
    loop {
        words.run(|b| !is_word(b));
        let Some(word) = words.some(is_word) else { return };
        if let Some(end) = symbol_end(line, &word, offset) {
            let start = bracketed(line, text.start..word.start).unwrap_or(word.start);
            // Its address may have looked like a hashed pointer until the name came.
            found.truncate(found.len() - usize::from(found.last().is_some_and(|token| token.end > start)));
            found.push(Token::new(start..end, TokenKind::Sym));
            words.at = end;
        } else if is_hashed(&line[word.clone()]) {
            found.push(Token::new(word, TokenKind::Ptr));
        }
    }
}

/// Whether `%p` may have printed this. A null pointer is not hashed: it is the same in all runs,
/// and one in place of a pointer is a bug to see, so it is literal.
fn is_hashed(word: &[u8]) -> bool {
    word.len() == ADDRESS
        && word.starts_with(HASHED)
        && word.iter().all(|b| is_hex(*b))
        && word.iter().any(|b| *b != b'0')
}

/// Where the symbol ends whose name is the word; `None` when the word is not a symbol. A name by
/// itself could be any word, so an offset or an address has to follow.
fn symbol_end(line: &[u8], name: &Range<usize>, offset: Offset) -> Option<usize> {
    let mut cursor = Cursor::new(line, name.end);
    if !matches!(cursor.rest().first(), Some(b'+' | b' ')) || line[name.start].is_ascii_digit() {
        return None;
    }
    if cursor.eat(b"+0x").is_some() {
        cursor.some(is_hex)?;
        match cursor.eat(b"/0x") {
            Some(()) => _ = cursor.some(is_hex)?,
            None if offset == Offset::WithSize => return None,
            None => {}
        }
        if cursor.rest().first().is_some_and(|b| is_word(*b)) {
            return None;
        }
    }
    // With the option sym-addr, ` <ADDRESS>` follows.
    let mut address = cursor.clone();
    if address.eat(b" <").is_some() && address.run(is_hex).len() == ADDRESS && address.eat(b">").is_some() {
        cursor = address;
    }
    (cursor.at > name.end).then_some(cursor.at)
}

/// Where `[ADDRESS] ` starts that ends the range, if it does.
fn bracketed(line: &[u8], before: Range<usize>) -> Option<usize> {
    let start = before.end.checked_sub(ADDRESS + 3).filter(|start| *start >= before.start)?;
    let mut cursor = Cursor::new(&line[..before.end], start);
    cursor.eat(b"[")?;
    (cursor.run(is_hex).len() == ADDRESS && cursor.rest() == b"] ").then_some(start)
}

/// Bytes of a symbol's name. Compilers put dots in it, as in `name.constprop.0`.
fn is_word(byte: u8) -> bool {
    const WORD: [bool; 256] = {
        let mut table = [false; 256];
        let mut byte = 0;
        while byte < 256 {
            let it = byte as u8;
            table[byte] = it.is_ascii_alphanumeric() || matches!(it, b'_' | b'.' | b'$');
            byte += 1;
        }
        table
    };
    WORD[usize::from(byte)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(line: &str, offset: Offset) -> Vec<&str> {
        let mut found = Vec::new();
        scan(line.as_bytes(), 0..line.len(), offset, &mut found);
        found.iter().map(|t| &line[t.start..t.end]).collect()
    }

    #[test]
    fn symbol_has_an_offset() {
        let all = |line| spans(line, Offset::WithSize);
        assert_eq!(all("func=hvc_init+0x0/0x44 ret=0"), ["hvc_init+0x0/0x44"]);
        assert_eq!(all("at a.isra.0+0x1/0x2 [mod], b+0x3/0x4"), ["a.isra.0+0x1/0x2", "b+0x3/0x4"]);
        assert_eq!(all("[ffffffff8143914f] open+0x2f/0xc0"), ["[ffffffff8143914f] open+0x2f/0xc0"]);
        assert_eq!(all("[000000000000002d] open+0x2f/0xc0"), ["[000000000000002d] open+0x2f/0xc0"]);
        assert_eq!(
            all("run+0x1/0x2 <c0000000000f8094> <-up <c0000000000f8098>"),
            ["run+0x1/0x2 <c0000000000f8094>", "up <c0000000000f8098>"]
        );
        for none in ["a+0x1", "a+0x/0x1", "a+1", "4+0x1/0x2", "+0x1/0x2", "a+0x1/0x2g", "a <12>", "a"] {
            assert_eq!(all(none), Vec::<&str>::new(), "{none}");
        }
        assert_eq!(spans("a+0x1 b+0x2/0x3", Offset::SizeOrNot), ["a+0x1", "b+0x2/0x3"]);
    }

    #[test]
    fn only_a_hashed_pointer_is_a_token() {
        let all = |line| spans(line, Offset::WithSize);
        assert_eq!(all("sk=000000009536f554, x"), ["000000009536f554"]);
        for none in [
            "0000000000000000",
            "c00000009536f554",
            "0x000000009536f554",
            "000000009536f5541",
            "000000009536F554",
            "000000009536f55",
        ] {
            assert_eq!(all(none), Vec::<&str>::new(), "{none}");
        }
    }
}
