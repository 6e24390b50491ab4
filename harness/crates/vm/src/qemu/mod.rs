//! QEMU as a process: its arguments, its console, its end.
//!
//! `argv` returns the command line of a guest, as data. [`Machine`] starts it and turns everything
//! that happens into [`MachineEvent`]s, so that every wait ends when QEMU dies or the kernel panics.
//!
//! This module carries the agent's frames without reading them, and knows no case.

mod accel;
mod argv;
mod console;
mod control;
mod event;
mod machine;
mod monitor;
mod port;
mod start;
mod stop;

pub use accel::{Accel, AccelChoice, WantedAccel};
pub use argv::{Boot, Mode, Shared};
pub use console::{Console, ConsoleError};
pub use control::GuestControl;
pub use event::MachineEvent;
pub use machine::Machine;
pub use start::StartError;
pub use stop::StopReason;
