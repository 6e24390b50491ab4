//! What a session talks to: a machine, or in tests anything that sends frames.

use std::time::{Duration, Instant};

use crate::Frame;
use crate::qemu::{Machine, StopReason};

/// The host's end of an agent's port.
pub trait Port {
    /// When the guest was started.
    fn started(&self) -> Instant;

    /// Send a frame to the agent.
    ///
    /// # Errors
    /// How the guest stopped.
    fn send(&mut self, frame: &Frame) -> Result<(), StopReason>;

    /// Wait until `deadline`, which is `timeout` away, for the agent's next frame.
    ///
    /// # Errors
    /// Why no frame will come; `what` was waited for.
    fn frame(&mut self, what: &str, deadline: Instant, timeout: Duration) -> Result<Frame, StopReason>;

    /// Wait until `deadline`, which is `timeout` away, for the guest to power off, as END asks it to; the frame when the
    /// agent sends one instead.
    ///
    /// # Errors
    /// When it does not end in time, or not in order.
    fn wait_for_exit(&mut self, deadline: Instant, timeout: Duration) -> Result<Option<Frame>, StopReason>;

    /// Whether the guest is suspended from outside.
    fn is_suspended(&self) -> bool {
        false
    }

    /// How long the guest has been ready to run in all while no CPU of the host was free for it.
    fn waited_for_cpu(&self) -> Duration {
        Duration::ZERO
    }
}

impl Port for Machine {
    fn started(&self) -> Instant {
        Machine::started(self)
    }

    fn send(&mut self, frame: &Frame) -> Result<(), StopReason> {
        Machine::send(self, frame)
    }

    fn frame(&mut self, what: &str, deadline: Instant, timeout: Duration) -> Result<Frame, StopReason> {
        Machine::frame(self, what, deadline, timeout)
    }

    fn wait_for_exit(&mut self, deadline: Instant, timeout: Duration) -> Result<Option<Frame>, StopReason> {
        Machine::wait_for_exit(self, deadline, timeout)
    }

    fn is_suspended(&self) -> bool {
        Machine::is_suspended(self)
    }

    fn waited_for_cpu(&self) -> Duration {
        Machine::waited_for_cpu(self)
    }
}
