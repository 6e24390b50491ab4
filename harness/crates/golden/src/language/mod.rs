//! What the text of a golden means: its header, lines, holes and directives.
//!
//! Parsing is strict, and printing is its inverse. This module knows no capture but the tokens of
//! one line.

pub(crate) mod condition;
mod directive;
mod error;
pub(crate) mod header;
pub(crate) mod hole;
mod parse;
pub(crate) mod pattern;
mod print;
pub(crate) mod text;
pub(crate) mod tree;

use error::SyntaxError;
