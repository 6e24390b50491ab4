//! What names mean in one trial.

use std::collections::BTreeMap;
use std::fmt;

use camino::Utf8PathBuf;

use crate::language::hole::{Hole, Namespace, Operand, is_injective};
use formats::units::Timestamp;
use formats::{TokenKind, number};

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
    values: BTreeMap<(Namespace, String), (String, BindingSite)>,
    names: BTreeMap<(Namespace, String), (String, BindingSite)>,
}

impl Bindings {
    /// Nothing is bound yet.
    pub fn new() -> Bindings {
        Bindings::default()
    }

    /// The value that a name stands for.
    pub fn value(&self, namespace: Namespace, name: &str) -> Option<&str> {
        self.values.get(&(namespace, name.to_owned())).map(|(value, _)| value.as_str())
    }

    /// The name that a value has.
    pub fn name(&self, namespace: Namespace, value: &str) -> Option<&str> {
        self.names.get(&(namespace, value.to_owned())).map(|(name, _)| name.as_str())
    }

    /// A hole met a value: bind its name, or check what it says.
    ///
    /// # Errors
    /// The conflict; what was bound before stays.
    pub fn bind_or_check(
        &mut self,
        hole: &Hole,
        value: &str,
        place: &BindingSite,
    ) -> Result<(), Box<Conflict>> {
        if let Some((namespace, name)) = hole.binds() {
            return self.bind(namespace, name, value, place);
        }
        let Some((namespace, name)) = hole.uses() else { return Ok(()) };
        let here = (value.to_owned(), place.clone());
        let Some(bound) = self.values.get(&(namespace, name.to_owned())) else {
            return Err(Box::new(Conflict::Unbound { hole: hole.to_string(), here }));
        };
        if relates(hole, &bound.0, value) {
            return Ok(());
        }
        Err(Box::new(Conflict::Unrelated { hole: hole.to_string(), bound: bound.clone(), here }))
    }

    fn bind(
        &mut self,
        namespace: Namespace,
        name: &str,
        value: &str,
        place: &BindingSite,
    ) -> Result<(), Box<Conflict>> {
        let here = |what: &str| (what.to_owned(), place.clone());
        if let Some(bound) = self.values.get(&(namespace, name.to_owned())) {
            if bound.0 == value {
                return Ok(());
            }
            return Err(Box::new(Conflict::OtherValue {
                name: name.to_owned(),
                bound: bound.clone(),
                here: here(value),
            }));
        }
        let injective = matches!(namespace, Namespace::Token(kind) if is_injective(kind));
        if let Some(bound) = self.names.get(&(namespace, value.to_owned())).filter(|_| injective) {
            return Err(Box::new(Conflict::OtherName {
                value: value.to_owned(),
                bound: bound.clone(),
                here: here(name),
            }));
        }
        self.values.insert((namespace, name.to_owned()), here(value));
        self.names.insert((namespace, value.to_owned()), here(name));
        Ok(())
    }
}

/// Whether a value relates to a bound one as the hole says.
fn relates(hole: &Hole, bound: &str, value: &str) -> bool {
    match hole {
        Hole::Number { relation, than: Operand::Name(_) } => {
            let numbers = number(bound.as_bytes()).zip(number(value.as_bytes()));
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

fn nanoseconds(text: &str) -> Option<u64> {
    Timestamp::read(text.as_bytes())?.nanoseconds()
}

impl From<TokenKind> for Namespace {
    fn from(kind: TokenKind) -> Namespace {
        Namespace::Token(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(line: usize) -> BindingSite {
        BindingSite { golden: "g".into(), golden_line: line, capture_line: line }
    }

    fn bind_or_check(bindings: &mut Bindings, hole: &str, value: &str) -> Result<(), String> {
        let hole = Hole::parse(hole).expect("valid");
        bindings.bind_or_check(&hole, value, &place(1)).map_err(|c| c.to_string())
    }

    #[test]
    fn numbers_may_be_equal_and_objects_not() {
        let mut bindings = Bindings::new();
        assert_eq!(bind_or_check(&mut bindings, "n:HITS", "3"), Ok(()));
        assert_eq!(bind_or_check(&mut bindings, "n:ROWS", "3"), Ok(()));
        assert_eq!(bind_or_check(&mut bindings, "ptr:A", "3"), Ok(()));
        assert!(
            bind_or_check(&mut bindings, "ptr:B", "3").expect_err("one object").contains("two in the golden")
        );
        assert!(
            bind_or_check(&mut bindings, "ptr:A", "4")
                .expect_err("two objects")
                .contains("two in the capture")
        );
        assert_eq!(bind_or_check(&mut bindings, "word:W", "x"), Ok(()));
        assert!(bind_or_check(&mut bindings, "word:W", "y").is_err());
    }

    #[test]
    fn numbers_relate_to_named_ones() {
        let mut bindings = Bindings::new();
        assert_eq!(bind_or_check(&mut bindings, "n:HITS", "3"), Ok(()));
        assert_eq!(bind_or_check(&mut bindings, "n==HITS", "3"), Ok(()));
        assert_eq!(bind_or_check(&mut bindings, "n>HITS", "4"), Ok(()));
        assert!(bind_or_check(&mut bindings, "n<HITS", "3").expect_err("not less").contains("does not hold"));
        assert!(
            bind_or_check(&mut bindings, "n==ROWS", "3").expect_err("unbound").contains("no earlier line")
        );
    }

    #[test]
    fn times_relate_to_named_ones() {
        let mut bindings = Bindings::new();
        assert_eq!(bind_or_check(&mut bindings, "ts:T0", "1.000100"), Ok(()));
        assert_eq!(bind_or_check(&mut bindings, "ts:T0+1200us..1300us", "1.001300"), Ok(()));
        assert_eq!(bind_or_check(&mut bindings, "ts:T0+1200us..1300us", "1.001400"), Ok(()));
        assert!(bind_or_check(&mut bindings, "ts:T0+1200us..1300us", "1.001401").is_err());
        assert!(bind_or_check(&mut bindings, "ts:T0+0ns..1s", "0.9").is_err());
    }
}
