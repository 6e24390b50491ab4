//! Typed values out of a document, with every error collected.

use std::ops::RangeInclusive;
use std::time::Duration;

use diagnostic::{Diagnostic, did_you_mean};
use formats::units::{DURATION_HELP, DurationError, parse_duration, parse_signed_duration};
use serde_yaml::Value;

use super::document::Node;

/// The durations that a file may ask for, in nanoseconds.
const DURATIONS: RangeInclusive<u64> = 1..=3_600_000_000_000;

/// Collects the errors of a document while typed values are taken out of it.
#[derive(Debug, Default)]
pub struct Reader {
    errors: Vec<Diagnostic>,
}

/// A mapping whose keys were checked against the known ones.
#[derive(Debug)]
pub struct Fields<'d> {
    node: Node<'d>,
}

impl Reader {
    /// A reader without errors.
    pub fn new() -> Reader {
        Reader::default()
    }

    /// Add an error found by the caller.
    pub fn report(&mut self, error: Diagnostic) {
        self.errors.push(error);
    }

    /// All errors so far, in the order of their places.
    pub fn into_errors(mut self) -> Vec<Diagnostic> {
        self.errors.sort_by(|a, b| (&a.file, a.span).cmp(&(&b.file, b.span)));
        self.errors
    }

    /// Take `node` as a mapping with no other keys than `known`.
    pub fn fields<'d>(&mut self, node: Node<'d>, known: &[&str]) -> Option<Fields<'d>> {
        self.fields_with_renames(node, known, &[])
    }

    /// Take `node` as a mapping with no other keys than `known`. Each of `renamed` is a key that files used
    /// to have, with what to write in its place.
    pub fn fields_with_renames<'d>(
        &mut self,
        node: Node<'d>,
        known: &[&str],
        renamed: &[(&str, &str)],
    ) -> Option<Fields<'d>> {
        let Value::Mapping(mapping) = node.value else {
            self.wrong_type(&node, "a mapping of keys to values");
            return None;
        };
        for key in mapping.keys() {
            let Value::String(name) = key else {
                self.report(node.error(format!("a key must be a word, found {}", kind_of(key))));
                continue;
            };
            if known.contains(&name.as_str()) {
                continue;
            }
            let key = node.entry(name, key);
            let error = match renamed.iter().find(|(old, _)| old == name) {
                Some((_, new)) => {
                    key.key_error(format!("`{name}` has been renamed")).with_help(format!("write {new}"))
                }
                None => {
                    let help = did_you_mean(name, known.iter().copied())
                        .unwrap_or_else(|| format!("known keys: {}", known.join(", ")));
                    key.key_error(format!("unknown key `{name}`")).with_help(help)
                }
            };
            self.report(error);
        }
        Some(Fields { node })
    }

    /// Take `node` as text. A number or a boolean is not text: it must be quoted.
    pub fn text(&mut self, node: &Node<'_>) -> Option<String> {
        match node.value {
            Value::String(text) => Some(text.clone()),
            Value::Number(_) | Value::Bool(_) => {
                self.report(
                    node.error(format!("expected text, found {}", kind_of(node.value)))
                        .with_help("put the value in quotes"),
                );
                None
            }
            _ => {
                self.wrong_type(node, "text");
                None
            }
        }
    }

    /// Take `node` as text that is not empty and has one line.
    pub fn line(&mut self, node: &Node<'_>) -> Option<String> {
        let text = self.text(node)?;
        if text.trim().is_empty() || text.contains('\n') {
            self.report(node.error("expected one line of text that is not empty"));
            return None;
        }
        Some(text)
    }

    /// Take `node` as a whole number in `range`.
    pub fn number(&mut self, node: &Node<'_>, range: RangeInclusive<u64>) -> Option<u64> {
        let Some(number) = node.value.as_u64() else {
            self.wrong_type(node, &format!("a whole number from {} to {}", range.start(), range.end()));
            return None;
        };
        if !range.contains(&number) {
            self.report(node.error(format!("{number} is not from {} to {}", range.start(), range.end())));
            return None;
        }
        Some(number)
    }

    /// Take `node` as `true` or `false`.
    pub fn boolean(&mut self, node: &Node<'_>) -> Option<bool> {
        let value = node.value.as_bool();
        if value.is_none() {
            self.wrong_type(node, "true or false");
        }
        value
    }

    /// Take `node` as a size in whole KiB or MiB, such as `64MiB`; the size in bytes.
    pub fn size(&mut self, node: &Node<'_>, range: RangeInclusive<u64>) -> Option<u64> {
        let Some(size) = node.value.as_str().and_then(parse_size) else {
            let error = node.error(format!("expected a size, found {}", kind_of(node.value)));
            self.report(error.with_help("write a whole number and its unit (KiB or MiB), such as 64MiB"));
            return None;
        };
        if !range.contains(&size) {
            let (from, to) = (show_size(*range.start()), show_size(*range.end()));
            self.report(node.error(format!("{} is not from {from} to {to}", show_size(size))));
            return None;
        }
        Some(size)
    }

    /// Take `node` as a duration of more than nothing and at most an hour, such as `500ms`, `10s` or `2min`.
    pub fn duration(&mut self, node: &Node<'_>) -> Option<Duration> {
        let (text, nanoseconds) = self.nanoseconds(node, parse_duration)?;
        if !DURATIONS.contains(&nanoseconds) {
            self.report(node.error(format!("`{text}` is not from 1ns to 60min")));
            return None;
        }
        Some(Duration::from_nanos(nanoseconds))
    }

    /// Take `node` as a duration that may be negative, such as `-5ms`, in nanoseconds.
    pub fn signed_duration(&mut self, node: &Node<'_>) -> Option<i64> {
        Some(self.nanoseconds(node, parse_signed_duration)?.1)
    }

    fn nanoseconds<'d, T>(
        &mut self,
        node: &Node<'d>,
        parse: fn(&str) -> Result<T, DurationError>,
    ) -> Option<(&'d str, T)> {
        let Some(text) = node.value.as_str() else {
            let error = node.error(format!("expected a duration, found {}", kind_of(node.value)));
            self.report(error.with_help(DURATION_HELP));
            return None;
        };
        match parse(text) {
            Ok(nanoseconds) => Some((text, nanoseconds)),
            Err(error) => {
                self.report(node.error(error.to_string()).with_help(DURATION_HELP));
                None
            }
        }
    }

    /// Take `node` as one of the names in `table`; `what` says what they are names of.
    pub fn choice<T: Clone>(&mut self, node: &Node<'_>, what: &str, table: &[(&str, T)]) -> Option<T> {
        let name = self.line(node)?;
        let found = table.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
        if found.is_none() {
            let known = || table.iter().map(|(known, _)| *known);
            let help = did_you_mean(&name, known())
                .unwrap_or_else(|| format!("known: {}", known().collect::<Vec<_>>().join(", ")));
            self.report(node.error(format!("unknown {what} `{name}`")).with_help(help));
        }
        found
    }

    /// Take `node` as a list.
    pub fn list<'d>(&mut self, node: &Node<'d>) -> Option<Vec<Node<'d>>> {
        let Value::Sequence(items) = node.value else {
            self.wrong_type(node, "a list");
            return None;
        };
        Some(items.iter().enumerate().map(|(at, value)| node.item(at, value)).collect())
    }

    /// Take `node` as a list and read each of its items. All are read before any is given up, so that
    /// the errors of all are reported.
    pub fn each<'d, T>(
        &mut self,
        node: &Node<'d>,
        mut read: impl FnMut(&mut Reader, Node<'d>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let items = self.list(node)?;
        let read: Vec<Option<T>> = items.into_iter().map(|item| read(self, item)).collect();
        read.into_iter().collect()
    }

    /// Take `node` as a list of lines of text.
    pub fn lines(&mut self, node: &Node<'_>) -> Option<Vec<String>> {
        self.each(node, |reader, item| reader.line(&item))
    }

    /// Report a value of the wrong type.
    pub fn wrong_type(&mut self, node: &Node<'_>, expected: &str) {
        self.report(node.error(format!("expected {expected}, found {}", kind_of(node.value))));
    }
}

impl<'d> Fields<'d> {
    /// The mapping itself.
    pub fn node(&self) -> &Node<'d> {
        &self.node
    }

    /// The value of `key`, when it is there. An explicit null is there.
    pub fn get(&self, key: &str) -> Option<Node<'d>> {
        let value = self.node.value.get(key)?;
        Some(self.node.entry(key, value))
    }

    /// The value of `key`, or an error when it is not there.
    pub fn need(&self, reader: &mut Reader, key: &str) -> Option<Node<'d>> {
        let found = self.get(key);
        if found.is_none() {
            reader.report(self.node.error(format!("missing key `{key}`")));
        }
        found
    }

    /// What `read` makes of the value of `key`: `Some(None)` without the key, `None` after an error.
    pub fn optional<T>(
        &self,
        reader: &mut Reader,
        key: &str,
        read: impl FnOnce(&mut Reader, &Node<'d>) -> Option<T>,
    ) -> Option<Option<T>> {
        match self.get(key) {
            Some(node) => read(reader, &node).map(Some),
            None => Some(None),
        }
    }
}

fn kind_of(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(b) => format!("the boolean {b}"),
        Value::Number(n) => format!("the number {n}"),
        Value::String(s) if s.lines().count() > 1 => "text of several lines".to_owned(),
        Value::String(s) => format!("the text `{s}`"),
        Value::Sequence(_) => "a list".to_owned(),
        Value::Mapping(_) => "a mapping".to_owned(),
        Value::Tagged(t) => format!("a value tagged {}", t.tag),
    }
}

fn parse_size(text: &str) -> Option<u64> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit_at);
    let shift = match unit {
        "KiB" => 10,
        "MiB" => 20,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// A size of whole KiB as [`Reader::size`] takes it.
pub fn show_size(bytes: u64) -> String {
    if bytes % (1 << 20) == 0 { format!("{}MiB", bytes >> 20) } else { format!("{}KiB", bytes >> 10) }
}

#[cfg(test)]
mod tests;
