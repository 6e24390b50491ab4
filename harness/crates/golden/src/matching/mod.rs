//! A capture against a golden.
//!
//! [`compare::compare`] is the entry. `select` decides the conditions for one guest, `align` pairs
//! lines by their shape, `bindings` then gives names their meaning.

mod align;
mod any_order;
mod approximate;
pub(crate) mod bindings;
mod classes;
pub(crate) mod compare;
mod lines;
mod matcher;
mod prefix;
mod program;
mod select;
mod table;

use align::Alignment;
use lines::Lines;
