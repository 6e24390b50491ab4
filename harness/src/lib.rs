//! goldtrace.
pub mod agent;
pub mod case;
pub mod cli;
pub mod diagnostic;
pub mod digest;
pub mod dtl;
pub mod golden;
pub mod guest;
pub mod image;
pub mod lint;
pub mod normalise;
pub mod process;
pub mod project;
pub mod qemu;
pub mod report;
pub mod run;
pub mod yaml;
