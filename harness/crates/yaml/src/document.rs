//! One parsed YAML file and its nodes.

use camino::{Utf8Path, Utf8PathBuf};
use serde_yaml::Value;

use super::place::{PathStep, Target, locate};
use diagnostic::{Diagnostic, Span};

/// A YAML file: its name, its text and its value.
#[derive(Debug)]
pub struct Document {
    file: Utf8PathBuf,
    text: String,
    root: Value,
}

/// A value in a [`Document`], with the way that leads to it.
#[derive(Debug, Clone)]
pub struct Node<'d> {
    pub(super) document: &'d Document,
    pub(super) path: Vec<PathStep>,
    pub(super) value: &'d Value,
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
            Ok(root) => Ok(Document { file, text, root }),
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
        Node { document: self, path: Vec::new(), value: &self.root }
    }

    /// A fault at a node's key or value.
    pub(super) fn error(&self, path: &[PathStep], part: Target, message: String) -> Diagnostic {
        let (line, column) = locate(&self.text, path, part).unwrap_or((1, 1));
        let source_line = self.text.lines().nth(line - 1).unwrap_or_default().to_owned();
        let word: usize = source_line
            .chars()
            .skip(column - 1)
            .take_while(|c| if part == Target::Key { *c != ':' } else { !c.is_whitespace() })
            .count();
        Diagnostic {
            file: self.file.clone(),
            span: Span { line, column, width: word.max(1) },
            message,
            help: None,
            source_line,
        }
    }
}

impl Node<'_> {
    /// The line in which the value begins, from 1.
    pub fn line(&self) -> usize {
        self.error(String::new()).span.line
    }

    /// The value, when it is text.
    pub fn text(&self) -> Option<&str> {
        self.value.as_str()
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

    /// A fault of this node's value.
    pub fn error(&self, message: impl Into<String>) -> Diagnostic {
        self.document.error(&self.path, Target::Value, message.into())
    }

    /// A fault of this node's key (of its value, where it has no key of its own).
    pub fn key_error(&self, message: impl Into<String>) -> Diagnostic {
        let part =
            if matches!(self.path.last(), Some(PathStep::Key(_))) { Target::Key } else { Target::Value };
        self.document.error(&self.path, part, message.into())
    }
}
