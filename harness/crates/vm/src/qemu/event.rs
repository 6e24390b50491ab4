//! What happens to a machine, as its queue carries it.

use std::process::ExitStatus;

use crate::Frame;

/// What happens to a machine.
#[derive(Debug)]
pub enum MachineEvent {
    /// The agent sent a frame.
    Frame(Frame),
    /// QEMU's monitor sent its first byte ([`Mode::Stopped`](super::Mode::Stopped) only).
    MonitorGreeted,
    /// The agent's port closed; with the reason when it was not an ordinary end.
    PortClosed(Option<String>),
    /// The kernel printed a splat, or panicked on one: see [`Machine::splats`](super::Machine::splats).
    Splat,
    /// The console ended.
    ConsoleClosed,
    /// QEMU's standard error ended.
    StderrClosed,
    /// QEMU exited.
    Exited(ExitStatus),
}
