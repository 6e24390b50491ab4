//! Readers of the dispatch trace log in perf's text: what `perf script` and `perf report -D` print of it.
//!
//! A capture format only separates what varies from what does not; here the entries are read as values.
//! A line that is part of a log and cannot be read is an error and never ignored. What must be in a
//! log is not known here.

mod dump;
mod fields;
mod part;
mod sample;
pub(crate) mod whole;

pub use dump::{AuxRecord, DumpEntry, read_dump};
pub use fields::ReadError;
pub use part::{auxtrace_part, log_entries};
pub use sample::{DispatchSample, read_script};
