//! One line for showing: its words, cut to a width, the holes with their values.

use crate::report::escape::{Backslash, escape};
use golden::{Bindings, Hole, Pattern, Segment};

/// Columns of a line beyond these are cut.
pub(super) const WIDTH_MAX: usize = 400;
/// Bytes that are looked at: a character has at most four.
const WINDOW: usize = (WIDTH_MAX + 1) * 4;

/// A line for showing.
#[derive(Debug)]
pub(super) struct Line<'l> {
    pub(super) words: Vec<Word<'l>>,
    /// Its length in bytes.
    length: usize,
    /// The first byte that is shown.
    from: usize,
    /// Whether it is shown to its end.
    complete: bool,
    /// The columns of its words.
    width: usize,
}

/// A part of a line that is compared as a whole.
#[derive(Debug)]
pub(super) struct Word<'l> {
    pub(super) content: Content<'l>,
    /// As it is shown.
    pub(super) text: String,
    /// Whether its partner has another one.
    pub(super) differs: bool,
}

/// What a word stands for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Content<'l> {
    /// These bytes.
    Bytes(&'l [u8]),
    /// Whatever the hole takes.
    Hole(&'l Hole),
}

impl<'l> Line<'l> {
    /// A line of a capture, from a byte on.
    pub(super) fn of_capture(bytes: &'l [u8], from: usize) -> Line<'l> {
        let mut line = Line::begin(bytes.len(), from);
        for word in words(window(bytes, from)) {
            if !line.push(Content::Bytes(word), word, Backslash::Escaped) {
                return line;
            }
        }
        line.complete = bytes.len() - from <= WINDOW;
        line
    }

    /// A line of a golden, from a byte on, which is 0 for a line with holes. `written` is its text
    /// in the file.
    pub(super) fn of_golden(
        pattern: &'l Pattern,
        written: &str,
        bindings: &Bindings,
        from: usize,
    ) -> Line<'l> {
        let mut line = Line::begin(written.len(), from);
        for segment in pattern.segments() {
            let fits = match segment {
                Segment::Literal(text) => line.push_literal(text.as_bytes(), from),
                Segment::Hole(hole) => {
                    line.push(Content::Hole(hole), with_value(hole, bindings).as_bytes(), Backslash::Kept)
                }
            };
            if !fits {
                return line;
            }
        }
        line.complete = true;
        line
    }

    /// A line of a golden that is not a pattern: a directive that found too few lines.
    pub(super) fn of_directive(written: &'l str) -> Line<'l> {
        let mut line = Line::begin(written.len(), 0);
        let bytes = written.as_bytes();
        line.complete = line.push(Content::Bytes(bytes), bytes, Backslash::Kept);
        line
    }

    fn begin(length: usize, from: usize) -> Line<'l> {
        Line { words: Vec::new(), length, from, complete: false, width: 0 }
    }

    /// Add the words of a golden's literal text, written as a golden has them.
    fn push_literal(&mut self, text: &'l [u8], from: usize) -> bool {
        let mut rest = window(text, from);
        if self.words.is_empty() && from == 0 && rest.starts_with(DIRECTIVE.as_bytes()) {
            let (head, tail) = rest.split_at(DIRECTIVE.len());
            self.push(
                Content::Bytes(head),
                Pattern::literal(DIRECTIVE).to_string().as_bytes(),
                Backslash::Kept,
            );
            rest = tail;
        }
        for word in words(rest) {
            let fits = if word == OPEN.as_bytes() {
                let written = Pattern::literal(OPEN).to_string();
                self.push(Content::Bytes(word), written.as_bytes(), Backslash::Kept)
            } else {
                self.push(Content::Bytes(word), word, Backslash::Escaped)
            };
            if !fits {
                return false;
            }
        }
        text.len() - from <= WINDOW
    }

    /// Add a word; whether it fits as a whole.
    fn push(&mut self, content: Content<'l>, text: &[u8], backslash: Backslash) -> bool {
        let escaped = escape(text, WIDTH_MAX - self.width, backslash);
        self.width += escaped.width;
        if !escaped.text.is_empty() {
            self.words.push(Word { content, text: escaped.text, differs: false });
        }
        escaped.complete
    }

    /// The text before the words.
    pub(super) fn prefix(&self) -> &'static str {
        if self.from > 0 { "..." } else { "" }
    }

    /// The text after the words.
    pub(super) fn suffix(&self) -> String {
        let dots = if self.complete { "" } else { "..." };
        match (self.from, self.complete) {
            (0, true) => String::new(),
            (0, false) => format!("{dots} ({} bytes)", self.length),
            (from, _) => format!("{dots} ({} bytes, shown from byte {from})", self.length),
        }
    }
}

const DIRECTIVE: &str = "#@ ";
const OPEN: &str = "{{";

fn window(bytes: &[u8], from: usize) -> &[u8] {
    let rest = &bytes[from..];
    &rest[..rest.len().min(WINDOW)]
}

/// A hole as written, with the value of its name where it has one: `{{ptr:A=00000000aaaaaaaa}}`.
fn with_value(hole: &Hole, bindings: &Bindings) -> String {
    let mut text = hole.to_string();
    let named = hole.binds().or(hole.uses());
    let value = named.and_then(|(namespace, name)| Some((name, bindings.value(namespace, name)?)));
    let Some((name, value)) = value else { return text };
    let end = match hole {
        Hole::After { .. } => "{{ts:".len() + name.len(),
        // In all others the name comes last.
        _ => text.len() - "}}".len(),
    };
    let short: String = String::from_utf8_lossy(value).chars().take(WIDTH_MAX).collect();
    text.insert_str(end, &format!("={short}"));
    text
}

/// Cut a line into words, runs of space, and single signs. A backslash belongs to the word after
/// it, as together they may be an escape; so do the braces of a hole.
fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let in_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'\\' || b >= 0x80;
    let is_space = |b: u8| b == b' ' || b == b'\t';
    let mut rest = line;
    std::iter::from_fn(move || {
        let first = *rest.first()?;
        let length = if in_word(first) {
            rest.iter().take_while(|b| in_word(**b)).count()
        } else if is_space(first) {
            rest.iter().take_while(|b| is_space(**b)).count()
        } else if rest.starts_with(OPEN.as_bytes()) {
            OPEN.len()
        } else {
            1
        };
        let (word, tail) = rest.split_at(length);
        rest = tail;
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::*;
    use golden::{BindingSite, Golden};

    fn text(line: &Line<'_>) -> String {
        let words: String = line.words.iter().map(|word| word.text.as_str()).collect();
        format!("{}{words}{}", line.prefix(), line.suffix())
    }

    fn golden(line: &str, bindings: &Bindings) -> String {
        let whole = format!("#@ golden v1\n{line}\n");
        let golden = Golden::parse(Utf8Path::new("g"), whole.as_bytes()).expect("valid");
        text(&Line::of_golden(golden.patterns()[0].1, line, bindings, 0))
    }

    fn bindings(line: &str, values: &[&str]) -> Bindings {
        let whole = format!("#@ golden v1\n{line}\n");
        let golden = Golden::parse(Utf8Path::new("g"), whole.as_bytes()).expect("valid");
        let place = BindingSite { golden: "g".into(), golden_line: 2, capture_line: 1 };
        let mut bindings = Bindings::new();
        for (hole, value) in golden.patterns()[0].1.holes().zip(values) {
            bindings.bind_or_check(hole, value.as_bytes(), &place).expect("free");
        }
        bindings
    }

    #[test]
    fn line_is_cut_into_words() {
        let cut = |line: &'static str| {
            words(line.as_bytes()).map(|w| std::str::from_utf8(w).expect("UTF-8")).collect::<Vec<_>>()
        };
        assert_eq!(cut("a_1: \t0x2,"), ["a_1", ":", " \t", "0x2", ","]);
        assert_eq!(cut(r"a\x00 {{{b"), [r"a\x00", " ", "{{", "{", "b"]);
        assert_eq!(cut(""), [""; 0]);
    }

    #[test]
    fn holes_have_the_values_of_their_names() {
        let bound = bindings("{{ptr:A}} {{n:HITS}} {{ts:T0}} {{word:W}}", &["00aa", "3", "1.5", "x\x1b"]);
        assert_eq!(golden("{{ptr:A}} {{ptr:B}} {{ptr}}", &bound), "{{ptr:A=00aa}} {{ptr:B}} {{ptr}}");
        assert_eq!(golden("{{n==HITS}} {{n>=1}}", &bound), "{{n==HITS=3}} {{n>=1}}");
        assert_eq!(golden("{{ts:T0+1us..2us}}", &bound), "{{ts:T0=1.5+1us..2us}}");
        assert_eq!(golden("{{word:W}}{{..}}", &bound), "{{word:W=x\\x1b}}{{..}}");
    }

    #[test]
    fn golden_line_is_shown_as_written() {
        for line in ["{{lit:#@ }}if {{lit:{{}}{ {{{n}}}", "{{re:\\x41+}}", "", "ä\t b "] {
            assert_eq!(golden(line, &Bindings::new()), line);
        }
        // But for what could be taken for something else.
        assert_eq!(golden("\\x00\u{1b}", &Bindings::new()), "\\x5cx00\\x1b");
        assert_eq!(text(&Line::of_directive("#@ any 1..2")), "#@ any 1..2");
    }

    #[test]
    fn long_line_shows_its_length() {
        let long = "ab ".repeat(1000);
        let shown = text(&Line::of_capture(long.as_bytes(), 0));
        assert_eq!(shown, format!("{}a... (3000 bytes)", "ab ".repeat(133)));
        assert_eq!(golden(&long, &Bindings::new()), shown);
        let shown = text(&Line::of_capture(long.as_bytes(), 2700));
        assert_eq!(shown, format!("...{} (3000 bytes, shown from byte 2700)", "ab ".repeat(100)));
        let fits = "x".repeat(WIDTH_MAX);
        assert_eq!(text(&Line::of_capture(fits.as_bytes(), 0)), fits);
        assert_eq!(
            text(&Line::of_capture(&[0; 2000], 0)),
            format!("{}... (2000 bytes)", "\\x00".repeat(100))
        );
    }
}
