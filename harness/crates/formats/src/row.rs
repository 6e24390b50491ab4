//! What a format is: the row that its own file gives to the table of formats.

use super::{Token, Violation};

/// Adds the tokens of a line (without its line end), in order.
type Tokeniser = fn(&[u8], &mut Vec<Token>);
/// The rules that hold in every capture, whatever the golden says, and that these lines break.
type Rules = fn(&[&[u8]]) -> Vec<Violation>;

/// What a format is, in the file of its own.
pub(crate) struct FormatRow {
    /// The name that case files use, and the extension of its transcripts.
    pub(crate) name: &'static str,
    /// The tracefs files that have this format when a case says nothing, by the last part of their path.
    pub(crate) files: &'static [&'static str],
    /// `None` where nothing varies.
    pub(crate) tokens: Option<Tokeniser>,
    /// `None` where there are none.
    pub(crate) violations: Option<Rules>,
    /// Whether a number that is a token is what the test is about. If not, a new golden gets a hole for it.
    pub(crate) numbers_are_significant: bool,
}
