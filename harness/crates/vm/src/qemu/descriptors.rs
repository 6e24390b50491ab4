//! The descriptors that QEMU gets: all that it has of the host besides its own program and firmware.
//!
//! Nothing has a name that another process could open, or that would stay behind: the sockets are pairs, the guest's
//! memory is a memfd, and kernel and initramfs are files that we have opened. QEMU needs no right to the directories
//! that these are in.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use super::boot::{Boot, Mode};
use super::confine::Host;
use crate::memory::Ram;

/// The agent's port; the monitor of a machine that is [`Mode::Stopped`].
pub(super) const AGENT: i32 = 5;
/// The kernel's image.
pub(super) const KERNEL: i32 = 6;
/// The initramfs.
pub(super) const INITRAMFS: i32 = 7;
/// The guest's memory, when we share it.
pub(super) const RAM: i32 = 8;
/// The monitor, when we share the guest's memory.
pub(super) const MONITOR: i32 = 9;

/// Our ends, and QEMU's.
pub(super) struct Descriptors {
    /// Our end of the agent's port.
    pub(super) agent: UnixStream,
    /// The guest's memory and our end of the monitor.
    pub(super) shared: Option<(Ram, UnixStream)>,
    /// Those that QEMU inherits, by their numbers.
    pub(super) inherited: Vec<(i32, OwnedFd)>,
}

impl Descriptors {
    /// Open what the boot needs.
    ///
    /// # Errors
    /// What could not be opened, and why.
    pub(super) fn open(boot: &Boot<'_>, host: Host) -> io::Result<Descriptors> {
        let mut inherited = Vec::new();
        for (number, path) in [(KERNEL, boot.kernel), (INITRAMFS, boot.initramfs)] {
            let file = File::open(path).and_then(|file| host.for_qemu(file));
            let fail =
                |error: io::Error| io::Error::new(error.kind(), format!("failed to open `{path}`: {error}"));
            inherited.push((number, file.map_err(fail)?.into()));
        }
        let (agent, theirs) = UnixStream::pair()?;
        if boot.mode != Mode::Shell {
            inherited.push((AGENT, theirs.into()));
        }
        let shared = if boot.shares_memory {
            let ram = Ram::new(boot.guest.memory_mib << 20)?;
            let (monitor, theirs) = UnixStream::pair()?;
            inherited.extend([(RAM, ram.descriptor()?), (MONITOR, theirs.into())]);
            Some((ram, monitor))
        } else {
            None
        };
        Ok(Descriptors { agent, shared, inherited })
    }
}

/// The path by which a process reaches a descriptor of its own, where an option of QEMU takes a path only.
pub(super) fn path(number: i32) -> String {
    format!("/proc/self/fd/{number}")
}
