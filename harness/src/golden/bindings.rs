//! What names mean in one trial.

use std::collections::BTreeMap;
use std::fmt;

use camino::Utf8PathBuf;

use crate::normalise::TokenKind;

/// Where a golden and a capture met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The golden.
    pub golden: Utf8PathBuf,
    /// Its line, from 1.
    pub golden_line: usize,
    /// The capture's line, from 1.
    pub capture_line: usize,
}

impl fmt::Display for Place {
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
        bound: (String, Place),
        /// The value here.
        here: (String, Place),
    },
    /// A value has another name already.
    OtherName {
        /// The value.
        value: String,
        /// Its name, and where it was bound.
        bound: (String, Place),
        /// The name here.
        here: (String, Place),
    },
}

impl Conflict {
    /// Where the conflict was noticed.
    pub fn here(&self) -> &Place {
        match self {
            Conflict::OtherValue { here, .. } | Conflict::OtherName { here, .. } => &here.1,
        }
    }
}

impl fmt::Display for Conflict {
    /// One line that says what is wrong, and one for each of the two places.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bound, here) = match self {
            Conflict::OtherValue { name, bound, here } => {
                writeln!(f, "{name} is one object in the golden, and two in the capture:")?;
                (bound, here)
            }
            Conflict::OtherName { value, bound, here } => {
                writeln!(f, "{value} is one object in the capture, and two in the golden:")?;
                (bound, here)
            }
        };
        writeln!(f, "    {} at {}", bound.0, bound.1)?;
        write!(f, "    {} at {}", here.0, here.1)
    }
}

/// The meaning of names, for all captures of a trial.
#[derive(Debug, Default)]
pub struct Bindings {
    values: BTreeMap<(TokenKind, String), (String, Place)>,
    names: BTreeMap<(TokenKind, String), (String, Place)>,
}

impl Bindings {
    /// Nothing is bound yet.
    pub fn new() -> Bindings {
        Bindings::default()
    }

    /// Bind `name` to `value`, or check that it is bound so.
    ///
    /// # Errors
    /// The conflict; the older binding stays.
    pub fn bind(
        &mut self,
        kind: TokenKind,
        name: &str,
        value: &str,
        place: &Place,
    ) -> Result<(), Box<Conflict>> {
        let here = |what: &str| (what.to_owned(), place.clone());
        if let Some(bound) = self.values.get(&(kind, name.to_owned())) {
            if bound.0 == value {
                return Ok(());
            }
            return Err(Box::new(Conflict::OtherValue {
                name: name.to_owned(),
                bound: bound.clone(),
                here: here(value),
            }));
        }
        if let Some(bound) = self.names.get(&(kind, value.to_owned())) {
            return Err(Box::new(Conflict::OtherName {
                value: value.to_owned(),
                bound: bound.clone(),
                here: here(name),
            }));
        }
        self.values.insert((kind, name.to_owned()), here(value));
        self.names.insert((kind, value.to_owned()), here(name));
        Ok(())
    }
}
