//! A running guest from the outside: its memory, and a hand on its processors.
//!
//! It is what a hypervisor has of its guest. Whoever writes into memory that the guest may give back
//! at any moment has to hold the processors while it checks and writes.

use std::io;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use super::monitor::Monitor;
use super::ram::Ram;

/// A guest's memory and processors.
#[derive(Debug)]
pub struct Outside {
    ram: Ram,
    listener: UnixListener,
    monitor: Option<Monitor>,
    held: Duration,
}

impl Outside {
    pub(super) fn new(ram: Ram, listener: UnixListener) -> Outside {
        Outside { ram, listener, monitor: None, held: Duration::ZERO }
    }

    #[cfg(test)]
    pub(crate) fn for_tests(ram: Ram, listener: UnixListener) -> Outside {
        Outside::new(ram, listener)
    }

    /// The guest's memory.
    pub fn ram(&self) -> &Ram {
        &self.ram
    }

    /// Do something while the guest's processors and clocks stand still.
    ///
    /// # Errors
    /// When QEMU does not stop or go on.
    pub fn while_held<T>(&mut self, work: impl FnOnce(&Ram) -> T) -> io::Result<T> {
        let monitor = match &mut self.monitor {
            Some(monitor) => monitor,
            empty => empty.insert(Monitor::accept(&self.listener)?),
        };
        let start = Instant::now();
        monitor.stop()?;
        let done = work(&self.ram);
        monitor.resume()?;
        self.held += start.elapsed();
        Ok(done)
    }

    /// How long the guest's clocks have stood still so far, or a little more.
    pub fn held(&self) -> Duration {
        self.held
    }
}
