//! An event's `format` file.
//!
//! Only the event's number varies: the kernel gives it when the event is registered
//! (kernel/trace/trace_output.c, `register_trace_event`, Linux 7.2). Offsets and sizes are the record's
//! layout, which is part of what is tested.

use super::row::FormatRow;
use super::{Token, TokenKind, number};

pub(super) const FORMAT: FormatRow = FormatRow {
    name: "event_format",
    files: &["format"],
    tokens: Some(tokens),
    violations: None,
    // The only number that is a token, the event's own, depends on which events the kernel has besides.
    numbers_are_significant: false,
};

const ID: &[u8] = b"ID: ";

fn tokens(line: &[u8], found: &mut Vec<Token>) {
    let id = line.strip_prefix(ID).and_then(number);
    found.extend(id.map(|_| Token::new(ID.len()..line.len(), TokenKind::Number)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

    #[test]
    fn only_the_event_id_is_a_token() {
        let line = b"ID: 315";
        let tokens = Format::EventFormat.tokens(line);
        assert_eq!(tokens, [Token { start: 4, end: 7, kind: TokenKind::Number }]);
        for line in ["ID: x", "name: foo_bar", "\tfield:int bar;\toffset:20;\tsize:4;\tsigned:1;"] {
            assert!(Format::EventFormat.tokens(line.as_bytes()).is_empty(), "{line}");
        }
    }
}
