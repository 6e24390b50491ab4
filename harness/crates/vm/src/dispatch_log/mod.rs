//! Playing the hypervisor that writes the dispatch trace log.
//!
//! QEMU takes the registration of a log and writes nothing into it. [`Writer`] writes what a
//! [`LogPlan`](dtl::LogPlan) says into the guest's own memory while the guest records, as a hypervisor would: in
//! big-endian entries, only of the classes that were asked for, published by the index.
//!
//! This module knows the guest's memory and its kernel's symbols. It knows no case file, no agent and
//! no golden.

#[cfg(test)]
mod fake_kernel;
mod log;
mod writer;

pub use log::{Log, LogError, Places, State};
pub use writer::{RecordingControl, WriteError, Writer};
