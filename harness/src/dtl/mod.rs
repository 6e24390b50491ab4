//! The dispatch trace log of pseries guests: playing the hypervisor that writes it.
//!
//! QEMU takes the registration of a log and writes nothing into it. [`Writer`] writes what a case's
//! [`Plan`] says into the guest's own memory while the guest records, as a hypervisor would: in
//! big-endian entries, only of the classes that were asked for, published by the index.
//!
//! This module knows the guest's memory and its kernel's symbols. It knows no case file, no agent and
//! no golden.

mod clock;
mod dump;
mod entry;
mod expect;
mod fields;
mod log;
pub(crate) mod model;
mod plan;
pub mod reason;
mod record;
mod symbols;
mod writer;

pub use clock::{Clock, perf_time, shown};
pub use dump::{AuxRecord, DumpEntry, read_dump};
pub use entry::{ENTRY_SIZE, Entry};
pub use expect::violations;
pub use fields::ReadError;
pub use log::{Log, LogError, Places, SLOTS, State, UNREAD_MAX};
pub use plan::{Address, Burst, Item, Plan, PlannedEntry, When};
pub use record::{Record, read_script};
pub use symbols::{NoSymbol, Symbols};
pub use writer::{Patience, WriteError, Writer, Written};
