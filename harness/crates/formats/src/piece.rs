//! A line in pieces: its tokens and the text between them, with nothing left out.

use std::ops::Range;

use super::{Format, Token};

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text that does not vary: its bytes in the line. Never empty.
    Literal(Range<usize>),
    /// A span that varies by nature. Never empty.
    Token(Token),
}

impl Piece {
    /// Its bytes in the line.
    pub fn span(&self) -> Range<usize> {
        match self {
            Piece::Literal(span) => span.clone(),
            Piece::Token(token) => token.start..token.end,
        }
    }
}

impl Format {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TokenKind;

    #[test]
    fn literals_stand_between_tokens() {
        let line = b"hist_data: 000000009536f554";
        let token = Token::new(11..27, TokenKind::Ptr);
        assert_eq!(Format::HistDebug.pieces(line), [Piece::Literal(0..11), Piece::Token(token)]);
        assert_eq!(Format::Plain.pieces(b"ab"), [Piece::Literal(0..2)]);
        assert_eq!(Format::Plain.pieces(b""), []);
    }
}
