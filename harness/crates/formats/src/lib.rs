//! What the kernel and perf print: which parts of it vary, which rules hold in all of it, and what it says.
//!
//! A [`Format`] separates the spans of a line that vary by nature (a [`Token`], with its kind and its
//! value) from the literal text between them, and has [rules](Format::violations) that every capture
//! keeps. [`dispatch_log`] reads perf's text of one kind of event as values. [`units`] is the one reader
//! of durations and times.
//!
//! The invariant: nothing is changed. The pieces of a line, one after the other, are the line, whatever
//! its bytes. This crate knows no golden, no case, no guest and no file.

mod clock;
mod cursor;
pub mod dispatch_log;
mod dump_line;
mod event_format;
mod format;
mod hist;
mod hist_debug;
mod perf_dump;
mod perf_script;
mod plain;
mod row;
mod sample_head;
mod symbol;
mod token;
mod trace;
pub mod units;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod transcripts;

pub use format::Format;
pub use token::{Piece, Token, TokenKind};

/// A rule of a format that a capture breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The line of the capture, from 1.
    pub line: usize,
    /// The rule and what was found.
    pub message: String,
}

/// A decimal number that fits 64 bits.
pub fn number(text: &[u8]) -> Option<u64> {
    let digits = text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| digits)?.parse().ok()
}
