//! Typed values out of a document, with every fault collected.

use std::ops::RangeInclusive;
use std::time::Duration;

use diagnostic::{Diagnostic, did_you_mean};
use formats::units::{DURATION_HELP, parse_duration};
use serde_yaml::Value;

use super::document::Node;
use super::place::PathStep;

/// The durations that a file may ask for, in nanoseconds.
const DURATIONS: RangeInclusive<u64> = 1..=3_600_000_000_000;

/// Collects the faults of a document while typed values are taken out of it.
#[derive(Debug, Default)]
pub struct Reader {
    faults: Vec<Diagnostic>,
}

/// A mapping whose keys were checked against those that may stand there.
#[derive(Debug)]
pub struct Fields<'d> {
    node: Node<'d>,
}

impl Reader {
    /// A reader that has met no fault yet.
    pub fn new() -> Reader {
        Reader::default()
    }

    /// Add a fault found by the caller.
    pub fn report(&mut self, fault: Diagnostic) {
        self.faults.push(fault);
    }

    /// All faults so far, in the order of their places.
    pub fn into_errors(mut self) -> Vec<Diagnostic> {
        self.faults.sort_by(|a, b| (&a.file, a.span).cmp(&(&b.file, b.span)));
        self.faults
    }

    /// Take `node` as a mapping with no other keys than `allowed`.
    pub fn fields<'d>(&mut self, node: Node<'d>, allowed: &[&str]) -> Option<Fields<'d>> {
        let Value::Mapping(mapping) = node.value else {
            self.wrong_type(&node, "a mapping of keys to values");
            return None;
        };
        for key in mapping.keys() {
            let Value::String(name) = key else {
                self.report(node.error(format!("a key must be a word, and one here is {}", kind_of(key))));
                continue;
            };
            if !allowed.contains(&name.as_str()) {
                let help = did_you_mean(name, allowed.iter().copied())
                    .unwrap_or_else(|| format!("the keys that may stand here are {}", allowed.join(", ")));
                let fault =
                    node.child(PathStep::Key(name.clone()), key).key_error(format!("unknown key `{name}`"));
                self.report(fault.with_help(help));
            }
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
    pub fn number(&mut self, node: &Node<'_>, range: std::ops::RangeInclusive<u64>) -> Option<u64> {
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

    /// Take `node` as a duration of more than nothing and at most an hour, such as `500ms`, `10s` or `2min`.
    pub fn duration(&mut self, node: &Node<'_>) -> Option<Duration> {
        let Some(text) = node.value.as_str() else {
            let fault = node.error(format!("expected a duration, found {}", kind_of(node.value)));
            self.report(fault.with_help(DURATION_HELP));
            return None;
        };
        match parse_duration(text) {
            Ok(nanoseconds) if DURATIONS.contains(&nanoseconds) => Some(Duration::from_nanos(nanoseconds)),
            Ok(_) => {
                self.report(node.error(format!("`{text}` is not from 1ns to 60min")));
                None
            }
            Err(error) => {
                self.report(node.error(error.to_string()).with_help(DURATION_HELP));
                None
            }
        }
    }

    /// Take `node` as a list.
    pub fn list<'d>(&mut self, node: &Node<'d>) -> Option<Vec<Node<'d>>> {
        let Value::Sequence(items) = node.value else {
            self.wrong_type(node, "a list");
            return None;
        };
        Some(items.iter().enumerate().map(|(at, value)| node.child(PathStep::Index(at), value)).collect())
    }

    /// Take `node` as a list of lines of text.
    pub fn lines(&mut self, node: &Node<'_>) -> Option<Vec<String>> {
        let items = self.list(node)?;
        // All of them are read before any is given up, so that all faults are told.
        let lines: Vec<Option<String>> = items.iter().map(|item| self.line(item)).collect();
        lines.into_iter().collect()
    }

    /// A fault for a value of the wrong type.
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
        Some(self.node.child(PathStep::Key(key.to_owned()), value))
    }

    /// The value of `key`, or a fault when it is not there.
    pub fn need(&self, reader: &mut Reader, key: &str) -> Option<Node<'d>> {
        let found = self.get(key);
        if found.is_none() {
            reader.report(self.node.error(format!("missing key `{key}`")));
        }
        found
    }
}

impl<'d> Node<'d> {
    pub(super) fn child(&self, step: PathStep, value: &'d Value) -> Node<'d> {
        let mut path = self.path.clone();
        path.push(step);
        Node { document: self.document, path, value }
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

#[cfg(test)]
mod tests {
    use super::super::Document;
    use super::*;

    fn faults(text: &str, check: impl FnOnce(&mut Reader, &Document)) -> Vec<String> {
        let document = Document::parse("t.yaml", text).expect("valid YAML");
        let mut reader = Reader::new();
        check(&mut reader, &document);
        reader
            .into_errors()
            .iter()
            .map(|f| {
                format!(
                    "{}:{}: {} ({})",
                    f.span.line,
                    f.span.column,
                    f.message,
                    f.help.as_deref().unwrap_or("")
                )
            })
            .collect()
    }

    #[test]
    fn unknown_keys_are_all_reported_with_a_suggestion() {
        let found = faults("titel: x\nsteps: 1\nzzz: 2\n", |reader, document| {
            reader.fields(document.root(), &["title", "steps"]);
        });
        assert_eq!(
            found,
            [
                "1:1: unknown key `titel` (did you mean `title`?)",
                "3:1: unknown key `zzz` (the keys that may stand here are title, steps)",
            ]
        );
    }

    #[test]
    fn a_number_is_no_text() {
        let found = faults("title: 12\n", |reader, document| {
            let fields = reader.fields(document.root(), &["title"]).expect("a mapping");
            let node = fields.need(reader, "title").expect("there");
            assert_eq!(reader.text(&node), None);
        });
        assert_eq!(found, ["1:8: expected text, found the number 12 (put the value in quotes)"]);
    }

    #[test]
    fn a_key_given_twice_is_no_document() {
        let fault = Document::parse("t.yaml", "a: 1\na: 2\n").expect_err("twice");
        assert!(fault.message.contains("duplicate"), "{}", fault.message);
    }

    #[test]
    fn duration_is_from_a_nanosecond_to_an_hour() {
        let read = |text: &str| {
            let document = Document::parse("t.yaml", text).expect("valid YAML");
            Reader::new().duration(&document.root())
        };
        assert_eq!(read("500us"), Some(Duration::from_micros(500)));
        assert_eq!(read("60min"), Some(Duration::from_secs(3600)));
        let found = |text: &str| {
            faults(text, |reader, document| {
                assert_eq!(reader.duration(&document.root()), None);
            })
        };
        let help = format!("({DURATION_HELP})");
        assert_eq!(found("5"), [format!("1:1: expected a duration, found the number 5 {help}")]);
        assert_eq!(found("5h"), [format!("1:1: `5h` is not a duration: unknown unit {help}")]);
        assert_eq!(found("0s"), ["1:1: `0s` is not from 1ns to 60min ()"]);
        assert_eq!(found("61min"), ["1:1: `61min` is not from 1ns to 60min ()"]);
    }
}
