//! One line of a golden: literal text and holes.

use std::fmt;
use std::ops::Range;

use formats::{Token, TokenKind, number};

use super::SyntaxError;
use super::hole::{Hole, Operand};

/// A piece of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment<'p> {
    /// Text that must be equal. Never empty.
    Literal(&'p str),
    /// A hole.
    Hole(&'p Hole),
}

/// One line of a golden.
///
/// A long golden is a million of these, and a comparison walks through all of them, so that one is
/// small and stands in few places of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// All literal text.
    text: Box<str>,
    /// Holes in the text, in order.
    places: Box<[HoleAt]>,
}

/// A hole, `at` bytes into the text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum HoleAt {
    /// A token of a kind, without a name.
    Token { at: u32, kind: TokenKind },
    /// Any other hole.
    Other { at: u32, hole: Box<Hole> },
}

impl HoleAt {
    fn at(&self) -> usize {
        match self {
            HoleAt::Token { at, .. } | HoleAt::Other { at, .. } => *at as usize,
        }
    }

    fn hole(&self) -> &Hole {
        match self {
            HoleAt::Token { kind, .. } => Hole::unnamed(*kind),
            HoleAt::Other { hole, .. } => hole,
        }
    }
}

/// A pattern in the making. It can make one after the other.
#[derive(Debug, Default)]
pub struct PatternBuilder {
    text: String,
    places: Vec<HoleAt>,
}

impl PatternBuilder {
    /// Add literal text.
    pub fn literal(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Add a hole.
    pub fn hole(&mut self, hole: Hole) {
        let at = u32::try_from(self.text.len()).expect("a line is shorter than 4 GiB");
        self.places.push(match hole {
            Hole::Token { kind, name: None } => HoleAt::Token { at, kind },
            hole => HoleAt::Other { at, hole: Box::new(hole) },
        });
    }

    /// The pattern of what was added since the last one.
    pub fn take(&mut self) -> Pattern {
        let pattern = Pattern { text: self.text.as_str().into(), places: self.places.drain(..).collect() };
        self.clear();
        pattern
    }

    fn clear(&mut self) {
        self.text.clear();
        self.places.clear();
    }
}

const OPEN: &str = "{{";
const CLOSE: &str = "}}";
/// How a literal `{{` is written.
const LITERAL_OPEN: &str = "{{lit:{{}}";
/// How a line that begins like a directive is written.
const LITERAL_DIRECTIVE: &str = "{{lit:#@ }}";

impl Pattern {
    /// The pattern that matches exactly this text.
    pub fn literal(text: &str) -> Pattern {
        let mut builder = PatternBuilder::default();
        builder.literal(text);
        builder.take()
    }

    /// Read a line.
    #[cfg(test)]
    pub(crate) fn parse(line: &str) -> Result<Pattern, SyntaxError> {
        Pattern::parse_with(line, &mut PatternBuilder::default())
    }

    /// Read a line, reusing a builder: for a caller that reads many lines.
    pub(super) fn parse_with(line: &str, builder: &mut PatternBuilder) -> Result<Pattern, SyntaxError> {
        builder.clear();
        let mut rest_at = None;
        let mut at = 0;
        if line.starts_with(LITERAL_DIRECTIVE) {
            builder.literal("#@ ");
            at = LITERAL_DIRECTIVE.len();
        }
        while let Some(found) = pair(b'{', &line[at..]) {
            let mut open = at + found;
            // Of `{{{n}}` the first brace is text.
            while line[open + OPEN.len()..].starts_with('{') {
                open += 1;
            }
            builder.literal(&line[at..open]);
            if line[open..].starts_with(LITERAL_OPEN) {
                builder.literal(OPEN);
                at = open + LITERAL_OPEN.len();
                continue;
            }
            let Some(length) = pair(b'}', &line[open..]) else {
                let help = format!("close it with `}}}}`, or write `{LITERAL_OPEN}` for the text `{{{{`");
                return Err(SyntaxError::new(open..line.len(), "unclosed `{{`").with_help(help));
            };
            let whole = open..open + length + CLOSE.len();
            let inside = &line[open + OPEN.len()..open + length];
            if inside.starts_with("lit:") {
                let help = format!("only `{LITERAL_OPEN}`, and `{LITERAL_DIRECTIVE}` at the start of a line");
                return Err(SyntaxError::new(whole, "this text needs no `lit:`").with_help(help));
            }
            let hole = Hole::parse(inside).map_err(|error| SyntaxError { span: whole.clone(), ..error })?;
            if matches!(hole, Hole::Rest) && rest_at.replace(open).is_some() {
                let message =
                    "second `{{..}}` in one line: ambiguous, nothing marks where the first one ends";
                return Err(
                    SyntaxError::new(whole, message).with_help("write a narrower hole, such as `{{word}}`")
                );
            }
            builder.hole(hole);
            at = open + length + CLOSE.len();
        }
        builder.literal(&line[at..]);
        Ok(builder.take())
    }

    /// The pieces of the line, in order. Two literals never stand side by side.
    pub fn segments(&self) -> impl Iterator<Item = Segment<'_>> {
        let literal = |start: usize, end: usize| {
            Some(&self.text[start..end]).filter(|text| !text.is_empty()).map(Segment::Literal)
        };
        let mut start = 0;
        let before = self.places.iter().flat_map(move |place| {
            let text = literal(std::mem::replace(&mut start, place.at()), place.at());
            text.into_iter().chain([Segment::Hole(place.hole())])
        });
        let last = self.places.last().map_or(0, HoleAt::at);
        before.chain(literal(last, self.text.len()))
    }

    /// The text of a pattern without holes.
    pub fn as_literal(&self) -> Option<&[u8]> {
        self.places.is_empty().then_some(self.text.as_bytes())
    }

    /// The text before the first hole.
    pub fn literal_start(&self) -> &str {
        &self.text[..self.places.first().map_or(self.text.len(), HoleAt::at)]
    }

    /// The holes, in order.
    pub fn holes(&self) -> impl Iterator<Item = &Hole> {
        self.places.iter().map(HoleAt::hole)
    }

    /// Whether a hole binds a name or refers to one.
    pub fn has_names(&self) -> bool {
        let named = |hole: &Hole| hole.binds().or(hole.uses()).is_some();
        self.places.iter().any(|place| matches!(place, HoleAt::Other { hole, .. } if named(hole)))
    }

    /// Whether the line has the pattern's shape: its literal text, and in each hole something of
    /// the right kind. Names are left aside.
    pub fn matches(&self, line: &[u8], tokens: &[Token]) -> bool {
        self.walk(line, tokens, |_| ())
    }

    /// The spans of the line that the holes match, in order; `None` when the line does not have the
    /// pattern's shape.
    pub fn hole_spans(&self, line: &[u8], tokens: &[Token]) -> Option<Vec<Range<usize>>> {
        let mut spans = Vec::new();
        self.walk(line, tokens, |span| spans.push(span)).then_some(spans)
    }

    fn walk(&self, line: &[u8], tokens: &[Token], mut visit: impl FnMut(Range<usize>)) -> bool {
        let all = Remaining { text: self.text.as_bytes(), from: 0, places: &self.places };
        let (start, after) = match all.walk(0, line, tokens, &mut visit) {
            Some(Walked::ToRest(start, after)) => (start, after),
            Some(Walked::ToEnd(end)) => return end == line.len(),
            None => return false,
        };
        // What follows must reach the line's end: the first place from which it does is taken.
        let end = match after.places {
            [] => {
                let text = &after.text[after.from..];
                line.len().checked_sub(text.len()).filter(|at| *at >= start && line.ends_with(text))
            }
            _ => (start..=line.len()).find(|at| {
                let walked = after.walk(*at, line, tokens, &mut |_| ());
                matches!(walked, Some(Walked::ToEnd(end)) if end == line.len())
            }),
        };
        let Some(end) = end else { return false };
        visit(start..end);
        after.walk(end, line, tokens, &mut visit);
        true
    }
}

/// What of a pattern has not been matched yet: its text from a byte on, and its holes.
#[derive(Clone, Copy)]
struct Remaining<'p> {
    text: &'p [u8],
    from: usize,
    places: &'p [HoleAt],
}

/// How far a walk came.
enum Walked<'p> {
    /// All of the pattern matches up to this byte of the line.
    ToEnd(usize),
    /// What stands before a `{{..}}` matches up to this byte of the line; and what comes after it.
    ToRest(usize, Remaining<'p>),
}

impl<'p> Remaining<'p> {
    /// Match literals and holes one after the other from `at` on, up to a `{{..}}`.
    fn walk(
        self,
        mut at: usize,
        line: &[u8],
        tokens: &[Token],
        visit: &mut impl FnMut(Range<usize>),
    ) -> Option<Walked<'p>> {
        let Remaining { text, mut from, places } = self;
        for (index, place) in places.iter().enumerate() {
            at = literal_end(&text[from..place.at()], at, line)?;
            from = place.at();
            let end = match place {
                HoleAt::Token { kind, .. } => token_end(*kind, at, line, tokens)?,
                HoleAt::Other { hole, .. } => match **hole {
                    Hole::Rest => {
                        let after = Remaining { text, from, places: &places[index + 1..] };
                        return Some(Walked::ToRest(at, after));
                    }
                    ref hole => hole_end(hole, at, line, tokens)?,
                },
            };
            visit(at..end);
            at = end;
        }
        literal_end(&text[from..], at, line).map(Walked::ToEnd)
    }
}

/// Where a text that begins at `at` ends.
fn literal_end(text: &[u8], at: usize, line: &[u8]) -> Option<usize> {
    line[at..].starts_with(text).then_some(at + text.len())
}

/// Where the first of two such bytes in a row is.
fn pair(byte: u8, text: &str) -> Option<usize> {
    let text = text.as_bytes();
    memchr::memchr_iter(byte, text).find(|at| text.get(at + 1) == Some(&byte))
}

/// The end of the text in a hole that begins at `at`.
pub(crate) fn hole_end(hole: &Hole, at: usize, line: &[u8], tokens: &[Token]) -> Option<usize> {
    match hole {
        Hole::Token { kind, .. } => token_end(*kind, at, line, tokens),
        Hole::After { .. } => token_end(TokenKind::Ts, at, line, tokens),
        Hole::Number { relation, than } => {
            let end = token_end(TokenKind::Number, at, line, tokens)?;
            if let Operand::Literal(than) = than {
                number(line[at..end].trim_ascii()).filter(|value| relation.holds(value.cmp(than)))?;
            }
            Some(end)
        }
        Hole::Word { .. } => {
            let length = line[at..].iter().take_while(|b| !b.is_ascii_whitespace()).count();
            (length > 0).then_some(at + length)
        }
        Hole::Regex(pattern) => pattern.length_at_start(&line[at..]).map(|length| at + length),
        Hole::Rest => Some(line.len()),
    }
}

fn token_end(kind: TokenKind, at: usize, line: &[u8], tokens: &[Token]) -> Option<usize> {
    let found = tokens.iter().find(|token| token.start == at && token.kind == kind);
    match found {
        Some(token) => Some(token.end),
        None if kind == TokenKind::Number => bare_number_end(at, line),
        None => None,
    }
}

/// A number that the format does not know as one: digits with nothing alphanumeric on either side.
fn bare_number_end(at: usize, line: &[u8]) -> Option<usize> {
    let joined = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let sign = usize::from(line.get(at) == Some(&b'-'));
    let digits = line[at + sign..].iter().take_while(|b| b.is_ascii_digit()).count();
    let end = at + sign + digits;
    (digits > 0 && !joined(line.get(end)) && !joined(at.checked_sub(1).and_then(|before| line.get(before))))
        .then_some(end)
}

impl fmt::Display for Pattern {
    /// The line as a golden has it; what [`Pattern::parse`] reads back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, segment) in self.segments().enumerate() {
            match segment {
                Segment::Hole(hole) => write!(f, "{hole}")?,
                Segment::Literal(mut text) => {
                    if let Some(rest) = text.strip_prefix("#@ ").filter(|_| at == 0) {
                        f.write_str(LITERAL_DIRECTIVE)?;
                        text = rest;
                    }
                    f.write_str(&text.replace(OPEN, LITERAL_OPEN))?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::super::hole::tests::hole;
    use super::*;
    use formats::Format;

    fn matches_in(format: Format, pattern: &str, line: &str) -> bool {
        let tokens = format.tokens(line.as_bytes());
        Pattern::parse(pattern).expect("valid").matches(line.as_bytes(), &tokens)
    }

    fn matches(pattern: &str, line: &str) -> bool {
        matches_in(Format::HistDebug, pattern, line)
    }

    #[test]
    fn a_line_matches_whole() {
        assert!(matches("hist_data: {{ptr:A}}", "hist_data: 000000009536f554"));
        assert!(matches("hist_data: {{ptr}}", "hist_data: 000000009536f554"));
        assert!(!matches("hist_data: {{ptr:A}}", "hist_data: 000000009536f554 "));
        assert!(!matches("hist_data: {{ptr:A}}", " hist_data: 000000009536f554"));
        assert!(!matches("hist_data: {{ptr:A}}", "hist_data: (____ptrval____)"));
        assert!(matches("", ""));
        assert!(!matches("", " "));
    }

    #[test]
    fn braces_and_directives_can_be_meant() {
        assert!(matches("a {{lit:{{}} b", "a {{ b"));
        assert!(matches("{{lit:#@ }}if", "#@ if"));
        assert!(matches("{{{n}}}", "{5}"));
    }

    #[test]
    fn numbers_relate() {
        let line = "{ pid:          7 } hitcount:          3";
        let shape = |pattern| matches_in(Format::Hist, pattern, line);
        assert!(shape("{ pid: {{n}} } hitcount: {{n>=3}}"));
        assert!(shape("{ pid: {{n:PID}} } hitcount: {{n==3}}"));
        assert!(!shape("{ pid: {{n}} } hitcount: {{n>=4}}"));
        assert!(!shape("{ pid: {{n}} } hitcount: {{n!=3}}"));
        assert!(!shape("{ pid: {{n}} } hitcount:{{n}}"));
    }

    #[test]
    fn a_number_in_plain_text_stands_alone() {
        let plain = |pattern, line| matches_in(Format::Plain, pattern, line);
        assert!(plain("cpus={{n}}", "cpus=12"));
        assert!(plain("{{n}} of {{n}}", "-1 of 2"));
        assert!(!plain("cpus={{n}}", "cpus=0x12"));
        assert!(!plain("cpus={{n}}2", "cpus=12"));
        assert!(!plain("a{{n}}", "a1"));
    }

    #[test]
    fn words_rests_and_expressions() {
        let plain = |pattern, line| matches_in(Format::Plain, pattern, line);
        assert!(plain("a {{word}} c", "a b.b c"));
        assert!(!plain("a {{word}} c", "a  c"));
        assert!(plain("a {{..}}", "a "));
        assert!(plain("a {{..}} z", "a b  z z"));
        assert!(!plain("a {{..}} z", "a z"));
        assert!(plain("a {{..}}={{n}}", "a x=y=5"));
        assert!(plain("v{{re:[0-9]+}}.", "v12."));
        assert!(!plain("v{{re:[0-9]+}}.", "v."));
    }

    #[test]
    fn errors_have_spans_and_help() {
        let error = |line| Pattern::parse(line).expect_err("wrong");
        assert_eq!(error("a {{ptr:A").span, 2..9);
        assert_eq!(error("a {{ptr:A").message, "unclosed `{{`");
        assert_eq!(error("a {{prt:A}}").span, 2..11);
        assert_eq!(error("{{prt:A}}").help.as_deref(), Some("did you mean `ptr`?"));
        assert!(error("{{..}} {{..}}").message.contains("nothing marks where the first one ends"));
        assert!(error("{{lit:x}}").message.contains("needs no"));
        assert!(error("a{{lit:#@ }}").message.contains("needs no"));
    }

    /// Any pattern that parsing can give.
    pub(crate) fn pattern() -> impl Strategy<Value = Pattern> {
        let segment = prop_oneof![
            "[ -~]{1,12}".prop_map(Ok),
            "(#@ )?[{}#@: a]{1,6}".prop_map(Ok),
            hole().prop_map(Err),
        ];
        prop::collection::vec(segment, 0..6).prop_map(|all: Vec<Result<String, Hole>>| {
            let mut builder = PatternBuilder::default();
            for segment in all {
                match segment {
                    Ok(text) => builder.literal(&text),
                    Err(hole) => builder.hole(hole),
                }
            }
            builder.take()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn print_and_parse_are_inverse(pattern in pattern()) {
            let text = pattern.to_string();
            prop_assert_eq!(Pattern::parse(&text), Ok(pattern), "{}", text);
        }

        #[test]
        fn a_literal_matches_itself_alone(text in "[ -~]{0,30}", other in "[ -~]{0,30}") {
            let pattern = Pattern::parse(&Pattern::literal(&text).to_string()).expect("printed");
            prop_assert!(pattern.matches(text.as_bytes(), &[]));
            prop_assert_eq!(pattern.matches(other.as_bytes(), &[]), text == other);
        }

        #[test]
        fn any_text_is_a_pattern_or_an_error(text in "[{}:.a-z#@ ]{0,40}") {
            // A line that begins so is a directive and comes to no pattern.
            prop_assume!(!text.starts_with("#@ "));
            match Pattern::parse(&text) {
                Ok(pattern) => prop_assert_eq!(pattern.to_string(), text),
                Err(error) => prop_assert!(error.span.end <= text.len() && !error.message.is_empty()),
            }
        }
    }
}
