//! Where a key or a value stands in a YAML text.
//!
//! serde_yaml's values carry no positions, but its errors do. So a position is found by walking
//! the text once more and refusing, on purpose, exactly the wanted key or value: the refusal comes
//! back as an error with line and column. That costs a pass for each question, and only faulty
//! files ask.

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// One step from a value to a value inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathStep {
    Key(String),
    Index(usize),
}

/// What is asked for at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// The key of the last step, which must be [`PathStep::Key`].
    Key,
    /// The value that the path leads to.
    Value,
}

/// Line and column, from 1, of a part of `text`; `None` when the path leads nowhere.
pub(super) fn locate(text: &str, path: &[PathStep], part: Target) -> Option<(usize, usize)> {
    let refused = Walk { path, part }.deserialize(serde_yaml::Deserializer::from_str(text));
    let location = refused.err()?.location()?;
    Some((location.line(), location.column()))
}

struct Walk<'p> {
    path: &'p [PathStep],
    part: Target,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.path.is_empty() {
            deserializer.deserialize_any(Refuse)
        } else {
            deserializer.deserialize_any(self)
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value that holds others")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut at = 0;
        loop {
            let found = match &self.path[0] {
                PathStep::Index(index) if *index == at => {
                    seq.next_element_seed(Walk { path: &self.path[1..], part: self.part })?
                }
                _ => seq.next_element::<IgnoredAny>()?.map(|_| ()),
            };
            if found.is_none() {
                return Ok(());
            }
            at += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let PathStep::Key(wanted) = &self.path[0] else {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(());
        };
        let refuse_key = self.part == Target::Key && self.path.len() == 1;
        while let Some(found) = map.next_key_seed(KeyIs { wanted, refuse: refuse_key })? {
            if found {
                map.next_value_seed(Walk { path: &self.path[1..], part: self.part })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// Tells whether a key is the wanted one, or refuses it when its own place is asked for.
struct KeyIs<'p> {
    wanted: &'p str,
    refuse: bool,
}

impl<'de> DeserializeSeed<'de> for KeyIs<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyIs<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<bool, E> {
        let found = key == self.wanted;
        if found && self.refuse { Err(E::custom("here")) } else { Ok(found) }
    }
}

/// Refuses whatever comes.
struct Refuse;

impl<'de> Visitor<'de> for Refuse {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("nothing: its place is asked for")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "title: One\nsteps:\n  - run: |\n      echo a\n  - read: /proc/version\n    capture: version\n";

    fn key(name: &str) -> PathStep {
        PathStep::Key(name.to_owned())
    }

    #[test]
    fn keys_and_values_are_found() {
        assert_eq!(locate(TEXT, &[key("title")], Target::Key), Some((1, 1)));
        assert_eq!(locate(TEXT, &[key("title")], Target::Value), Some((1, 8)));
        assert_eq!(
            locate(TEXT, &[key("steps"), PathStep::Index(1), key("capture")], Target::Key),
            Some((6, 5))
        );
        assert_eq!(
            locate(TEXT, &[key("steps"), PathStep::Index(1), key("capture")], Target::Value),
            Some((6, 14))
        );
        assert_eq!(locate(TEXT, &[key("steps"), PathStep::Index(1)], Target::Value), Some((5, 5)));
        assert_eq!(
            locate(TEXT, &[key("steps"), PathStep::Index(0), key("run")], Target::Value),
            Some((3, 10))
        );
    }

    #[test]
    fn a_path_that_leads_nowhere_has_no_place() {
        assert_eq!(locate(TEXT, &[key("absent")], Target::Key), None);
        assert_eq!(locate(TEXT, &[key("steps"), PathStep::Index(9)], Target::Value), None);
    }
}
