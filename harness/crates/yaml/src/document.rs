//! One parsed YAML file and its nodes.

use camino::{Utf8Path, Utf8PathBuf};
use diagnostic::{Diagnostic, Span};
use serde_yaml::Value;

use super::place::{Point, ValuePlace};

/// A YAML file: its name, its text, its value, and the place of everything in it.
#[derive(Debug)]
pub struct Document {
    file: Utf8PathBuf,
    text: String,
    root: Value,
    place: Option<ValuePlace>,
}

/// A value in a [`Document`], with its place.
#[derive(Debug, Clone)]
pub struct Node<'d> {
    pub(super) value: &'d Value,
    document: &'d Document,
    /// Where its key begins; where it does when it has none.
    key: Point,
    at: Point,
    place: Option<&'d ValuePlace>,
}

impl Document {
    /// Parse `text`; `file` is the name to show in diagnostics.
    ///
    /// # Errors
    /// A diagnostic for text that is not one YAML document, or that gives a key twice.
    pub fn parse(file: impl AsRef<Utf8Path>, text: impl Into<String>) -> Result<Document, Diagnostic> {
        let file = file.as_ref().to_owned();
        let text = text.into();
        match serde_yaml::from_str::<Value>(&text) {
            Ok(root) => Ok(Document { place: ValuePlace::of_text(&text), file, text, root }),
            Err(error) => {
                let (line, column) = error.location().map_or((1, 1), |at| (at.line(), at.column()));
                let mut message = error.to_string();
                if let Some(end) = message.rfind(" at line ") {
                    message.truncate(end);
                }
                Err(Diagnostic {
                    file,
                    span: Span { line, column, width: 1 },
                    message,
                    help: None,
                    source_line: text.lines().nth(line - 1).unwrap_or_default().to_owned(),
                })
            }
        }
    }

    /// The document's value.
    pub fn root(&self) -> Node<'_> {
        let place = self.place.as_ref();
        let at = place.map_or(Point::START, |place| place.at);
        Node { value: &self.root, document: self, key: at, at, place }
    }

    /// An error at a place; what is marked ends where `is_end` holds.
    fn error(&self, at: Point, message: String, is_end: fn(char) -> bool) -> Diagnostic {
        let Point { line, column } = at;
        let source_line = self.text.lines().nth(line - 1).unwrap_or_default().to_owned();
        let width = source_line.chars().skip(column - 1).take_while(|c| !is_end(*c)).count();
        Diagnostic {
            file: self.file.clone(),
            span: Span { line, column, width: width.max(1) },
            message,
            help: None,
            source_line,
        }
    }
}

impl<'d> Node<'d> {
    /// The line in which the value begins, from 1.
    pub fn line(&self) -> usize {
        self.at.line
    }

    /// The value, when it is text.
    pub fn text(&self) -> Option<&str> {
        self.value.as_str()
    }

    /// Whether it is this word.
    pub fn is(&self, word: &str) -> bool {
        self.value.as_str() == Some(word)
    }

    /// Whether the value is a mapping with this key.
    pub fn has(&self, key: &str) -> bool {
        self.value.get(key).is_some()
    }

    /// The value as a range of numbers, `7..9` with both ends, or as one number.
    pub fn range(&self) -> Option<(usize, usize)> {
        if let Some(number) = self.value.as_u64() {
            let number = usize::try_from(number).ok()?;
            return Some((number, number));
        }
        let (from, to) = self.value.as_str()?.split_once("..")?;
        let (from, to) = (from.parse().ok()?, to.parse().ok()?);
        (from <= to && to - from < 100_000).then_some((from, to))
    }

    /// An error at this node's value.
    pub fn error(&self, message: impl Into<String>) -> Diagnostic {
        self.document.error(self.at, message.into(), char::is_whitespace)
    }

    /// An error at this node's key (at its value, where it has no key of its own).
    pub fn key_error(&self, message: impl Into<String>) -> Diagnostic {
        self.document.error(self.key, message.into(), |c| c == ':')
    }

    /// The value of a mapping's `key`, which is there.
    pub(super) fn entry(&self, key: &str, value: &'d Value) -> Node<'d> {
        let entry = self.place.and_then(|place| place.entry(key));
        let (key, at) = entry.map_or((self.key, self.at), |entry| (entry.at, entry.value.at));
        Node { value, document: self.document, key, at, place: entry.map(|entry| &entry.value) }
    }

    /// An item of a list, which is there, from 0.
    pub(super) fn item(&self, index: usize, value: &'d Value) -> Node<'d> {
        let place = self.place.and_then(|place| place.item(index));
        let at = place.map_or(self.at, |place| place.at);
        Node { value, document: self.document, key: at, at, place }
    }
}
