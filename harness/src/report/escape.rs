//! Bytes as text that can be printed anywhere.
//!
//! No two texts are shown alike, and no byte of a guest reaches the terminal as a control sequence.

use unicode_width::UnicodeWidthChar;

/// What becomes of a backslash that begins what looks like an escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backslash {
    /// It is escaped: the text is a guest's or stands for one's.
    Escaped,
    /// It stays: the text is written in a language that has escapes of its own.
    Kept,
}

/// Text that can be printed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Escaped {
    /// The text.
    pub(super) text: String,
    /// Its width in columns.
    pub(super) width: usize,
    /// Whether it stands for all bytes.
    pub(super) complete: bool,
}

/// The bytes that give at most `room` columns. No more than those are looked at.
pub(super) fn escape(bytes: &[u8], room: usize, backslash: Backslash) -> Escaped {
    let mut escaped = Escaped::default();
    // A character has at most four bytes, and one that the cut falls into is not shown.
    let head = &bytes[..bytes.len().min(room.saturating_add(1).saturating_mul(4))];
    for chunk in head.utf8_chunks() {
        let mut chars = chunk.valid().chars().peekable();
        while let Some(c) = chars.next() {
            let escape = match c {
                '\\' => match chars.peek() {
                    Some('x' | 'u') if backslash == Backslash::Escaped => Some("\\x5c".to_owned()),
                    _ => None,
                },
                _ => escape_char(c),
            };
            let fits = match &escape {
                Some(escape) => escaped.push(escape, room),
                None => escaped.push(c.encode_utf8(&mut [0; 4]), room),
            };
            if !fits {
                return escaped;
            }
        }
        for byte in chunk.invalid() {
            if !escaped.push(&format!("\\x{byte:02x}"), room) {
                return escaped;
            }
        }
    }
    escaped.complete = head.len() == bytes.len();
    escaped
}

/// A line of text, with its middle left out when it is very long: both ends say what it is about.
pub(super) fn escape_line(line: &str, room: usize) -> String {
    let Escaped { text, width, .. } = escape(line.as_bytes(), usize::MAX, Backslash::Kept);
    if width <= room {
        return text;
    }
    let half = |chars: &mut dyn Iterator<Item = char>| -> Vec<char> {
        let mut width = 0;
        chars.take_while(|c| (width += columns_of(*c), width <= room / 2).1).collect()
    };
    let start = half(&mut text.chars());
    let end = half(&mut text.chars().rev());
    start.into_iter().chain("...".chars()).chain(end.into_iter().rev()).collect()
}

impl Escaped {
    /// Add text that is shown as a whole or not at all.
    fn push(&mut self, text: &str, room: usize) -> bool {
        let width = columns(text);
        if self.width + width > room {
            return false;
        }
        self.text.push_str(text);
        self.width += width;
        true
    }
}

/// The columns that a text takes on a terminal. A tab counts as one.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// The columns that a character takes: two for wide ones, none for those that combine with the one before.
pub(super) fn columns_of(c: char) -> usize {
    c.width().unwrap_or(1)
}

/// The text that stands for a character that a terminal would obey or not show as what it is; `None` for all others,
/// a tab among them.
pub(super) fn escape_char(c: char) -> Option<String> {
    match c {
        '\t' | ' '..='~' => None,
        _ if c.is_ascii_control() => Some(format!("\\x{:02x}", u32::from(c))),
        _ if is_invisible(c) => Some(format!("\\u{{{:x}}}", u32::from(c))),
        _ => None,
    }
}

/// Characters that control how others are shown, look like a space or show as nothing.
///
/// To the standard library, all of the general categories C and Z but U+0020 are not printable. It shows a mark that
/// combines with the character before it. The rest are letters, marks and symbols that have no glyph: those of
/// `Default_Ignorable_Code_Point` in DerivedCoreProperties.txt (Unicode 16), and the empty Braille pattern.
fn is_invisible(c: char) -> bool {
    let after_another = ['a', c].iter().collect::<String>();
    let is_printable = after_another.escape_debug().nth(1) == Some(c) || matches!(c, '"' | '\'' | '\\');
    !is_printable
        || matches!(c, '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{e0100}'..='\u{e01ef}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(bytes: &[u8]) -> String {
        escape(bytes, 400, Backslash::Escaped).text
    }

    #[test]
    fn unprintable_bytes_are_escaped() {
        assert_eq!(shown(b"a\tb\0\r\x7f"), "a\tb\\x00\\x0d\\x7f");
        assert_eq!(shown(b"\xff\xc3\xa4\xc3"), "\\xffä\\xc3");
        assert_eq!(shown("\u{85}\u{202e}x\u{200b}".as_bytes()), "\\u{85}\\u{202e}x\\u{200b}");
        assert_eq!(shown(br"\n \x00 \"), r"\n \x5cx00 \");
        assert_eq!(escape(br"\x00", 9, Backslash::Kept).text, r"\x00");
    }

    #[test]
    fn space_and_letters_without_a_glyph_are_escaped_and_marks_are_not() {
        let invisible =
            "\u{a0}\u{2009}\u{3000}\u{feff}\u{ad}\u{2066}\u{2028}\u{e0041}\u{3164}\u{2800}\u{fe0f}\u{34f}";
        for c in invisible.chars() {
            assert_eq!(shown(c.to_string().as_bytes()), format!("\\u{{{:x}}}", u32::from(c)));
        }
        for text in ["a\u{301}", "\"'", "äß", "漢", "→", "𝄞", "\u{1f600}"] {
            assert_eq!(shown(text.as_bytes()), text);
        }
    }

    #[test]
    fn cut_splits_neither_escape_nor_character() {
        let cut = |bytes: &[u8], room| {
            let escaped = escape(bytes, room, Backslash::Escaped);
            (escaped.text, escaped.complete)
        };
        assert_eq!(cut(b"ab\0", 5), ("ab".to_owned(), false));
        assert_eq!(cut(b"ab\0", 6), ("ab\\x00".to_owned(), true));
        let long = "𝄞".repeat(100);
        assert_eq!(cut(long.as_bytes(), 7), ("𝄞".repeat(7), false));
        assert_eq!(cut(b"", 0), (String::new(), true));
    }

    #[test]
    fn wide_and_combining_characters_count_by_columns() {
        let shown = escape("漢字e\u{301}x".as_bytes(), 5, Backslash::Escaped);
        assert_eq!((shown.text.as_str(), shown.width, shown.complete), ("漢字e\u{301}", 5, false));
    }

    #[test]
    fn long_line_keeps_both_ends() {
        assert_eq!(escape_line("0123456789", 10), "0123456789");
        assert_eq!(escape_line("0123456789\x1b", 4), "01...1b");
        assert_eq!(escape_line("漢字かな", 4), "漢...な");
    }

    proptest! {
        #[test]
        fn no_two_texts_are_shown_alike(a in prop::collection::vec(any::<u8>(), 0..6),
                                        b in "[\\\\xu0-9\\{\\}\0-\u{ff}]{0,8}") {
            let b = b.as_bytes();
            prop_assert_eq!(shown(&a) == shown(b), a == b);
            prop_assert!(!shown(&a).chars().any(|c| c.is_control() && c != '\t'));
        }
    }
}
