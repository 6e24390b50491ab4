//! The matching language of golden files.
//!
//! [`Golden::parse`] reads a golden strictly; [`compare`] sets it against a capture: lines are
//! aligned by their shape first, then named holes are unified in order. A name means one value in
//! all captures of a trial, and two names of one kind never mean the same value ([`Bindings`]).
//!
//! This module knows no QEMU, no YAML and no case, and it prints nothing.

mod align;
mod bindings;
mod compare;
mod parse;
mod pattern;

pub use bindings::{Bindings, Conflict, Place};
pub use compare::{Comparison, Edit, compare, split_lines};
pub use parse::{Golden, HEAD, Item};
pub use pattern::{Hole, Pattern, Segment};
