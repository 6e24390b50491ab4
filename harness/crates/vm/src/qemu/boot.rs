//! One start of a guest, as data.

use std::sync::Arc;

use camino::Utf8PathBuf;

use super::accel::Accel;
use super::snapshot::Snapshot;
use guest::Guest;

/// What a guest is booted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The agent answers requests.
    Agent,
    /// Nothing: QEMU stops before the first instruction and opens its monitor where the agent's
    /// port would be.
    Stopped,
}

/// What a guest begins with.
#[derive(Debug, Clone)]
pub enum Origin {
    /// It boots.
    Kernel {
        /// The kernel's image.
        kernel: Utf8PathBuf,
        /// The initramfs.
        initramfs: Utf8PathBuf,
    },
    /// It goes on where it was saved, in [`Mode::Agent`].
    Snapshot(Arc<Snapshot>),
}

/// One start of a guest.
#[derive(Debug, Clone)]
pub struct Boot<'a> {
    /// Which guest.
    pub guest: &'a Guest,
    /// What executes its instructions.
    pub accel: Accel,
    /// What it begins with.
    pub origin: Origin,
    /// What for.
    pub mode: Mode,
    /// The guest's memory and processors are reached from the outside, through
    /// [`Machine::take_control`](super::Machine::take_control).
    pub shares_memory: bool,
}

impl Boot<'_> {
    /// Whether the guest's memory is a file that we give to QEMU, and its monitor ours.
    pub(super) fn has_memory_file(&self) -> bool {
        self.shares_memory || matches!(self.origin, Origin::Snapshot(_))
    }
}
