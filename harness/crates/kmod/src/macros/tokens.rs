//! The words of preprocessed C.
//!
//! Only what is needed to tell definitions apart: comments are gone in such text, line markers are
//! passed over, and a number may be read as more than one word.

/// One word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// An identifier or a keyword, or what is left of a number.
    Word(&'t str),
    /// What is between the quotes of a string, with its escapes as they are.
    Text(&'t str),
    /// A character of punctuation, or a character literal's quote.
    Mark(char),
}

impl<'t> Token<'t> {
    pub(super) fn is(self, mark: char) -> bool {
        self == Token::Mark(mark)
    }

    pub(super) fn word(self) -> Option<&'t str> {
        match self {
            Token::Word(word) => Some(word),
            _ => None,
        }
    }
}

/// The words of a text, in order.
pub(super) struct Tokens<'t> {
    rest: &'t str,
    /// Whether nothing but blanks is before this in its line.
    line_start: bool,
}

impl<'t> Tokens<'t> {
    pub(super) fn new(text: &'t str) -> Tokens<'t> {
        Tokens { rest: text, line_start: true }
    }

    fn take(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }

    /// Up to the closing quote, which is passed. The opening one has been.
    fn quoted(&mut self, quote: u8) -> &'t str {
        let bytes = self.rest.as_bytes();
        let mut end = 0;
        while end < bytes.len() && bytes[end] != quote {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        // A quote is a whole character; an escape may have stepped into one, or past the end.
        let end = self.rest.len().min(end);
        let end = (end..=self.rest.len()).find(|at| self.rest.is_char_boundary(*at)).unwrap_or(end);
        let text = self.take(end);
        self.take(usize::from(self.rest.as_bytes().first() == Some(&quote)));
        text
    }
}

impl<'t> Iterator for Tokens<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        loop {
            let next = self.rest.chars().next()?;
            if next == '#' && self.line_start {
                let line = memchr::memchr(b'\n', self.rest.as_bytes()).unwrap_or(self.rest.len());
                self.take(line);
            } else if next.is_whitespace() {
                self.line_start |= next == '\n';
                self.take(next.len_utf8());
            } else {
                self.line_start = false;
                let word = self.rest.bytes().take_while(|b| is_word(*b)).count();
                if word > 0 {
                    return Some(Token::Word(self.take(word)));
                }
                self.take(next.len_utf8());
                return Some(match next {
                    '"' => Token::Text(self.quoted(b'"')),
                    '\'' => {
                        self.quoted(b'\'');
                        Token::Mark(next)
                    }
                    _ => Token::Mark(next),
                });
            }
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_texts_and_marks_are_told_apart() {
        use Token::{Mark, Text, Word};
        let text = "# 12 \"a;b\" 3\nint x = f(\"a\\\"{\", '}', '\\'');\n  #pragma {\n é y";
        let tokens: Vec<_> = Tokens::new(text).collect();
        let f =
            [Word("f"), Mark('('), Text("a\\\"{"), Mark(','), Mark('\''), Mark(','), Mark('\''), Mark(')')];
        let expected = [&[Word("int"), Word("x"), Mark('=')], &f[..], &[Mark(';'), Mark('é'), Word("y")]];
        assert_eq!(tokens, expected.concat());
    }

    #[test]
    fn a_text_without_an_end_ends_with_the_file() {
        for text in ["\"", "\"a", "\"a\\", "'\\é", "\"\\é\" x"] {
            assert!(Tokens::new(text).count() > 0, "{text}");
        }
    }
}
