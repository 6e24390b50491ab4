//! Conditions of `#@ if`: which kernel and machine a part of a golden is for.
//!
//! ```text
//! expression = and { "||" and }
//! and        = not { "&&" not }
//! not        = "!" not | "(" expression ")" | atom
//! atom       = "arch" ("==" | "!=") ARCH | "kernel" RELATION VERSION | "config." SYMBOL | "feature." NAME
//! ```
//!
//! A version is compared in the parts that are written: with Linux 7.2.12, `kernel == 7.2` and
//! `kernel <= 7.2` hold and `kernel > 7.2` does not.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;

use arch::Arch;
use diagnostic::did_you_mean;
use serde::{Deserialize, Serialize};

use super::SyntaxError;

/// What a golden's conditions are about: the guest of the trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The architecture, such as `ppc64le`.
    pub arch: String,
    /// The kernel's version, `MAJOR.MINOR.PATCH`.
    pub kernel: Vec<u32>,
    /// Config symbols that are on, without `CONFIG_`.
    pub config: BTreeSet<String>,
    /// Features that are there, of [`FEATURES`].
    pub features: BTreeSet<String>,
}

/// Features that a condition may name: `kvm`, the guest runs under KVM.
pub const FEATURES: [&str; 1] = ["kvm"];

impl Facts {
    /// The numbers at the start of a kernel's release: 7, 2 and 12 of `7.2.12-custom`.
    pub fn version_of(release: &str) -> Vec<u32> {
        let end = release.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(release.len());
        release[..end].split('.').map_while(|part| part.parse().ok()).collect()
    }
}

/// A condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// One of them holds; at least two.
    Any(Vec<Condition>),
    /// All of them hold; at least two.
    All(Vec<Condition>),
    /// It does not hold.
    Not(Box<Condition>),
    /// The architecture is this one.
    Arch(String),
    /// The kernel's version relates so to this one.
    Kernel(Relation, Vec<u32>),
    /// The config symbol is on.
    Config(String),
    /// The feature is there.
    Feature(String),
}

/// How two numbers or versions relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<=`
    AtMost,
    /// `>=`
    AtLeast,
    /// `<`
    Less,
    /// `>`
    Greater,
}

/// Longer spellings come first, as a reader takes the first that fits.
pub(super) const RELATIONS: [(&str, Relation); 6] = [
    ("==", Relation::Equal),
    ("!=", Relation::NotEqual),
    ("<=", Relation::AtMost),
    (">=", Relation::AtLeast),
    ("<", Relation::Less),
    (">", Relation::Greater),
];

impl Relation {
    /// Whether it holds for values that compare so.
    pub fn holds(self, ordering: Ordering) -> bool {
        match self {
            Relation::Equal => ordering.is_eq(),
            Relation::NotEqual => ordering.is_ne(),
            Relation::AtMost => ordering.is_le(),
            Relation::AtLeast => ordering.is_ge(),
            Relation::Less => ordering.is_lt(),
            Relation::Greater => ordering.is_gt(),
        }
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spelling = RELATIONS.iter().find(|(_, relation)| relation == self).map_or("", |(text, _)| text);
        f.write_str(spelling)
    }
}

impl Condition {
    pub(super) fn parse(text: &str) -> Result<Condition, SyntaxError> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let condition = parser.any()?;
        parser.skip_spaces();
        if parser.at < text.len() {
            return Err(parser
                .error("extra text after the condition")
                .with_help("join conditions with && or ||"));
        }
        Ok(condition)
    }

    /// Whether it holds for a guest.
    pub fn holds(&self, facts: &Facts) -> bool {
        match self {
            Condition::Any(parts) => parts.iter().any(|part| part.holds(facts)),
            Condition::All(parts) => parts.iter().all(|part| part.holds(facts)),
            Condition::Not(inner) => !inner.holds(facts),
            Condition::Arch(arch) => facts.arch == *arch,
            Condition::Kernel(relation, version) => {
                let part = |at: usize| facts.kernel.get(at).copied().unwrap_or(0);
                let found: Vec<u32> = (0..version.len()).map(part).collect();
                relation.holds(found.cmp(version))
            }
            Condition::Config(symbol) => facts.config.contains(symbol),
            Condition::Feature(name) => facts.features.contains(name),
        }
    }
}

impl std::str::FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Condition, String> {
        Condition::parse(text).map_err(|error| error.message)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut fmt::Formatter<'_>, parts: &[Condition], join: &str| {
            for (at, part) in parts.iter().enumerate() {
                f.write_str(if at == 0 { "" } else { join })?;
                // `&&` binds closer than `||`; an `All` directly in an `All` keeps its own brackets.
                let bare = match part {
                    Condition::Any(_) => false,
                    Condition::All(_) => join == " || ",
                    _ => true,
                };
                if bare { write!(f, "{part}")? } else { write!(f, "({part})")? }
            }
            Ok(())
        };
        match self {
            Condition::Any(parts) => joined(f, parts, " || "),
            Condition::All(parts) => joined(f, parts, " && "),
            Condition::Not(inner) => match **inner {
                Condition::Any(_) | Condition::All(_) => write!(f, "!({inner})"),
                _ => write!(f, "!{inner}"),
            },
            Condition::Arch(arch) => write!(f, "arch == {arch}"),
            Condition::Kernel(relation, version) => {
                let parts: Vec<String> = version.iter().map(ToString::to_string).collect();
                write!(f, "kernel {relation} {}", parts.join("."))
            }
            Condition::Config(symbol) => write!(f, "config.{symbol}"),
            Condition::Feature(name) => write!(f, "feature.{name}"),
        }
    }
}

/// How deep conditions may be nested.
const DEPTH_MAX: usize = 50;

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    /// An error at the next word.
    fn error(&self, message: impl Into<String>) -> SyntaxError {
        let next = self.text[self.at..].chars().next().map_or(1, char::len_utf8);
        SyntaxError::new(self.at..self.at + self.word().len().max(next), message)
    }

    fn skip_spaces(&mut self) {
        self.at += self.text[self.at..].len() - self.text[self.at..].trim_start_matches(' ').len();
    }

    fn skip(&mut self, what: &str) -> bool {
        self.skip_spaces();
        let found = self.text[self.at..].starts_with(what);
        if found {
            self.at += what.len();
        }
        found
    }

    /// The letters, digits, dots and underscores that come next.
    fn word(&self) -> &str {
        let rest = &self.text[self.at..];
        let end =
            rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '_').unwrap_or(rest.len());
        &rest[..end]
    }

    fn next_word(&mut self) -> String {
        self.skip_spaces();
        let word = self.word().to_owned();
        self.at += word.len();
        word
    }

    fn any(&mut self) -> Result<Condition, SyntaxError> {
        let mut parts = vec![self.all()?];
        while self.skip("||") {
            parts.push(self.all()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Condition::Any(parts) })
    }

    fn all(&mut self) -> Result<Condition, SyntaxError> {
        let mut parts = vec![self.not()?];
        while self.skip("&&") {
            parts.push(self.not()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Condition::All(parts) })
    }

    fn not(&mut self) -> Result<Condition, SyntaxError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.error(format!("conditions are nested deeper than {DEPTH_MAX}")));
        }
        let condition = if self.skip("!") {
            Condition::Not(Box::new(self.not()?))
        } else if self.skip("(") {
            let inner = self.any()?;
            if !self.skip(")") {
                return Err(self.error("unclosed `(`").with_help("add `)`"));
            }
            inner
        } else {
            self.atom()?
        };
        self.depth -= 1;
        Ok(condition)
    }

    fn atom(&mut self) -> Result<Condition, SyntaxError> {
        self.skip_spaces();
        let start = self.at;
        let word = self.next_word();
        if let Some(symbol) = word.strip_prefix("config.") {
            let named = symbol.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !symbol.is_empty();
            if named && !symbol.starts_with("CONFIG_") {
                return Ok(Condition::Config(symbol.to_owned()));
            }
            self.at = start;
            return Err(self
                .error(format!("`{word}` does not name a config symbol"))
                .with_help("write config.NAME, without CONFIG_"));
        }
        if let Some(name) = word.strip_prefix("feature.") {
            return self.known(start, "feature.", name, &FEATURES).map(Condition::Feature);
        }
        match word.as_str() {
            "arch" => self.arch(),
            "kernel" => self.kernel(),
            _ => {
                self.at = start;
                let known = ["arch", "kernel", "config.", "feature."];
                let help = did_you_mean(&word, known).unwrap_or_else(|| {
                    "a condition is about arch, kernel, config.NAME or feature.NAME".to_owned()
                });
                Err(self.error(format!("unknown condition `{word}`")).with_help(help))
            }
        }
    }

    fn known(&mut self, start: usize, what: &str, name: &str, known: &[&str]) -> Result<String, SyntaxError> {
        if known.contains(&name) {
            return Ok(name.to_owned());
        }
        self.at = start;
        let help = did_you_mean(name, known.iter().copied()).unwrap_or_else(|| {
            format!("known: {}", known.iter().map(|k| format!("{what}{k}")).collect::<Vec<_>>().join(", "))
        });
        Err(self.error(format!("unknown `{what}{name}`")).with_help(help))
    }

    fn relation(&mut self) -> Option<Relation> {
        RELATIONS.iter().find(|(text, _)| self.skip(text)).map(|(_, relation)| *relation)
    }

    fn arch(&mut self) -> Result<Condition, SyntaxError> {
        let relation = self.relation();
        self.skip_spaces();
        let start = self.at;
        let name = self.next_word();
        let arch = Condition::Arch(self.known(start, "", &name, &Arch::names().collect::<Vec<_>>())?);
        match relation {
            Some(Relation::Equal) => Ok(arch),
            Some(Relation::NotEqual) => Ok(Condition::Not(Box::new(arch))),
            _ => Err(self.error("an architecture is compared with == or !=").with_help("write arch == NAME")),
        }
    }

    fn kernel(&mut self) -> Result<Condition, SyntaxError> {
        let help = "write kernel >= 7.2, with ==, !=, <, <=, > or >=";
        let Some(relation) = self.relation() else {
            return Err(self.error("expected a comparison after `kernel`").with_help(help));
        };
        self.skip_spaces();
        let start = self.at;
        let word = self.next_word();
        let version: Option<Vec<u32>> = word.split('.').map(|part| part.parse().ok()).collect();
        match version {
            Some(version) if version.len() <= 3 => Ok(Condition::Kernel(relation, version)),
            _ => {
                self.at = start;
                Err(self.error(format!("`{word}` is not a version")).with_help(help))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn facts() -> Facts {
        Facts {
            arch: "ppc64le".to_owned(),
            kernel: Facts::version_of("7.2.12-goldtrace-1"),
            config: BTreeSet::from(["SMP".to_owned()]),
            features: BTreeSet::new(),
        }
    }

    #[track_caller]
    fn holds(text: &str) -> bool {
        Condition::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}")).holds(&facts())
    }

    #[test]
    fn conditions_hold_or_do_not() {
        for text in [
            "arch == ppc64le",
            "arch != x86_64",
            "kernel == 7.2",
            "kernel <= 7.2",
            "kernel >= 7.2.12",
            "kernel > 6.18",
            "kernel < 8",
            "config.SMP",
            "!config.NUMA",
            "!feature.kvm",
            "arch == x86_64 || config.SMP && kernel == 7",
            "(arch == x86_64 || config.SMP) && !(kernel < 7)",
        ] {
            assert!(holds(text), "{text}");
        }
        for text in ["arch == x86_64", "kernel > 7.2", "kernel < 7.2.12", "config.NUMA", "!config.SMP"] {
            assert!(!holds(text), "{text}");
        }
    }

    #[test]
    fn errors_have_spans_and_help() {
        let error = |text: &str| {
            let error = Condition::parse(text).expect_err(text);
            format!("{}: {} | {}", error.span.start, error.message, error.help.unwrap_or_default())
        };
        assert_eq!(error("arhc == x86_64"), "0: unknown condition `arhc` | did you mean `arch`?");
        assert_eq!(error("arch == x86"), "8: unknown `x86` | did you mean `x86_64`?");
        assert_eq!(error("feature.kvn"), "0: unknown `feature.kvn` | did you mean `kvm`?");
        assert!(error("kernel >= seven").starts_with("10: `seven` is not a version"));
        assert!(error("config.CONFIG_SMP").contains("without CONFIG_"));
        assert!(error("(config.SMP").contains("unclosed `(`"));
        assert!(error("config.A config.B").starts_with("9: extra text"));
        assert!(error("").contains("unknown condition"));
        assert!(error(&"!".repeat(1000)).contains("nested deeper than 50"));
        assert!(error("arch < x86_64").contains("compared with == or !="));
        assert!(error("kernel").contains("expected a comparison"));
    }

    fn condition() -> impl Strategy<Value = Condition> {
        let atom = prop_oneof![
            prop::sample::select(&arch::ALL[..]).prop_map(|row| Condition::Arch(row.name.to_owned())),
            (0..RELATIONS.len(), prop::collection::vec(0_u32..30, 1..=3))
                .prop_map(|(at, version)| Condition::Kernel(RELATIONS[at].1, version)),
            "[A-B][A-Z0-9_]{0,5}".prop_map(Condition::Config),
            prop::sample::select(&FEATURES[..]).prop_map(|name| Condition::Feature(name.to_owned())),
        ];
        atom.prop_recursive(4, 20, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 2..=3).prop_map(Condition::Any),
                prop::collection::vec(inner.clone(), 2..=3).prop_map(Condition::All),
                inner.prop_map(|inner| Condition::Not(Box::new(inner))),
            ]
        })
    }

    proptest! {
        #[test]
        fn print_and_parse_are_inverse(condition in condition()) {
            let text = condition.to_string();
            prop_assert_eq!(Condition::parse(&text), Ok(condition), "{}", text);
        }

        #[test]
        fn any_text_is_a_condition_or_an_error(text in ".{0,40}") {
            match Condition::parse(&text) {
                Ok(condition) => prop_assert_eq!(Condition::parse(&condition.to_string()), Ok(condition)),
                Err(error) => prop_assert!(error.span.start <= text.len() && !error.message.is_empty()),
            }
        }
    }
}
