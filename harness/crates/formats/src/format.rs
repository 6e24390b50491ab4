//! The table of capture formats.
//!
//! A new format is one file with a [`FormatRow`] (and the tokeniser and the rules that it names), one
//! line in the table below, and a transcript in `testdata/`. The compiler refuses a row that leaves a
//! field out; the tests refuse a name or a file that two rows claim, and a format without a transcript.

use super::row::FormatRow;
use super::{Piece, Token, Violation};

macro_rules! table {
    ($($(#[doc = $doc:literal])+ $variant:ident => $row:path;)+) => {
        /// The format of a capture.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Format {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Format {
            /// All formats, in the order of the table.
            pub const ALL: &[Format] = &[$(Format::$variant,)+];

            /// All formats with the names that case files use, in the order of the table.
            pub const BY_NAME: &[(&str, Format)] = &[$(($row.name, Format::$variant),)+];

            const fn row(self) -> &'static FormatRow {
                match self {
                    $(Format::$variant => &$row,)+
                }
            }
        }
    };
}

table! {
    /// An event's `hist_debug` file.
    HistDebug => super::hist_debug::FORMAT;
    /// An event's `hist` file.
    Hist => super::hist::FORMAT;
    /// An event's `trigger` file.
    Trigger => super::plain::TRIGGER;
    /// The `trace` file: the ring buffer as text.
    Trace => super::trace::FORMAT;
    /// An event's `format` file, or several of them one after the other.
    EventFormat => super::event_format::FORMAT;
    /// What `perf script` prints.
    PerfScript => super::perf_script::FORMAT;
    /// What `perf report -D` prints.
    PerfDump => super::perf_dump::FORMAT;
    /// Text in which nothing varies.
    Plain => super::plain::FORMAT;
}

impl Format {
    /// The format of this name.
    pub fn named(name: &str) -> Option<Format> {
        Format::BY_NAME.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }

    /// The format of the tracefs file at `path`, by its name; plain for any other file.
    pub fn of_file(path: &str) -> Format {
        let name = path.rsplit('/').next().unwrap_or_default();
        let claims = |format: &Format| format.row().files.contains(&name);
        Format::ALL.iter().copied().find(claims).unwrap_or(Format::Plain)
    }

    /// The tokens of a line, in order.
    pub fn tokens(self, line: &[u8]) -> Vec<Token> {
        let mut found = Vec::new();
        self.tokens_into(line, &mut found);
        found
    }

    /// The tokens of a line, in order, in place of what `found` holds: for reading many lines with one
    /// allocation.
    pub fn tokens_into(self, line: &[u8], found: &mut Vec<Token>) {
        found.clear();
        if let Some(tokens) = self.row().tokens {
            tokens(line, found);
        }
    }

    /// All of a line, in order: the pieces' texts one after the other are the line.
    pub fn pieces(self, line: &[u8]) -> Vec<Piece> {
        let tokens = self.tokens(line);
        let mut pieces = Vec::with_capacity(2 * tokens.len() + 1);
        let mut at = 0;
        for token in tokens {
            if at < token.start {
                pieces.push(Piece::Literal(at..token.start));
            }
            at = token.end;
            pieces.push(Piece::Token(token));
        }
        if at < line.len() {
            pieces.push(Piece::Literal(at..line.len()));
        }
        pieces
    }

    /// The format's rules that `lines` break.
    pub fn violations(self, lines: &[&[u8]]) -> Vec<Violation> {
        self.row().violations.map_or_else(Vec::new, |violations| violations(lines))
    }

    /// Whether a number that is a token is what the test is about. If not, a new golden gets a hole for it.
    pub fn numbers_are_significant(self) -> bool {
        self.row().numbers_are_significant
    }

    /// Whether a capture of this format can have tokens at all.
    #[cfg(test)]
    pub(crate) fn has_tokens(self) -> bool {
        self.row().tokens.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::TokenKind;

    #[test]
    fn format_has_a_name_and_files_of_its_own() {
        let (mut names, mut files) = (BTreeSet::new(), BTreeSet::new());
        for format in Format::ALL {
            let row = format.row();
            let is_name =
                !row.name.is_empty() && row.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
            assert!(is_name, "{format:?} has the name `{}`", row.name);
            assert!(names.insert(row.name), "two formats are named {}", row.name);
            assert_eq!(Format::named(row.name), Some(*format));
            for file in row.files {
                assert!(files.insert(file), "two formats are the default of the file `{file}`");
                assert_eq!(Format::of_file(&format!("events/x/y/{file}")), *format);
            }
        }
    }

    #[test]
    fn format_follows_from_the_name_of_the_file() {
        assert_eq!(Format::of_file("events/sched/sched_waking/hist_debug"), Format::HistDebug);
        assert_eq!(Format::of_file("events/sched/sched_waking/hist"), Format::Hist);
        assert_eq!(Format::of_file("trace"), Format::Trace);
        assert_eq!(Format::of_file("instances/foo/trace"), Format::Trace);
        assert_eq!(Format::of_file("events/sched/sched_waking/format"), Format::EventFormat);
        assert_eq!(Format::of_file("synthetic_events"), Format::Plain);
    }

    #[test]
    fn literal_text_is_between_tokens() {
        let line = b"hist_data: 000000009536f554";
        let token = Token::new(11..27, TokenKind::Ptr);
        assert_eq!(Format::HistDebug.pieces(line), [Piece::Literal(0..11), Piece::Token(token)]);
        assert_eq!(Format::Plain.pieces(b"ab"), [Piece::Literal(0..2)]);
        assert_eq!(Format::Plain.pieces(b""), []);
    }
}
