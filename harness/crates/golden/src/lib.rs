//! The matching language of golden files.
//!
//! [`Golden::parse`] reads a golden strictly; [`compare`] sets it against a capture: conditions are
//! decided, lines are aligned by their shape, then named holes are unified in order. A name means
//! one value in all captures of a trial, and two names of one kind of object never mean the same
//! one ([`Bindings`]). [`bless`] writes goldens from captures.
//!
//! - `language`: what a golden's text means; parsing and printing are inverse.
//! - `matching`: which lines of a capture belong to which lines of a golden, and what names mean.
//! - `bless`: the golden that captures fit, out of the one that is there.
//!
//! This crate knows no file system, no QEMU, no YAML and no case, and it prints nothing.

pub mod bless;
mod language;
mod matching;

pub use language::condition::{Condition, FEATURES, Facts, Relation};
pub use language::header::{HEADER, Header};
pub use language::hole::{Hole, HoleRegex, Namespace, Nanoseconds, Operand};
pub use language::pattern::{Pattern, PatternBuilder, Segment};
pub use language::text::Text;
pub use language::tree::{Counts, Expression, Golden, Passage, PassageKind, Xfail};
pub use matching::alignment::{Edit, Seen};
pub use matching::bindings::{BindingSite, Bindings, Conflict};
pub use matching::compare::{Comparison, KnownBug, compare, split_lines};
