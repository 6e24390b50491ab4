//! An error in one line of a golden.

use std::ops::Range;

/// An error in a piece of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    /// The bytes of the text that it is about.
    pub(super) span: Range<usize>,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl SyntaxError {
    pub(super) fn new(span: Range<usize>, message: impl Into<String>) -> SyntaxError {
        SyntaxError { span, message: message.into(), help: None }
    }

    #[must_use]
    pub(super) fn with_help(self, help: impl Into<String>) -> SyntaxError {
        SyntaxError { help: Some(help.into()), ..self }
    }

    /// The same error in a text in which this one begins at byte `by`.
    #[must_use]
    pub(super) fn shifted(self, by: usize) -> SyntaxError {
        SyntaxError { span: self.span.start + by..self.span.end + by, ..self }
    }
}
