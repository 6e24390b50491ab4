//! One line of a golden: literal text and holes.

use std::fmt;
use std::ops::Range;

use super::hole::{Hole, Operand};
use crate::normalise::{Token, TokenKind, number};

/// A piece of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// Text that must be there as it stands.
    Literal(String),
    /// A hole.
    Hole(Hole),
}

/// One line of a golden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Its pieces; two literals never stand side by side.
    pub segments: Vec<Segment>,
}

/// A fault in a line, at a byte offset, with the length of the text at fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PatternFault {
    pub(super) at: usize,
    pub(super) length: usize,
    pub(super) message: String,
    pub(super) help: Option<String>,
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
        let segments = if text.is_empty() { Vec::new() } else { vec![Segment::Literal(text.to_owned())] };
        Pattern { segments }
    }

    /// Read a line.
    pub(super) fn parse(line: &str) -> Result<Pattern, PatternFault> {
        // A long golden is held as pieces: each takes what it needs.
        let mut segments: Vec<Segment> = Vec::with_capacity(2 * line.matches(OPEN).count() + 1);
        let mut literal = String::new();
        let mut rest_at = None;
        let mut at = 0;
        if line.starts_with(LITERAL_DIRECTIVE) {
            literal.push_str("#@ ");
            at = LITERAL_DIRECTIVE.len();
        }
        while let Some(found) = line[at..].find(OPEN) {
            let mut open = at + found;
            // Of `{{{n}}` the first brace is text.
            while line[open + OPEN.len()..].starts_with('{') {
                open += 1;
            }
            literal.push_str(&line[at..open]);
            if line[open..].starts_with(LITERAL_OPEN) {
                literal.push_str(OPEN);
                at = open + LITERAL_OPEN.len();
                continue;
            }
            let Some(length) = line[open..].find(CLOSE) else {
                return Err(PatternFault {
                    at: open,
                    length: line.len() - open,
                    message: "this `{{` is not closed".to_owned(),
                    help: Some(format!(
                        "close it with `}}}}`, or write `{LITERAL_OPEN}` for the text `{{{{`"
                    )),
                });
            };
            let fault = |message: String, help: Option<String>| PatternFault {
                at: open,
                length: length + CLOSE.len(),
                message,
                help,
            };
            let inside = &line[open + OPEN.len()..open + length];
            if inside.starts_with("lit:") {
                let help = format!("only `{LITERAL_OPEN}`, and `{LITERAL_DIRECTIVE}` at the start of a line");
                return Err(fault("text that needs no `lit:`".to_owned(), Some(help)));
            }
            let hole = Hole::parse(inside).map_err(|(message, help)| fault(message, help))?;
            if hole == Hole::Rest && rest_at.replace(open).is_some() {
                return Err(fault(
                    "a second `{{..}}` in the line: where the first ends is not told".to_owned(),
                    None,
                ));
            }
            push_literal(&mut segments, &mut literal);
            segments.push(Segment::Hole(hole));
            at = open + length + CLOSE.len();
        }
        literal.push_str(&line[at..]);
        push_literal(&mut segments, &mut literal);
        Ok(Pattern { segments })
    }

    /// The text of a pattern without holes.
    pub fn as_literal(&self) -> Option<&[u8]> {
        match self.segments.as_slice() {
            [] => Some(b""),
            [Segment::Literal(text)] => Some(text.as_bytes()),
            _ => None,
        }
    }

    /// The text before the first hole.
    pub fn literal_start(&self) -> &str {
        match self.segments.first() {
            Some(Segment::Literal(text)) => text,
            _ => "",
        }
    }

    /// The holes, in order.
    pub fn holes(&self) -> impl Iterator<Item = &Hole> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Hole(hole) => Some(hole),
            Segment::Literal(_) => None,
        })
    }

    /// Whether a hole binds a name or refers to one.
    pub fn has_names(&self) -> bool {
        self.holes().any(|hole| hole.binds().or(hole.uses()).is_some())
    }

    /// Whether the line has the pattern's shape: its literal text, and in each hole something of
    /// the right kind. Names are left aside.
    pub fn matches(&self, line: &[u8], tokens: &[Token]) -> bool {
        self.walk(line, tokens, |_, _| ())
    }

    /// What stands in each hole of a line that has the pattern's shape, as spans of the line, in
    /// order; `None` when it has not.
    pub fn held(&self, line: &[u8], tokens: &[Token]) -> Option<Vec<Range<usize>>> {
        let mut held = Vec::new();
        self.walk(line, tokens, |_, span| held.push(span)).then_some(held)
    }

    fn walk(&self, line: &[u8], tokens: &[Token], mut visit: impl FnMut(&Hole, Range<usize>)) -> bool {
        let Some((start, after)) = walk_from(&self.segments, 0, line, tokens, &mut visit) else {
            return false;
        };
        let Some((_, after)) = after.split_first() else { return start == line.len() };
        // What follows must reach the line's end: the first place from which it does is taken.
        let end = match after {
            [] => Some(line.len()),
            [Segment::Literal(text)] => line
                .len()
                .checked_sub(text.len())
                .filter(|at| *at >= start && line.ends_with(text.as_bytes())),
            _ => (start..=line.len())
                .find(|at| walk_from(after, *at, line, tokens, &mut |_, _| ()) == Some((line.len(), &[]))),
        };
        let Some(end) = end else { return false };
        visit(&Hole::Rest, start..end);
        walk_from(after, end, line, tokens, &mut visit);
        true
    }
}

/// Match pieces one after the other from `at` on, up to a `{{..}}`: where the last one ends, and the
/// pieces from the `{{..}}` on.
fn walk_from<'s>(
    segments: &'s [Segment],
    mut at: usize,
    line: &[u8],
    tokens: &[Token],
    visit: &mut impl FnMut(&Hole, Range<usize>),
) -> Option<(usize, &'s [Segment])> {
    for (index, segment) in segments.iter().enumerate() {
        match segment {
            Segment::Hole(Hole::Rest) => return Some((at, &segments[index..])),
            Segment::Literal(text) => {
                if !line[at..].starts_with(text.as_bytes()) {
                    return None;
                }
                at += text.len();
            }
            Segment::Hole(hole) => {
                let end = hole_end(hole, at, line, tokens)?;
                visit(hole, at..end);
                at = end;
            }
        }
    }
    Some((at, &[]))
}

/// Where what stands in a hole that begins at `at` ends.
pub(super) fn hole_end(hole: &Hole, at: usize, line: &[u8], tokens: &[Token]) -> Option<usize> {
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

fn push_literal(segments: &mut Vec<Segment>, literal: &mut String) {
    if !literal.is_empty() {
        segments.push(Segment::Literal(literal.clone()));
        literal.clear();
    }
}

impl fmt::Display for Pattern {
    /// The line as a golden has it; what [`Pattern::parse`] reads back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, segment) in self.segments.iter().enumerate() {
            match segment {
                Segment::Hole(hole) => write!(f, "{hole}")?,
                Segment::Literal(text) => {
                    let mut text = text.as_str();
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
pub(super) mod tests {
    use proptest::prelude::*;

    use super::super::hole::tests::hole;
    use super::*;
    use crate::normalise::Format;

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
    fn faults_have_a_place_and_advice() {
        let fault = |line| Pattern::parse(line).expect_err("faulty");
        let open = fault("a {{ptr:A");
        assert_eq!((open.at, open.length), (2, 7));
        assert_eq!(fault("{{prt:A}}").help.as_deref(), Some("did you mean `ptr`?"));
        assert!(fault("{{..}} {{..}}").message.contains("second"));
        assert!(fault("{{lit:x}}").message.contains("needs no"));
        assert!(fault("a{{lit:#@ }}").message.contains("needs no"));
    }

    /// Any pattern that parsing can give.
    pub(crate) fn pattern() -> impl Strategy<Value = Pattern> {
        let segment = prop_oneof![
            "[ -~]{1,12}".prop_map(Segment::Literal),
            "(#@ )?[{}#@: a]{1,6}".prop_map(Segment::Literal),
            hole().prop_map(Segment::Hole),
        ];
        prop::collection::vec(segment, 0..6).prop_map(|all| {
            let mut segments: Vec<Segment> = Vec::new();
            for segment in all {
                match (segments.last_mut(), segment) {
                    (Some(Segment::Literal(last)), Segment::Literal(more)) => last.push_str(&more),
                    (_, segment) => segments.push(segment),
                }
            }
            Pattern { segments }
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
        fn any_text_is_a_pattern_or_a_fault(text in "[{}:.a-z#@ ]{0,40}") {
            // A line that begins so is a directive and comes to no pattern.
            prop_assume!(!text.starts_with("#@ "));
            match Pattern::parse(&text) {
                Ok(pattern) => prop_assert_eq!(pattern.to_string(), text),
                Err(fault) => prop_assert!(fault.at + fault.length <= text.len()),
            }
        }
    }
}
