//! What names mean in one trial.

use std::collections::BTreeMap;
use std::fmt;

use camino::Utf8PathBuf;
use formats::units::Timestamp;
use formats::{TokenKind, number};

use crate::language::hole::{Hole, Namespace, Operand, is_injective};

/// Where a golden and a capture met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindingSite {
    /// The golden.
    pub golden: Utf8PathBuf,
    /// Its line, from 1.
    pub golden_line: usize,
    /// The capture's line, from 1.
    pub capture_line: usize,
}

impl fmt::Display for BindingSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} (line {} of the capture)", self.golden, self.golden_line, self.capture_line)
    }
}

/// A name and a value that do not go together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conflict {
    /// A name stands for another value already.
    OtherValue {
        /// The name.
        name: String,
        /// Its value, and where it was bound.
        bound: (String, BindingSite),
        /// The value here.
        here: (String, BindingSite),
    },
    /// A value has another name already.
    OtherName {
        /// The value.
        value: String,
        /// Its name, and where it was bound.
        bound: (String, BindingSite),
        /// The name here.
        here: (String, BindingSite),
    },
    /// A number or a time does not relate to a bound one as the hole says.
    Unrelated {
        /// The hole.
        hole: String,
        /// The value that it refers to, and where that was bound.
        bound: (String, BindingSite),
        /// The value here.
        here: (String, BindingSite),
    },
    /// A hole refers to a name that nothing has bound so far.
    Unbound {
        /// The hole.
        hole: String,
        /// The value here.
        here: (String, BindingSite),
    },
}

impl Conflict {
    /// Where the conflict was noticed.
    pub fn here(&self) -> &BindingSite {
        match self {
            Conflict::OtherValue { here, .. }
            | Conflict::OtherName { here, .. }
            | Conflict::Unrelated { here, .. }
            | Conflict::Unbound { here, .. } => &here.1,
        }
    }
}

impl fmt::Display for Conflict {
    /// One line that says what is wrong, and one for each place.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let here = match self {
            Conflict::OtherValue { name, bound, here } => {
                writeln!(f, "{name} is one object in the golden, and two in the capture:")?;
                writeln!(f, "    {} at {}", bound.0, bound.1)?;
                here
            }
            Conflict::OtherName { value, bound, here } => {
                writeln!(f, "{value} is one object in the capture, and two in the golden:")?;
                writeln!(f, "    {} at {}", bound.0, bound.1)?;
                here
            }
            Conflict::Unrelated { hole, bound, here } => {
                writeln!(f, "`{hole}` does not hold:")?;
                writeln!(f, "    {} at {}", bound.0, bound.1)?;
                here
            }
            Conflict::Unbound { hole, here } => {
                writeln!(f, "`{hole}` refers to a name that no earlier line has bound:")?;
                here
            }
        };
        write!(f, "    {} at {}", here.0, here.1)
    }
}

/// The meaning of names, for all captures of a trial.
#[derive(Debug, Default, Clone)]
pub struct Bindings {
    values: BTreeMap<(Namespace, String), (Vec<u8>, BindingSite)>,
    names: BTreeMap<(Namespace, Vec<u8>), (String, BindingSite)>,
}

impl Bindings {
    /// Nothing is bound yet.
    pub fn new() -> Bindings {
        Bindings::default()
    }

    /// The value that a name stands for.
    pub fn value(&self, namespace: Namespace, name: &str) -> Option<&[u8]> {
        self.values.get(&(namespace, name.to_owned())).map(|(value, _)| value.as_slice())
    }

    /// The name that a value has.
    pub fn name(&self, namespace: Namespace, value: &[u8]) -> Option<&str> {
        self.names.get(&(namespace, value.to_owned())).map(|(name, _)| name.as_str())
    }

    /// A hole met a value: bind its name, or check what it says.
    ///
    /// # Errors
    /// The conflict; what was bound before stays.
    pub fn bind_or_check(
        &mut self,
        hole: &Hole,
        value: &[u8],
        site: &BindingSite,
    ) -> Result<(), Box<Conflict>> {
        if let Some((namespace, name)) = hole.binds() {
            return self.bind(namespace, name, value, site);
        }
        let Some((namespace, name)) = hole.uses() else { return Ok(()) };
        let here = (shown(value), site.clone());
        let Some(bound) = self.values.get(&(namespace, name.to_owned())) else {
            return Err(Box::new(Conflict::Unbound { hole: hole.to_string(), here }));
        };
        if relates(hole, &bound.0, value) {
            return Ok(());
        }
        Err(Box::new(Conflict::Unrelated {
            hole: hole.to_string(),
            bound: (shown(&bound.0), bound.1.clone()),
            here,
        }))
    }

    fn bind(
        &mut self,
        namespace: Namespace,
        name: &str,
        value: &[u8],
        site: &BindingSite,
    ) -> Result<(), Box<Conflict>> {
        if let Some(bound) = self.values.get(&(namespace, name.to_owned())) {
            if bound.0 == value {
                return Ok(());
            }
            return Err(Box::new(Conflict::OtherValue {
                name: name.to_owned(),
                bound: (shown(&bound.0), bound.1.clone()),
                here: (shown(value), site.clone()),
            }));
        }
        let injective = matches!(namespace, Namespace::Token(kind) if is_injective(kind));
        if let Some(bound) = self.names.get(&(namespace, value.to_owned())).filter(|_| injective) {
            return Err(Box::new(Conflict::OtherName {
                value: shown(value),
                bound: bound.clone(),
                here: (name.to_owned(), site.clone()),
            }));
        }
        self.values.insert((namespace, name.to_owned()), (value.to_owned(), site.clone()));
        self.names.insert((namespace, value.to_owned()), (name.to_owned(), site.clone()));
        Ok(())
    }
}

/// Whether a value relates to a bound one as the hole says.
fn relates(hole: &Hole, bound: &[u8], value: &[u8]) -> bool {
    match hole {
        Hole::Number { relation, than: Operand::Name(_) } => {
            let numbers = number(bound).zip(number(value));
            numbers.is_some_and(|(bound, value)| relation.holds(value.cmp(&bound)))
        }
        Hole::After { from, to, .. } => {
            let times = nanoseconds(bound).zip(nanoseconds(value));
            times.is_some_and(|(bound, value)| {
                value.checked_sub(bound).is_some_and(|distance| (from.0..=to.0).contains(&distance))
            })
        }
        _ => true,
    }
}

fn nanoseconds(text: &[u8]) -> Option<u64> {
    Timestamp::read(text)?.nanoseconds()
}

/// A value as it is shown. Bytes that are not text are escaped.
fn shown(value: &[u8]) -> String {
    std::str::from_utf8(value).map_or_else(|_| value.escape_ascii().to_string(), str::to_owned)
}

impl From<TokenKind> for Namespace {
    fn from(kind: TokenKind) -> Namespace {
        Namespace::Token(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(line: usize) -> BindingSite {
        BindingSite { golden: "g".into(), golden_line: line, capture_line: line }
    }

    fn check(bindings: &mut Bindings, hole: &str, value: &str) -> Result<(), String> {
        let hole = Hole::parse(hole).expect("valid");
        bindings.bind_or_check(&hole, value.as_bytes(), &site(1)).map_err(|c| c.to_string())
    }

    #[test]
    fn numbers_may_be_equal_and_objects_not() {
        let mut bindings = Bindings::new();
        assert_eq!(check(&mut bindings, "n:HITS", "3"), Ok(()));
        assert_eq!(check(&mut bindings, "n:ROWS", "3"), Ok(()));
        assert_eq!(check(&mut bindings, "ptr:A", "3"), Ok(()));
        assert!(check(&mut bindings, "ptr:B", "3").expect_err("one object").contains("two in the golden"));
        assert!(check(&mut bindings, "ptr:A", "4").expect_err("two objects").contains("two in the capture"));
        assert_eq!(check(&mut bindings, "word:W", "x"), Ok(()));
        assert!(check(&mut bindings, "word:W", "y").is_err());
    }

    #[test]
    fn numbers_relate_to_named_ones() {
        let mut bindings = Bindings::new();
        assert_eq!(check(&mut bindings, "n:HITS", "3"), Ok(()));
        assert_eq!(check(&mut bindings, "n==HITS", "3"), Ok(()));
        assert_eq!(check(&mut bindings, "n>HITS", "4"), Ok(()));
        assert!(check(&mut bindings, "n<HITS", "3").expect_err("not less").contains("does not hold"));
        assert!(check(&mut bindings, "n==ROWS", "3").expect_err("unbound").contains("no earlier line"));
    }

    #[test]
    fn times_relate_to_named_ones() {
        let mut bindings = Bindings::new();
        assert_eq!(check(&mut bindings, "ts:T0", "1.000100"), Ok(()));
        assert_eq!(check(&mut bindings, "ts:T0+1200us..1300us", "1.001300"), Ok(()));
        assert_eq!(check(&mut bindings, "ts:T0+1200us..1300us", "1.001400"), Ok(()));
        assert!(check(&mut bindings, "ts:T0+1200us..1300us", "1.001401").is_err());
        assert!(check(&mut bindings, "ts:T0+0ns..1s", "0.9").is_err());
    }

    #[test]
    fn values_are_compared_by_their_bytes() {
        let mut bindings = Bindings::new();
        let word = Hole::parse("word:W").expect("valid");
        assert_eq!(bindings.bind_or_check(&word, b"\xff", &site(1)), Ok(()));
        assert_eq!(bindings.bind_or_check(&word, b"\xff", &site(2)), Ok(()));
        let conflict = bindings.bind_or_check(&word, b"\xfe", &site(3)).expect_err("another value");
        assert_eq!(
            conflict.to_string(),
            "W is one object in the golden, and two in the capture:\n    \
             \\xff at g:1 (line 1 of the capture)\n    \\xfe at g:3 (line 3 of the capture)"
        );
    }
}
