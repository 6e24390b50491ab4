//! The command `goldtrace` as a library: what people type ([`cli`]) and what they see ([`report`], [`plot`]).

pub mod cli;
pub mod plot;
pub mod report;
