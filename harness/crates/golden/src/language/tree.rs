//! A golden as it is written: lines and blocks.

use camino::Utf8PathBuf;
use regex::bytes::Regex;

use super::condition::Condition;
use super::header::Header;
use super::pattern::Pattern;
use super::text::Text;

/// A golden.
#[derive(Debug, Clone)]
pub struct Golden {
    /// The file, as it is shown.
    pub file: Utf8PathBuf,
    /// The first line.
    pub header: Header,
    /// Everything after it, in order.
    pub passages: Vec<Passage>,
    /// The golden's own lines, for showing.
    pub text: Text,
}

/// A passage of a golden, lines or a directive with its block; lines count from 1.
#[derive(Debug, Clone)]
pub struct Passage {
    /// Its first line.
    pub line: usize,
    /// Its last line.
    pub end: usize,
    /// What it is.
    pub kind: PassageKind,
}

/// What a passage of a golden is.
#[derive(Debug, Clone)]
pub enum PassageKind {
    /// Lines of the capture, one after the other.
    Lines(Vec<Pattern>),
    /// A line that may be missing: `#@ optional "reason"` stands in the line before.
    Optional {
        /// Why it may be missing.
        reason: String,
        /// The line.
        pattern: Pattern,
    },
    /// `#@ if` ... `#@ else` ... `#@ end`
    If {
        /// When the first part counts.
        condition: Condition,
        /// Counts when the condition holds.
        then: Vec<Passage>,
        /// Counts when it does not; `None` without `#@ else`.
        otherwise: Option<Vec<Passage>>,
    },
    /// `#@ any`, `#@ any N..M`: ignores whole lines.
    Any(Counts),
    /// `#@ repeat N..M` ... `#@ end`: the block is repeated.
    Repeat {
        /// How often.
        counts: Counts,
        /// Its lines.
        block: Vec<Passage>,
    },
    /// `#@ xfail "reason" [if EXPR]` ... `#@ actual` ... `#@ end`: a known bug.
    Xfail(Xfail),
    /// `#@ unordered [by /re/]` ... `#@ end`: the lines come in any order.
    Unordered {
        /// Lines in which its first group (or all of it) matches the same text keep their order.
        by: Option<Expression>,
        /// Its lines.
        block: Vec<Passage>,
    },
    /// `#@ absent /re/`: no line of the capture matches.
    Absent(Expression),
}

/// How many: `N`, `N..` or `N..M`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// At least this many.
    pub least: usize,
    /// At most this many, and never 0; `None` for any number.
    pub most: Option<usize>,
}

/// A known bug of the kernel: the right lines, and those that a kernel with the bug prints.
///
/// Either part may be empty, not both; they are not the same.
#[derive(Debug, Clone)]
pub struct Xfail {
    /// The bug and where it is.
    pub reason: String,
    /// Which kernels have the bug; `None` for all. Where it does not hold only the right part counts.
    pub condition: Option<Condition>,
    /// The lines before `#@ actual`.
    pub right: Vec<Pattern>,
    /// The lines after it.
    pub actual: Vec<Pattern>,
}

impl Xfail {
    /// The right part with its lines in the golden; `line` is that of the directive.
    pub fn right_rows(&self, line: usize) -> impl Iterator<Item = (usize, &Pattern)> {
        (line + 1..).zip(&self.right)
    }

    /// The actual part with its lines in the golden; `line` is that of the directive.
    pub fn actual_rows(&self, line: usize) -> impl Iterator<Item = (usize, &Pattern)> {
        // The right part and `#@ actual` come before it.
        (line + 1 + self.right.len() + 1..).zip(&self.actual)
    }
}

/// A regular expression of a directive, unanchored.
#[derive(Debug, Clone)]
pub struct Expression {
    /// Its text between the slashes.
    pub source: String,
    /// It, ready for use.
    pub regex: Regex,
}

impl Golden {
    /// The patterns of all lines, with their lines, whatever the conditions; of a known bug both parts.
    pub fn patterns(&self) -> Vec<(usize, &Pattern)> {
        let mut found = Vec::new();
        collect(&self.passages, &mut found);
        found
    }
}

fn collect<'g>(passages: &'g [Passage], found: &mut Vec<(usize, &'g Pattern)>) {
    for passage in passages {
        match &passage.kind {
            PassageKind::Lines(patterns) => found.extend((passage.line..).zip(patterns)),
            // The directive stands in a line of its own, before its pattern's.
            PassageKind::Optional { pattern, .. } => found.push((passage.line + 1, pattern)),
            PassageKind::If { then, otherwise, .. } => {
                collect(then, found);
                collect(otherwise.as_deref().unwrap_or_default(), found);
            }
            PassageKind::Repeat { block, .. } | PassageKind::Unordered { block, .. } => collect(block, found),
            PassageKind::Xfail(xfail) => {
                found.extend(xfail.right_rows(passage.line).chain(xfail.actual_rows(passage.line)));
            }
            PassageKind::Any(_) | PassageKind::Absent(_) => {}
        }
    }
}
