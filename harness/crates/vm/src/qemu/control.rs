//! A running guest from the outside: its memory, and the pausing of its processors.
//!
//! It is what a hypervisor has of its guest. A writer into memory that the guest may give back
//! at any moment has to hold the processors while it checks and writes.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::monitor::Monitor;
use crate::memory::Ram;

/// A guest's memory and processors.
#[derive(Debug)]
pub struct GuestControl {
    ram: Ram,
    monitor: Monitor,
    paused: Duration,
}

impl GuestControl {
    pub(super) fn new(ram: Ram, monitor: UnixStream) -> io::Result<GuestControl> {
        Ok(GuestControl { ram, monitor: Monitor::new(monitor)?, paused: Duration::ZERO })
    }

    #[cfg(test)]
    pub(crate) fn for_tests(ram: Ram, monitor: UnixStream) -> GuestControl {
        GuestControl::new(ram, monitor).expect("a socket")
    }

    /// The guest's memory.
    pub(crate) fn ram(&self) -> &Ram {
        &self.ram
    }

    /// Do something while the guest's processors and clocks stand still.
    ///
    /// # Errors
    /// When QEMU does not stop or go on.
    pub(crate) fn while_paused<T>(&mut self, work: impl FnOnce(&Ram) -> T) -> io::Result<T> {
        self.monitor.greet()?;
        let start = Instant::now();
        self.monitor.stop()?;
        let done = work(&self.ram);
        self.monitor.resume()?;
        self.paused += start.elapsed();
        Ok(done)
    }

    /// How long the guest's clocks have stood still so far, or a little more.
    pub(crate) fn paused(&self) -> Duration {
        self.paused
    }
}
