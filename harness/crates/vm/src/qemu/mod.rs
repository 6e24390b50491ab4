//! QEMU as a process: its arguments, its console, its end.
//!
//! [`arguments`] says how a guest is started, as data. [`Machine`] starts it and turns everything
//! that happens into [`Event`]s, so that every wait ends when QEMU dies or the kernel panics.
//!
//! This module knows the agent's frames as a byte stream only, and knows no case.

mod accel;
mod argv;
mod console;
mod machine;
mod monitor;
mod outside;
#[expect(
    unsafe_code,
    reason = "memory that a guest's processors change is read and written through pointers"
)]
mod ram;

pub use accel::{Accel, AccelChoice, WantedAccel};
pub use argv::{AGENT_PORT, Boot, Mode, Shared, arguments};
pub use console::{Complaint, Scanner};
pub use machine::{Console, Event, Machine, StartError, Stop};
pub use outside::Outside;
pub use ram::{NoSuchWord, Ram};
