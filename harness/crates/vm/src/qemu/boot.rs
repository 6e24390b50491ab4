//! One start of a guest, as data.

use camino::Utf8Path;

use super::accel::Accel;
use guest::Guest;

/// What a guest is booted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The agent answers requests.
    Agent,
    /// A shell on the console.
    Shell,
    /// Nothing: QEMU stops before the first instruction and opens its monitor where the agent's
    /// port would be.
    Stopped,
}

/// One start of a guest.
#[derive(Debug, Clone, Copy)]
pub struct Boot<'a> {
    /// Which guest.
    pub guest: &'a Guest,
    /// What executes its instructions.
    pub accel: Accel,
    /// The kernel's image.
    pub kernel: &'a Utf8Path,
    /// The initramfs.
    pub initramfs: &'a Utf8Path,
    /// What for.
    pub mode: Mode,
    /// The guest's memory and processors are reached from the outside, through
    /// [`Machine::take_control`](super::Machine::take_control).
    pub shares_memory: bool,
}
