//! A running QEMU: its events, in one queue, and its end.

use std::collections::BTreeSet;
use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::console::ConsoleLog;
use super::control::GuestControl;
use super::event::MachineEvent;
use super::log::{LogFile, MachineLogError};
use super::port::AgentPort;
use super::stop::StopReason;
use crate::process::{ProcessGroup, interrupt};
use crate::{Frame, Splat};

/// How many events wait to be taken. A frame has at most 1 MiB; while none is taken, the agent waits.
pub(super) const EVENTS_MAX: usize = 16;

/// How long a line may take from the kernel's log through the console.
const MARK_TIMEOUT: Duration = Duration::from_secs(30);

/// How long what QEMU left in its pipes may take to arrive after its end.
const DRAIN: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(super) struct ExitState {
    pub(super) exited: Option<ExitStatus>,
    pub(super) console_closed: bool,
    pub(super) stderr_closed: bool,
}

/// A running QEMU. Dropping it kills it.
pub struct Machine {
    pub(super) group: Arc<ProcessGroup>,
    /// `None` once it is being dropped: who waits to send an event then stops waiting.
    pub(super) events: Option<Receiver<MachineEvent>>,
    pub(super) seen: ExitState,
    pub(super) port: AgentPort,
    pub(super) console: ConsoleLog,
    /// How many bytes of the console the guest had printed when it was saved.
    pub(super) earlier_console: u64,
    pub(super) threads: Vec<JoinHandle<()>>,
    pub(super) started: Instant,
    pub(super) command: String,
    pub(super) stderr: LogFile,
    pub(super) control: Option<GuestControl>,
    /// It goes on from a snapshot.
    pub(super) is_restored: bool,
    /// The frequency of the host's time stamp counter in kHz, when the guest was given it.
    pub(super) tsc_khz: Option<u64>,
}

impl Machine {
    /// When QEMU was started.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// The full command line, quoted for a shell.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Whether the guest goes on from a snapshot, and has not booted.
    pub fn is_restored(&self) -> bool {
        self.is_restored
    }

    /// Access to the guest from the outside, when it shares its memory; once.
    pub fn take_control(&mut self) -> Option<GuestControl> {
        self.control.take()
    }

    /// The kernel's splats so far.
    pub fn splats(&self) -> Vec<Splat> {
        self.console.splats()
    }

    /// The known messages that have come, by their number in the guest's list.
    pub fn known_messages(&self) -> BTreeSet<usize> {
        self.console.known_seen()
    }

    /// How many messages the kernel says that the console does not have.
    pub fn lost_messages(&self) -> u64 {
        self.console.lost()
    }

    /// Wait until the console shows all that the kernel printed before the agent's greeting.
    ///
    /// # Errors
    /// When the agent's mark in the kernel's log does not come.
    pub fn wait_for_boot_messages(&self) -> Result<(), StopReason> {
        if self.console.wait_for_mark(MARK_TIMEOUT) {
            return Ok(());
        }
        interrupt::check().map_err(|_| StopReason::Interrupted)?;
        let what = "the console to show the agent's mark in the kernel's log".to_owned();
        Err(StopReason::TimedOut { what, timeout: MARK_TIMEOUT })
    }

    /// Wait until the console shows the end of this request as the last one. `false` when it does not within `timeout`.
    pub(crate) fn console_shows(&self, request: u64, timeout: Duration) -> bool {
        self.console.wait_for(request, timeout)
    }

    /// The console so far; at most its last MiB.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub fn console(&self) -> io::Result<String> {
        self.console.tail()
    }

    /// How many bytes of the console the guest printed before its agent was ready, as far as it has been read.
    ///
    /// # Errors
    /// When its file cannot be looked at.
    pub fn console_of_boot(&self) -> io::Result<u64> {
        if self.is_restored { Ok(self.earlier_console) } else { self.console.size() }
    }

    /// The console behind its first `from` bytes; at most a MiB of it.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub fn console_behind(&self, from: u64) -> io::Result<Vec<u8>> {
        self.console.behind(from)
    }

    /// What QEMU itself printed on its standard error; at most its last MiB.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub fn stderr(&self) -> io::Result<String> {
        Ok(self.stderr.tail()?.trim_end().to_owned())
    }

    /// Send a frame to the agent.
    ///
    /// # Errors
    /// When the port is closed: how the machine stopped.
    pub fn send(&mut self, frame: &Frame) -> Result<(), StopReason> {
        let sent = self.port.send(frame);
        sent.map_err(|why| self.stop_reason(StopReason::Port(why)))
    }

    /// Wait for the agent's next frame until `deadline`, which is `timeout` away. Ends early when it can no longer come.
    ///
    /// # Errors
    /// Why no frame will come; `what` was waited for.
    pub fn frame(&mut self, what: &str, deadline: Instant, timeout: Duration) -> Result<Frame, StopReason> {
        loop {
            let event = self.event(deadline);
            if let Some(line) = self.console.panic() {
                return Err(self.stop_reason(StopReason::Panicked(line)));
            }
            match event {
                Some(MachineEvent::Frame(frame)) => return Ok(frame),
                Some(MachineEvent::Exited(status)) => {
                    return Err(self.stop_reason(StopReason::Exited(status)));
                }
                Some(MachineEvent::PortClosed(why)) => {
                    let why = why.unwrap_or_else(|| "the guest closed the agent's port".to_owned());
                    return Err(self.stop_reason(StopReason::Port(why)));
                }
                Some(
                    MachineEvent::Splat
                    | MachineEvent::ConsoleClosed
                    | MachineEvent::StderrClosed
                    | MachineEvent::MonitorGreeted,
                ) => {}
                None => {
                    interrupt::check().map_err(|_| StopReason::Interrupted)?;
                    return Err(StopReason::TimedOut { what: what.to_owned(), timeout });
                }
            }
        }
    }

    /// The next event; `None` at the deadline.
    pub fn event(&mut self, deadline: Instant) -> Option<MachineEvent> {
        let left = deadline.saturating_duration_since(Instant::now());
        let event = self.events.as_ref()?.recv_timeout(left).ok()?;
        match &event {
            MachineEvent::Exited(status) => self.seen.exited = Some(*status),
            MachineEvent::ConsoleClosed => self.seen.console_closed = true,
            MachineEvent::StderrClosed => self.seen.stderr_closed = true,
            MachineEvent::Frame(_)
            | MachineEvent::MonitorGreeted
            | MachineEvent::PortClosed(_)
            | MachineEvent::Splat => {}
        }
        Some(event)
    }

    /// Something has gone wrong: wait a moment for what is still on its way, and return the cause. A panic comes before
    /// a flood, which comes before an exit of QEMU, which comes before a closed port.
    fn stop_reason(&mut self, first: StopReason) -> StopReason {
        self.drain();
        if interrupt::happened() {
            return StopReason::Interrupted;
        }
        let flood = self.log_error().filter(|error| matches!(error, MachineLogError::Flooded(_)));
        match (self.console.panic(), flood, self.seen.exited) {
            (Some(line), ..) => StopReason::Panicked(line),
            (None, Some(flood), _) => StopReason::Flooded(flood),
            (None, None, Some(status)) => StopReason::Exited(status),
            (None, None, None) => first,
        }
    }

    /// Whether QEMU was suspended by a signal, so that what did not happen in time says nothing of the guest.
    pub fn is_suspended(&self) -> bool {
        self.group.is_suspended()
    }

    /// End QEMU now.
    pub(super) fn kill(&self) {
        self.group.kill();
    }

    /// How long QEMU has been ready to run in all while no CPU of the host was free for it.
    pub fn waited_for_cpu(&self) -> Duration {
        self.group.waited_for_cpu()
    }

    /// What went wrong with the logs.
    pub(super) fn log_error(&self) -> Option<MachineLogError> {
        self.console.error().or_else(|| self.stderr.error())
    }

    /// Take events until QEMU has exited and its logs have ended, for a moment.
    fn drain(&mut self) {
        let deadline = Instant::now() + DRAIN;
        let ended = |seen: &ExitState| seen.exited.is_some() && seen.console_closed && seen.stderr_closed;
        while !ended(&self.seen) && Instant::now() < deadline && self.event(deadline).is_some() {}
    }

    /// Wait until `deadline`, which is `timeout` away, for QEMU to exit after the guest was asked to power off; the frame
    /// when the agent sends one all the same.
    ///
    /// # Errors
    /// When QEMU does not exit in time, or not with status 0.
    pub(crate) fn wait_for_exit(
        &mut self,
        deadline: Instant,
        timeout: Duration,
    ) -> Result<Option<Frame>, StopReason> {
        loop {
            match self.event(deadline) {
                Some(MachineEvent::Exited(status)) if status.success() => return Ok(None),
                Some(MachineEvent::Exited(status)) => {
                    return Err(self.stop_reason(StopReason::Exited(status)));
                }
                Some(MachineEvent::Frame(frame)) => return Ok(Some(frame)),
                Some(_) => {}
                None => {
                    let what = "the guest to power off".to_owned();
                    return Err(StopReason::TimedOut { what, timeout });
                }
            }
        }
    }

    /// Wait at most `timeout` for QEMU to exit; `None` when it still runs then.
    ///
    /// # Errors
    /// When the system cannot determine how QEMU exited.
    pub fn wait_timeout(&self, timeout: Duration) -> io::Result<Option<ExitStatus>> {
        self.group.wait_timeout(timeout)
    }

    /// Wait for the end of the logs: QEMU has exited, or is killed now, and its last bytes have arrived.
    ///
    /// # Errors
    /// When a log is not known to be complete.
    pub fn finish(&mut self) -> Result<(), MachineLogError> {
        if self.seen.exited.is_none() {
            self.group.kill();
        }
        self.drain();
        match self.log_error() {
            Some(error) => Err(error),
            None if !self.seen.console_closed => Err(self.console.is_open()),
            None if !self.seen.stderr_closed => Err(self.stderr.is_open()),
            None => Ok(()),
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.group.kill();
        self.events = None;
        self.port.close();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
