//! Strict reading of the project's YAML files.
//!
//! [`Document`] holds one parsed file and knows the line and column of every key and value in it.
//! [`Reader`] takes typed values out of a document and collects a [`Diagnostic`](diagnostic::Diagnostic)
//! for everything that is not as it should be, so that a user sees all errors of a file at once.
//!
//! This crate knows nothing of cases or guests, and it is the only one that touches serde_yaml.

mod document;
mod place;
mod reader;

pub use document::{Document, Node};
pub use reader::{Fields, Reader, show_size};
