//! The matching language of golden files.
//!
//! [`Golden::parse`] reads a golden strictly; [`compare`] sets it against a capture: conditions are
//! decided, lines are aligned by their shape, then named holes are unified in order. A name means
//! one value in all captures of a trial, and two names of one kind of object never mean the same
//! one ([`Bindings`]).
//!
//! This module knows no QEMU, no YAML and no case, and it prints nothing.

mod align;
mod bindings;
pub mod bless;
mod compare;
mod condition;
mod head;
mod hole;
mod parse;
mod pattern;
mod print;
mod select;
mod text;
mod tree;

pub use bindings::{Bindings, Conflict, Place};
pub use compare::{Comparison, Edit, compare, split_lines};
pub use condition::{Condition, FEATURES, Facts, Relation};
pub use head::{HEAD, Head};
pub use hole::{Hole, Namespace, Nanoseconds, Operand};
pub use pattern::{Pattern, PatternBuilder, Segment};
pub use text::Text;
pub use tree::{Expression, Golden, Node, NodeKind};
