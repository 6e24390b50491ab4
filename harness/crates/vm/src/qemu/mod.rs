//! QEMU as a process: its arguments, its console, its end.
//!
//! `argv` returns the command line of a guest, as data. [`Machine`] starts it and turns everything
//! that happens into [`MachineEvent`]s, so that every wait ends when QEMU dies or the kernel panics.
//!
//! This module carries the agent's frames without reading them, and knows no case.

mod accel;
mod argv;
mod boot;
mod confine;
mod console;
mod control;
mod descriptors;
mod event;
mod host_tsc;
mod log;
mod machine;
mod monitor;
mod port;
mod program;
mod restore;
mod save;
mod snapshot;
mod start;
mod stop;

pub use accel::{Accel, AccelChoice, WantedAccel};
pub use argv::{CONSOLE_LEVEL, MESSAGE_LEVEL};
pub use boot::{Boot, Mode, Origin};
pub use control::GuestControl;
pub use event::MachineEvent;
pub use log::{MachineLogError, MachineLogs};
pub use machine::Machine;
pub use program::identity;
pub use save::SaveError;
pub use snapshot::{Snapshot, SnapshotError};
pub use start::StartError;
pub use stop::StopReason;
