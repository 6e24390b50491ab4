//! The hypervisor's part: writing the dispatch trace log.
//!
//! QEMU accepts the registration of a log and writes nothing into it. [`Writer`] writes what a
//! [`LogPlan`](dtl::LogPlan) plans into the guest's own memory while the guest records, as a hypervisor would: in
//! big-endian entries, only of the classes that were asked for, published by the index.
//!
//! This module knows the guest's memory and its kernel's symbols. It knows no case file, no agent and
//! no golden.

mod control;
mod error;
#[cfg(test)]
mod fake_kernel;
mod log;
mod writer;

pub use control::RecordingControl;
pub use error::WriteError;
pub use log::LogError;
pub use writer::Writer;
