//! The descriptors that QEMU gets: all that it has of the host besides its own program and firmware.
//!
//! Nothing has a name that another process could open, or that would stay behind: the sockets are pairs, the guest's
//! memory is a memfd, and kernel and initramfs are files that we have opened. QEMU needs no right to the directories
//! that these are in.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use camino::Utf8Path;

use super::boot::{Boot, Origin};
use super::confine::Host;
use crate::memory::Ram;
use crate::process::pipe;

/// The agent's port; the monitor of a machine that is [`Mode::Stopped`](super::Mode::Stopped).
pub(super) const AGENT: i32 = 5;
/// The kernel's image.
pub(super) const KERNEL: i32 = 6;
/// The initramfs.
pub(super) const INITRAMFS: i32 = 7;
/// The guest's memory, when it is a file of ours.
pub(super) const RAM: i32 = 8;
/// The monitor, when the guest's memory is a file of ours.
pub(super) const MONITOR: i32 = 9;
/// Where the state of a machine that is restored comes from, which needs no kernel.
pub(super) const STATE: i32 = KERNEL;

/// Our ends, and QEMU's.
pub(super) struct Descriptors {
    /// Our end of the agent's port.
    pub(super) agent: UnixStream,
    /// Our end of the monitor.
    pub(super) monitor: Option<UnixStream>,
    /// The guest's memory, when we share it.
    pub(super) ram: Option<Ram>,
    /// Our end of the pipe for the state of a machine that is restored.
    pub(super) state: Option<File>,
    /// Those that QEMU inherits, by their numbers.
    pub(super) inherited: Vec<(i32, OwnedFd)>,
}

impl Descriptors {
    /// Open what the boot needs.
    ///
    /// # Errors
    /// What could not be opened, and why.
    pub(super) fn open(boot: &Boot<'_>, host: Host) -> io::Result<Descriptors> {
        let (agent, theirs) = UnixStream::pair()?;
        let inherited = vec![(AGENT, theirs.into())];
        let mut open = Descriptors { agent, monitor: None, ram: None, state: None, inherited };
        match &boot.origin {
            Origin::Kernel { kernel, initramfs } => {
                open.files(host, [(KERNEL, kernel), (INITRAMFS, initramfs)])?;
                if boot.shares_memory {
                    open.ram(Ram::new(boot.guest.memory_mib << 20)?)?;
                }
            }
            Origin::Snapshot(snapshot) => {
                let (theirs, state) = pipe()?;
                open.state = Some(state);
                open.inherited.push((STATE, theirs.into()));
                if boot.shares_memory {
                    open.ram(Ram::copy_of(&snapshot.memory)?)?;
                } else {
                    open.inherited.push((RAM, snapshot.memory.descriptor()?));
                }
            }
        }
        if boot.has_memory_file() {
            let (monitor, theirs) = UnixStream::pair()?;
            open.monitor = Some(monitor);
            open.inherited.push((MONITOR, theirs.into()));
        }
        Ok(open)
    }

    fn files(&mut self, host: Host, files: [(i32, &Utf8Path); 2]) -> io::Result<()> {
        for (number, path) in files {
            let file = File::open(path).and_then(|file| host.for_qemu(file));
            let fail =
                |error: io::Error| io::Error::new(error.kind(), format!("failed to open `{path}`: {error}"));
            self.inherited.push((number, file.map_err(fail)?.into()));
        }
        Ok(())
    }

    fn ram(&mut self, ram: Ram) -> io::Result<()> {
        self.inherited.push((RAM, ram.descriptor()?));
        self.ram = Some(ram);
        Ok(())
    }
}

/// The path by which a process reaches a descriptor of its own, where an option of QEMU takes a path only.
pub(super) fn path(number: i32) -> String {
    format!("/proc/self/fd/{number}")
}
