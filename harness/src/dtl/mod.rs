//! The hypervisor's dispatch trace log, as perf shows it.

mod dump;
mod fields;
mod record;

pub use dump::{AuxRecord, DumpEntry, read_dump};
pub use fields::ReadError;
pub use record::{Record, read_script};
