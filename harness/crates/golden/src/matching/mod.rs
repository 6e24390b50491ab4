//! A capture against a golden.
//!
//! [`compare::compare`] is the entry. `select` decides the conditions for one guest, and `program`
//! makes one list of operations of what is expected. `align` pairs lines by their shape alone, into
//! an `alignment`: `matcher` finds whether no line is left over, which is the verdict; if some are,
//! `table` and `coarse` find an alignment to show. Then `bindings` gives names their meaning, and
//! `rules` checks the format's rules.

mod align;
pub(crate) mod alignment;
mod any_order;
pub(crate) mod bindings;
mod coarse;
pub(crate) mod compare;
mod lines;
mod matcher;
mod program;
mod rules;
mod select;
mod table;

#[cfg(test)]
mod known_bug_tests;
#[cfg(test)]
mod tests;
