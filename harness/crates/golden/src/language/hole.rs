//! Holes: the parts of a golden's line that stand for a volatile value.

use std::fmt;

use diagnostic::did_you_mean;
use formats::TokenKind;
use formats::units::{parse_duration, show_duration};
use regex::bytes::Regex;

use super::SyntaxError;
use super::condition::{RELATIONS, Relation};

/// A hole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hole {
    /// `{{KIND}}`, `{{KIND:NAME}}`: a token of the kind; one name always means one value.
    Token {
        /// The token's kind.
        kind: TokenKind,
        /// The name that is bound at first sight.
        name: Option<String>,
    },
    /// `{{n>=1}}`, `{{n==HITS}}`: a number that relates so to another.
    Number {
        /// How.
        relation: Relation,
        /// To what.
        than: Operand,
    },
    /// `{{ts:T0+1200us..1300us}}`: a time so long after a bound one. Nanoseconds, ends included.
    After {
        /// The name of the bound time.
        base: String,
        /// The least distance.
        from: Nanoseconds,
        /// The greatest distance.
        to: Nanoseconds,
    },
    /// `{{word}}`, `{{word:NAME}}`: bytes without whitespace.
    Word {
        /// The name that is bound at first sight.
        name: Option<String>,
    },
    /// `{{..}}`: any text; at most one in a line.
    Rest,
    /// `{{re:...}}`: what the regular expression matches from here on.
    Regex(HoleRegex),
}

/// What a number is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operand {
    /// A number.
    Literal(u64),
    /// A number bound elsewhere.
    Name(String),
}

/// A span of time in nanoseconds. It is printed in the largest unit that divides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanoseconds(pub u64);

/// The regular expression of a `{{re:...}}`, anchored where the hole begins.
#[derive(Debug, Clone)]
pub struct HoleRegex {
    source: String,
    /// On the heap, as it is large and rare, and each piece of a line is as large as the largest.
    regex: Box<Regex>,
}

impl PartialEq for HoleRegex {
    fn eq(&self, other: &HoleRegex) -> bool {
        self.source == other.source
    }
}

impl Eq for HoleRegex {}

impl HoleRegex {
    /// A regular expression in the syntax of the regex crate.
    ///
    /// # Errors
    /// What is wrong with it, in one line.
    pub fn new(source: &str) -> Result<HoleRegex, String> {
        let error = |text: String| text.lines().last().unwrap_or_default().trim().to_owned();
        // The source must stand alone: `a)(b` would be valid inside the brackets only.
        Regex::new(source).map_err(|e| error(e.to_string()))?;
        let regex = Regex::new(&format!("^(?:{source})")).map_err(|e| error(e.to_string()))?;
        Ok(HoleRegex { source: source.to_owned(), regex: Box::new(regex) })
    }

    /// How many bytes at the start of `text` it matches; `None` for no match.
    pub fn length_at_start(&self, text: &[u8]) -> Option<usize> {
        self.regex.find(text).map(|found| found.end())
    }

    /// Its text.
    pub fn source(&self) -> &str {
        &self.source
    }
}

/// The kinds of tokens by the words that holes use.
pub const KINDS: [(&str, TokenKind); 9] = [
    ("ptr", TokenKind::Ptr),
    ("pid", TokenKind::Pid),
    ("cpu", TokenKind::Cpu),
    ("ts", TokenKind::Ts),
    ("comm", TokenKind::Comm),
    ("sym", TokenKind::Sym),
    ("hex", TokenKind::Hex),
    ("flags", TokenKind::Flags),
    ("n", TokenKind::Number),
];

/// Whether two names of this kind must mean two values. Pointers to two objects never are equal.
/// Numbers and times may well be, and so may pids: each idle task has pid 0.
pub fn is_injective(kind: TokenKind) -> bool {
    kind == TokenKind::Ptr
}

impl fmt::Display for Nanoseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show_duration(self.0))
    }
}

/// The holes of tokens without a name.
static UNNAMED: [Hole; KINDS.len()] = {
    const fn unnamed(kind: TokenKind) -> Hole {
        Hole::Token { kind, name: None }
    }
    [
        unnamed(TokenKind::Ptr),
        unnamed(TokenKind::Pid),
        unnamed(TokenKind::Cpu),
        unnamed(TokenKind::Ts),
        unnamed(TokenKind::Comm),
        unnamed(TokenKind::Sym),
        unnamed(TokenKind::Number),
        unnamed(TokenKind::Hex),
        unnamed(TokenKind::Flags),
    ]
};

impl Hole {
    /// `{{KIND}}`
    pub fn unnamed(kind: TokenKind) -> &'static Hole {
        // In the order of the kinds, which a test holds it to.
        &UNNAMED[kind as usize]
    }

    /// Read the text between `{{` and `}}`.
    ///
    /// # Errors
    /// The span of an error is the whole text.
    pub(crate) fn parse(text: &str) -> Result<Hole, SyntaxError> {
        if text == ".." {
            return Ok(Hole::Rest);
        }
        if let Some(source) = text.strip_prefix("re:") {
            if source.is_empty() {
                return Err(SyntaxError::new(0..text.len(), "empty regular expression")
                    .with_help("write {{re:[0-9]+}}"));
            }
            return HoleRegex::new(source).map(Hole::Regex).map_err(|e| {
                SyntaxError::new(0..text.len(), format!("`{source}` is not a regular expression: {e}"))
            });
        }
        let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let name = match rest.strip_prefix(':') {
            None if rest.is_empty() => None,
            Some(name) if is_name(name) => Some(name.to_owned()),
            _ => return Hole::related(text, word, rest),
        };
        if word == "word" {
            return Ok(Hole::Word { name });
        }
        match KINDS.iter().find(|(known, _)| *known == word) {
            Some((_, kind)) => Ok(Hole::Token { kind: *kind, name }),
            None => Err(unknown(text, word)),
        }
    }

    /// `n>=1` and `ts:T0+1us..2us`.
    fn related(text: &str, word: &str, rest: &str) -> Result<Hole, SyntaxError> {
        let error = |help: &str| {
            SyntaxError::new(0..text.len(), format!("invalid hole `{{{{{text}}}}}`")).with_help(help)
        };
        match word {
            "n" => {
                let help = "write {{n}}, {{n:NAME}}, {{n>=1}} or {{n==NAME}}";
                let found =
                    RELATIONS.iter().find_map(|(sign, relation)| Some((*relation, rest.strip_prefix(sign)?)));
                let (relation, than) = found.ok_or_else(|| error(help))?;
                let than = match than.parse() {
                    Ok(number) if !than.starts_with('+') => Operand::Literal(number),
                    _ if is_name(than) && !than.starts_with(|c: char| c.is_ascii_digit()) => {
                        Operand::Name(than.to_owned())
                    }
                    _ => return Err(error(help)),
                };
                Ok(Hole::Number { relation, than })
            }
            "ts" => {
                let help = "write {{ts}}, {{ts:NAME}} or {{ts:NAME+1200us..1300us}} (ns, us, ms, s, min)";
                let parts = || {
                    let (base, range) = rest.strip_prefix(':')?.split_once('+')?;
                    let (from, to) = range.split_once("..")?;
                    let (from, to) = (range_end(from)?, range_end(to)?);
                    (is_name(base) && from <= to).then(|| Hole::After { base: base.to_owned(), from, to })
                };
                parts().ok_or_else(|| error(help))
            }
            _ if word == "word" || KINDS.iter().any(|(known, _)| *known == word) => Err(error(&format!(
                "write {{{{{word}}}}} or {{{{{word}:NAME}}}}, with a name of letters, digits and _"
            ))),
            _ => Err(unknown(text, word)),
        }
    }

    /// The name that it binds, with the kind that the name has.
    pub fn binds(&self) -> Option<(Namespace, &str)> {
        match self {
            Hole::Token { kind, name: Some(name) } => Some((Namespace::Token(*kind), name)),
            Hole::Word { name: Some(name) } => Some((Namespace::Word, name)),
            _ => None,
        }
    }

    /// The name that must be bound elsewhere, with the kind that it must have.
    pub fn uses(&self) -> Option<(Namespace, &str)> {
        match self {
            Hole::Number { than: Operand::Name(name), .. } => {
                Some((Namespace::Token(TokenKind::Number), name))
            }
            Hole::After { base, .. } => Some((Namespace::Token(TokenKind::Ts), base)),
            _ => None,
        }
    }
}

/// What a name is a name of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Namespace {
    /// Values of tokens of this kind.
    Token(TokenKind),
    /// Words.
    Word,
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Namespace::Word => f.write_str("word"),
            Namespace::Token(kind) => f.write_str(word_of(*kind)),
        }
    }
}

fn range_end(text: &str) -> Option<Nanoseconds> {
    parse_duration(text).ok().map(Nanoseconds)
}

fn word_of(kind: TokenKind) -> &'static str {
    KINDS.iter().find(|(_, known)| *known == kind).map_or("", |(word, _)| word)
}

fn unknown(text: &str, word: &str) -> SyntaxError {
    let words = KINDS.iter().map(|(word, _)| *word).chain(["word", "re", "lit"]);
    let help = did_you_mean(word, words).unwrap_or_else(|| {
        let words: Vec<&str> = KINDS.iter().map(|(word, _)| *word).collect();
        format!("holes are {}, word, .., re:... and lit:{{{{", words.join(", "))
    });
    SyntaxError::new(0..text.len(), format!("unknown hole `{{{{{text}}}}}`")).with_help(help)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl fmt::Display for Hole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |f: &mut fmt::Formatter<'_>, word: &str, name: &Option<String>| match name {
            Some(name) => write!(f, "{{{{{word}:{name}}}}}"),
            None => write!(f, "{{{{{word}}}}}"),
        };
        match self {
            Hole::Token { kind, name } => named(f, word_of(*kind), name),
            Hole::Word { name } => named(f, "word", name),
            Hole::Number { relation, than: Operand::Literal(number) } => {
                write!(f, "{{{{n{relation}{number}}}}}")
            }
            Hole::Number { relation, than: Operand::Name(name) } => write!(f, "{{{{n{relation}{name}}}}}"),
            Hole::After { base, from, to } => write!(f, "{{{{ts:{base}+{from}..{to}}}}}"),
            Hole::Rest => f.write_str("{{..}}"),
            Hole::Regex(pattern) => write!(f, "{{{{re:{}}}}}", pattern.source),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn hole() -> impl Strategy<Value = Hole> {
        let name = || prop::option::of("[A-Z][A-Z0-9_]{0,3}");
        prop_oneof![
            (0..KINDS.len(), name()).prop_map(|(at, name)| Hole::Token { kind: KINDS[at].1, name }),
            name().prop_map(|name| Hole::Word { name }),
            (0..RELATIONS.len(), any::<u64>())
                .prop_map(|(at, n)| Hole::Number { relation: RELATIONS[at].1, than: Operand::Literal(n) }),
            (0..RELATIONS.len(), "[A-Z]{1,3}")
                .prop_map(|(at, n)| Hole::Number { relation: RELATIONS[at].1, than: Operand::Name(n) }),
            ("[A-Z]{1,3}", 0..u64::from(u32::MAX), 0..u64::from(u32::MAX)).prop_map(|(base, from, more)| {
                Hole::After { base, from: Nanoseconds(from), to: Nanoseconds(from + more) }
            }),
            "[a-z+*]{0,3}[a-z]"
                .prop_filter_map("valid", |source| HoleRegex::new(&source).ok().map(Hole::Regex)),
        ]
    }

    proptest! {
        #[test]
        fn print_and_parse_are_inverse(hole in hole()) {
            let text = hole.to_string();
            prop_assert_eq!(Hole::parse(&text[2..text.len() - 2]), Ok(hole));
        }

        #[test]
        fn any_text_is_a_hole_or_an_error(
            text in prop_oneof![".{0,30}", "(n|ts|ptr|word|re|prt)(:|[<>=!]{1,2}|\\+)?[A-Z0-9a-z.+]{0,12}"],
        ) {
            match Hole::parse(&text) {
                Ok(hole) => {
                    let printed = hole.to_string();
                    prop_assert_eq!(Hole::parse(&printed[2..printed.len() - 2]), Ok(hole));
                }
                Err(error) => {
                    prop_assert_eq!(error.span, 0..text.len());
                    prop_assert!(!error.message.is_empty());
                }
            }
        }
    }

    #[test]
    fn each_kind_has_its_unnamed_hole() {
        for (word, kind) in KINDS {
            assert_eq!(*Hole::unnamed(kind), Hole::Token { kind, name: None }, "{word}");
        }
    }

    #[test]
    fn errors_have_help() {
        let error = |text: &str| {
            let error = Hole::parse(text).expect_err(text);
            format!("{} | {}", error.message, error.help.unwrap_or_default())
        };
        assert_eq!(error("prt:A"), "unknown hole `{{prt:A}}` | did you mean `ptr`?");
        assert!(error("ptr:a b").contains("with a name of letters"));
        assert!(error("n>").contains("{{n>=1}}"));
        assert!(error("n>=-1").contains("{{n>=1}}"));
        assert!(error("ts:T0+5us").contains("1200us..1300us"));
        assert!(error("ts:T0+5us..4us").contains("1200us..1300us"));
        assert!(error("re:(").contains("is not a regular expression"));
        assert!(error("re:a)(b").contains("is not a regular expression"));
        assert!(error("re:").contains("empty"));
        assert!(error("").contains("unknown hole"));
    }
}
