//! How long a guest may take, by the host's clock, with what the host's other load takes from it.

use std::time::{Duration, Instant};

use super::port::Port;
use crate::qemu::StopReason;

/// A timeout is at most this many times as long as it says, however busy the host is.
const STRETCH_MAX: u32 = 10;

/// A timeout of a guest, which ends later when the guest has waited for a CPU of the host meanwhile.
#[derive(Debug)]
pub(super) struct Timeout {
    length: Duration,
    begin: Instant,
    /// How long the guest had waited for a CPU when this began.
    waited: Duration,
    deadline: Instant,
}

impl Timeout {
    /// A timeout that begins now.
    pub(super) fn new(port: &impl Port, length: Duration) -> Timeout {
        Timeout::since(Instant::now(), port.waited_for_cpu(), length)
    }

    /// A timeout that began with the guest itself.
    pub(super) fn of_boot(port: &impl Port, length: Duration) -> Timeout {
        Timeout::since(port.started(), Duration::ZERO, length)
    }

    fn since(begin: Instant, waited: Duration, length: Duration) -> Timeout {
        Timeout { length, begin, waited, deadline: begin + length }
    }

    /// What was asked for.
    pub(super) fn length(&self) -> Duration {
        self.length
    }

    /// When it ends, as far as is known.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Add what the guest has waited for a CPU since this was done last. Whether that leaves time.
    pub(super) fn extend(&mut self, port: &impl Port) -> bool {
        let waited = port.waited_for_cpu().saturating_sub(self.waited);
        let deadline = self.begin + self.length + waited.min(self.length * (STRETCH_MAX - 1));
        let extended = deadline > self.deadline.max(Instant::now());
        if extended {
            self.deadline = deadline;
        }
        extended
    }

    /// Wait with `wait`, which ends at the deadline that it is given, until something else than time ends it.
    ///
    /// # Errors
    /// Those of `wait`.
    pub(super) fn wait<P: Port, T>(
        &mut self,
        port: &mut P,
        mut wait: impl FnMut(&mut P, Instant, Duration) -> Result<T, StopReason>,
    ) -> Result<T, StopReason> {
        loop {
            match wait(port, self.deadline, self.length) {
                Err(StopReason::TimedOut { .. }) if self.extend(port) => {}
                ended => return ended,
            }
        }
    }
}
