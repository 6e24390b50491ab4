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
    /// Everything below it, in order.
    pub nodes: Vec<Node>,
    /// The golden's own lines, for showing.
    pub text: Text,
}

/// A part of a golden, with its line (from 1).
#[derive(Debug, Clone)]
pub struct Node {
    /// The line that it stands in or begins with.
    pub line: usize,
    /// The line that it ends with.
    pub end: usize,
    /// What it is.
    pub kind: NodeKind,
}

/// What a part of a golden is.
#[derive(Debug, Clone)]
pub enum NodeKind {
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
        then: Vec<Node>,
        /// Counts when it does not; `None` without `#@ else`.
        otherwise: Option<Vec<Node>>,
    },
    /// `#@ any [N..M]`: passes over whole lines.
    Any {
        /// At least so many.
        least: usize,
        /// At most so many; `None` for any number.
        most: Option<usize>,
    },
    /// `#@ repeat N..` ... `#@ end`: the block comes again and again.
    Repeat {
        /// At least so often.
        least: usize,
        /// Its lines.
        block: Vec<Node>,
    },
    /// `#@ unordered [by /re/]` ... `#@ end`: the lines come in any order.
    Unordered {
        /// Lines in which its first group (or all of it) matches the same text keep their order.
        by: Option<Expression>,
        /// Its lines.
        block: Vec<Node>,
    },
    /// `#@ absent /re/`: no line of the capture matches.
    Absent(Expression),
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
    /// The patterns of all lines, with their lines, whatever the conditions.
    pub fn patterns(&self) -> Vec<(usize, &Pattern)> {
        let mut found = Vec::new();
        collect(&self.nodes, &mut found);
        found
    }
}

fn collect<'g>(nodes: &'g [Node], found: &mut Vec<(usize, &'g Pattern)>) {
    for node in nodes {
        match &node.kind {
            NodeKind::Lines(patterns) => found.extend((node.line..).zip(patterns)),
            // The directive stands in a line of its own, before its pattern's.
            NodeKind::Optional { pattern, .. } => found.push((node.line + 1, pattern)),
            NodeKind::If { then, otherwise, .. } => {
                collect(then, found);
                collect(otherwise.as_deref().unwrap_or_default(), found);
            }
            NodeKind::Repeat { block, .. } | NodeKind::Unordered { block, .. } => collect(block, found),
            NodeKind::Any { .. } | NodeKind::Absent(_) => {}
        }
    }
}
