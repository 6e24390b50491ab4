//! A running guest from the outside: its memory, and the pausing of its processors.
//!
//! It is what a hypervisor has of its guest. A writer into memory that the guest may give back
//! at any moment has to hold the processors while it checks and writes.

use std::io;
#[cfg(test)]
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::monitor::Monitor;
use crate::memory::Ram;

/// A guest's memory and processors.
#[derive(Debug)]
pub struct GuestControl {
    ram: Ram,
    monitor: Arc<Mutex<Monitor>>,
    paused: Duration,
}

impl GuestControl {
    pub(super) fn new(ram: Ram, monitor: Arc<Mutex<Monitor>>) -> GuestControl {
        GuestControl { ram, monitor, paused: Duration::ZERO }
    }

    #[cfg(test)]
    pub(crate) fn for_tests(ram: Ram, monitor: UnixStream) -> GuestControl {
        GuestControl::new(ram, Arc::new(Mutex::new(Monitor::new(monitor).expect("a socket"))))
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
        let mut monitor = self.monitor.lock().unwrap_or_else(PoisonError::into_inner);
        monitor.greet()?;
        let start = Instant::now();
        monitor.stop()?;
        let done = work(&self.ram);
        monitor.resume()?;
        self.paused += start.elapsed();
        Ok(done)
    }

    /// Do something with QEMU's monitor.
    pub(super) fn with_monitor<T>(&mut self, work: impl FnOnce(&mut Monitor) -> T) -> T {
        work(&mut self.monitor.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How long the guest's clocks have stood still so far, or a little more.
    pub(crate) fn paused(&self) -> Duration {
        self.paused
    }
}
