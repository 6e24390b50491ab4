//! The command from outside, and trials on real guests: `cargo test --test end_to_end SUBJECT::` for one subject.
//!
//! They are one program, so that they are linked once and run side by side.

mod support;

mod command;
mod config;
mod confined;
mod decode;
mod exec;
mod faults;
mod full_disk;
mod guests;
mod lint;
mod modules;
mod mutations;
mod patch;
mod perf;
mod shell;
mod snapshots;
mod terminal;
mod usage;
