//! One line of a golden: literal text and holes.

use crate::diagnostic::did_you_mean;
use crate::normalise::{Token, TokenKind, number};

/// A part of a golden that stands for a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hole {
    /// The kind of token that it matches.
    pub kind: TokenKind,
    /// The name that it binds, for kinds that can be named.
    pub name: Option<String>,
    /// The least value of a number.
    pub at_least: Option<u64>,
}

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
const HOLES: [&str; 2] = ["ptr", "n"];

impl Pattern {
    /// Read a line.
    pub(super) fn parse(line: &str) -> Result<Pattern, PatternFault> {
        let mut segments: Vec<Segment> = Vec::new();
        let mut literal = String::new();
        let mut at = 0;
        while let Some(found) = line[at..].find(OPEN) {
            let open = at + found;
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
            let inside = &line[open + OPEN.len()..open + length];
            let hole = Hole::parse(inside).map_err(|(message, help)| PatternFault {
                at: open,
                length: length + CLOSE.len(),
                message,
                help,
            })?;
            if !literal.is_empty() {
                segments.push(Segment::Literal(std::mem::take(&mut literal)));
            }
            segments.push(Segment::Hole(hole));
            at = open + length + CLOSE.len();
        }
        literal.push_str(&line[at..]);
        if !literal.is_empty() {
            segments.push(Segment::Literal(literal));
        }
        Ok(Pattern { segments })
    }

    /// Whether the line has the pattern's shape: its literal text and a token of the right kind in
    /// each hole, with names left aside. The tokens in the holes, in order, when it has.
    pub fn shape(&self, line: &[u8], tokens: &[Token]) -> Option<Vec<Token>> {
        let mut at = 0;
        let mut held = Vec::new();
        for segment in &self.segments {
            match segment {
                Segment::Literal(text) => {
                    if !line[at..].starts_with(text.as_bytes()) {
                        return None;
                    }
                    at += text.len();
                }
                Segment::Hole(hole) => {
                    let token = *tokens.iter().find(|t| t.start == at && t.kind == hole.kind)?;
                    if let Some(least) = hole.at_least {
                        number(token.value(line)).filter(|value| *value >= least)?;
                    }
                    held.push(token);
                    at = token.end;
                }
            }
        }
        (at == line.len()).then_some(held)
    }

    /// The holes, in order.
    pub fn holes(&self) -> impl Iterator<Item = &Hole> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Hole(hole) => Some(hole),
            Segment::Literal(_) => None,
        })
    }
}

impl Hole {
    fn parse(text: &str) -> Result<Hole, (String, Option<String>)> {
        let word_end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
        let (word, rest) = text.split_at(word_end);
        match word {
            "ptr" => match rest.strip_prefix(':') {
                Some(name) if is_name(name) => {
                    Ok(Hole { kind: TokenKind::Ptr, name: Some(name.to_owned()), at_least: None })
                }
                _ => Err((
                    format!("`{{{{{text}}}}}` names no pointer"),
                    Some("write {{ptr:NAME}}, with a name of letters, digits and _".to_owned()),
                )),
            },
            "n" if rest.is_empty() => Ok(Hole { kind: TokenKind::Number, name: None, at_least: None }),
            "n" => match rest.strip_prefix(">=").and_then(|number| number.parse().ok()) {
                Some(least) => Ok(Hole { kind: TokenKind::Number, name: None, at_least: Some(least) }),
                None => Err((
                    format!("`{{{{{text}}}}}` is no condition on a number"),
                    Some("write {{n}} or {{n>=1}}".to_owned()),
                )),
            },
            _ => Err((
                format!("unknown hole `{{{{{text}}}}}`"),
                did_you_mean(word, HOLES)
                    .or_else(|| Some("the holes are {{ptr:NAME}}, {{n}} and {{n>=NUMBER}}".to_owned())),
            )),
        }
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalise::Format;

    fn matches(pattern: &str, line: &str) -> bool {
        let tokens = Format::HistDebug.tokens(line.as_bytes());
        Pattern::parse(pattern).expect("valid").shape(line.as_bytes(), &tokens).is_some()
    }

    #[test]
    fn a_line_matches_whole() {
        assert!(matches("hist_data: {{ptr:A}}", "hist_data: 000000009536f554"));
        assert!(!matches("hist_data: {{ptr:A}}", "hist_data: 000000009536f554 "));
        assert!(!matches("hist_data: {{ptr:A}}", " hist_data: 000000009536f554"));
        assert!(!matches("hist_data: {{ptr:A}}", "hist_data: (____ptrval____)"));
        assert!(matches("", ""));
        assert!(!matches("", " "));
    }

    #[test]
    fn braces_can_be_meant() {
        assert!(matches("a {{lit:{{}} b", "a {{ b"));
    }

    #[test]
    fn numbers_have_a_least_value() {
        let line = b"{ pid:          7 } hitcount:          3";
        let tokens = Format::Hist.tokens(line);
        let shape = |text| Pattern::parse(text).expect("valid").shape(line, &tokens).is_some();
        assert!(shape("{ pid: {{n}} } hitcount: {{n>=3}}"));
        assert!(!shape("{ pid: {{n}} } hitcount: {{n>=4}}"));
    }

    #[test]
    fn faults_have_a_place_and_advice() {
        let fault = |line| Pattern::parse(line).expect_err("faulty");
        let open = fault("a {{ptr:A");
        assert_eq!((open.at, open.length), (2, 7));
        assert_eq!(fault("{{prt:A}}").help.as_deref(), Some("did you mean `ptr`?"));
        assert!(fault("{{ptr}}").message.contains("names no pointer"));
        assert!(fault("{{ptr:a b}}").message.contains("names no pointer"));
        assert!(fault("{{n>1}}").message.contains("no condition"));
    }
}
