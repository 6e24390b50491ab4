//! A conversation with the agent in a guest: requests, and their answers byte for byte.
//!
//! A [`Session`] has at most one request under way. Every frame that comes must belong to it and be where it may be;
//! the counts at its end must be what has come. Whatever else the agent sends is a [`ProtocolError`], after which the
//! guest is of no more use.
//!
//! This module knows a guest by its [`Port`] only: no process, no console, no case.

mod error;
mod files;
mod input;
mod pending;
mod port;
mod request;
mod timeout;

use std::time::{Duration, Instant};

use camino::Utf8Path;

pub use error::{ProtocolError, SessionError};
pub use pending::Pending;
pub use port::Port;
pub use request::{Answer, KernelState, Request, StepEnd, TerminalSize, Work};
use timeout::Timeout;

use crate::protocol::{Frame, FrameKind, PROTOCOL_VERSION, Ready};
use crate::qemu::{GuestControl, Machine, SaveError, StopReason};

/// How long a guest may take for what needs none of its commands: to kill a process group, to run the agent on each
/// CPU.
const GRACE: Duration = Duration::from_secs(30);

/// What is waited for while the guest boots.
const GREETING: &str = "the agent's greeting";

/// What is waited for while the guest's interrupt handlers end.
const QUIESCING: &str = "the guest's CPUs to finish their interrupt handlers";

/// How long a guest may take to power off.
const END_TIMEOUT: Duration = Duration::from_secs(30);

/// A guest that did not get as far as the agent's greeting.
pub struct OpenError<P = Machine> {
    /// The machine, for its console.
    pub machine: P,
    /// What happened.
    pub error: SessionError,
}

/// What has come of an answer.
#[derive(PartialEq, Eq)]
enum Gathered {
    /// Its last frame.
    End,
    /// Another frame.
    Part,
    /// Nothing yet.
    Nothing,
}

/// A conversation with a guest that is ready.
pub struct Session<P = Machine> {
    machine: P,
    ready: Ready,
    /// From the start of QEMU to the agent's greeting.
    boot_time: Duration,
    /// The nonces of the requests that were sent, in order, until somebody takes them.
    requests: Vec<u64>,
}

impl<P: Port> Session<P> {
    /// Wait for the agent's greeting and check that it is the agent, the kernel and the CPUs that
    /// were asked for.
    ///
    /// # Errors
    /// When the guest does not get that far within `timeout`, not counting what it waits for a CPU of the host, or is
    /// another one. The machine comes back with the error, for its console.
    pub fn open(
        mut machine: P,
        release: &str,
        cpus: u64,
        timeout: Duration,
    ) -> Result<Session<P>, Box<OpenError<P>>> {
        let greeted = Timeout::of_boot(&machine, timeout)
            .wait(&mut machine, |machine, deadline, timeout| machine.frame(GREETING, deadline, timeout));
        let frame = match greeted {
            Ok(frame) => frame,
            Err(stop) => return Err(Box::new(OpenError { machine, error: stop.into() })),
        };
        let boot_time = machine.started().elapsed();
        match greeting(&frame, release, cpus) {
            Ok(ready) => Ok(Session { machine, ready, boot_time, requests: Vec::new() }),
            Err(error) => Err(Box::new(OpenError { machine, error: error.into() })),
        }
    }

    /// What the agent said of its guest.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// The time from the start of QEMU to the agent's greeting.
    pub fn boot_time(&self) -> Duration {
        self.boot_time
    }

    /// The machine.
    pub fn machine(&self) -> &P {
        &self.machine
    }

    /// The nonces of the requests that were sent since this was called last, in order. The console shows the end of each.
    pub fn take_requests(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.requests)
    }

    /// Send a request and wait for its answer.
    ///
    /// # Errors
    /// See [`SessionError`]. After one, the guest is of no more use.
    pub fn request(&mut self, request: &Request) -> Result<Answer, SessionError> {
        let pending = self.start(request)?;
        self.finish(pending)
    }

    /// Send a request. Its answer has to be taken before the next one is sent.
    ///
    /// # Errors
    /// As [`Session::request`].
    pub fn start(&mut self, request: &Request) -> Result<Pending, SessionError> {
        let nonce = nonce();
        let payload = request.payload();
        if payload.len() > Frame::payload_max() {
            return Err(SessionError::TooLarge { size: payload.len(), max: Frame::payload_max() });
        }
        let kind = match &request.work {
            Work::Run(_) => FrameKind::Run,
            Work::RunOpen(_) => FrameKind::RunOpen,
            Work::Terminal { .. } => FrameKind::Terminal,
            Work::Read(_) => FrameKind::Read,
            Work::Write { .. } => FrameKind::Write,
            Work::Append { .. } => FrameKind::Append,
        };
        self.machine.send(&Frame { kind, nonce, payload })?;
        self.requests.push(nonce);
        let timeout = Timeout::new(&self.machine, request.timeout);
        Ok(Pending::new(nonce, request.awaited(), timeout, request.output_limit))
    }

    /// Wait for the end of an answer.
    ///
    /// # Errors
    /// As [`Session::request`].
    pub fn finish(&mut self, mut pending: Pending) -> Result<Answer, SessionError> {
        while !pending.ended {
            let deadline = pending.timeout.deadline();
            self.gather(&mut pending, deadline)?;
        }
        Ok(pending.answer)
    }

    /// Take what comes of an answer within `time`; whether that was its end.
    ///
    /// # Errors
    /// As [`Session::request`].
    pub fn wait(&mut self, pending: &mut Pending, time: Duration) -> Result<bool, SessionError> {
        let until = Instant::now() + time;
        loop {
            match self.gather_until(pending, until)? {
                Gathered::End => return Ok(true),
                Gathered::Part => {}
                Gathered::Nothing => return Ok(false),
            }
        }
    }

    /// The same for the next part of an answer alone: this returns as soon as it has come.
    ///
    /// # Errors
    /// As [`Session::request`].
    pub fn wait_for_part(&mut self, pending: &mut Pending, time: Duration) -> Result<bool, SessionError> {
        Ok(self.gather_until(pending, Instant::now() + time)? == Gathered::End)
    }

    /// Take the next frame of the answer when it comes until `until`, unless the request's own deadline comes before.
    fn gather_until(&mut self, pending: &mut Pending, until: Instant) -> Result<Gathered, SessionError> {
        match self.gather(pending, until) {
            Ok(true) => Ok(Gathered::End),
            Ok(false) => Ok(Gathered::Part),
            Err(SessionError::Stopped(StopReason::TimedOut { .. })) if until < pending.timeout.deadline() => {
                Ok(Gathered::Nothing)
            }
            Err(error) => Err(error),
        }
    }

    /// Take the next frame of the answer, which has to come until `until`; whether it was the last. A request whose
    /// own deadline is over is killed first.
    fn gather(&mut self, pending: &mut Pending, until: Instant) -> Result<bool, SessionError> {
        let deadline = pending.timeout.deadline();
        match self.machine.frame(&pending.awaited, until.min(deadline), pending.timeout.length()) {
            Ok(frame) => Ok(pending.add(frame)?),
            Err(stop) if until < deadline => Err(stop.into()),
            Err(StopReason::TimedOut { .. }) if pending.timeout.extend(&self.machine) => Ok(false),
            Err(StopReason::TimedOut { .. }) if !pending.killed && !self.machine.is_suspended() => {
                self.kill(pending)?;
                Ok(false)
            }
            Err(stop) => Err(self.given_up(stop)),
        }
    }

    /// What is said of a guest that is waited for no longer: a timeout of one that is suspended is not its own.
    fn given_up(&self, stop: StopReason) -> SessionError {
        match stop {
            StopReason::TimedOut { what, .. } if self.machine.is_suspended() => {
                StopReason::Suspended(what).into()
            }
            stop => stop.into(),
        }
    }

    /// Have the processes of a request killed, whose timeout is over.
    fn kill(&mut self, pending: &mut Pending) -> Result<(), SessionError> {
        self.machine.send(&Frame { kind: FrameKind::Kill, nonce: pending.nonce, payload: Vec::new() })?;
        pending.awaited += ", which was to be killed at its timeout";
        pending.killed = true;
        pending.timeout = Timeout::new(&self.machine, GRACE);
        Ok(())
    }

    /// Wait until every interrupt handler that had begun on any of the guest's CPUs has ended; the
    /// timebase after that, in ticks.
    ///
    /// # Errors
    /// As [`Session::request`]; a guest whose processor has no timebase, which only powerpc has.
    pub fn quiesce(&mut self) -> Result<u64, SessionError> {
        let nonce = self.send_quiesce()?;
        let frame = self.frame_while_quiescing(&mut Timeout::new(&self.machine, GRACE))?;
        Ok(quiesced(&frame, nonce)?)
    }

    /// The same while an answer is on its way; `None` when the answer has come to its end meanwhile.
    ///
    /// # Errors
    /// As [`Session::quiesce`].
    pub fn quiesce_during(&mut self, pending: &mut Pending) -> Result<Option<u64>, SessionError> {
        let nonce = self.send_quiesce()?;
        let mut timeout = Timeout::new(&self.machine, GRACE);
        let mut ended = false;
        loop {
            let frame = self.frame_while_quiescing(&mut timeout)?;
            if frame.kind == FrameKind::Quiesced {
                let timebase = quiesced(&frame, nonce)?;
                return Ok((!ended).then_some(timebase));
            }
            ended |= pending.add(frame)?;
        }
    }

    fn frame_while_quiescing(&mut self, timeout: &mut Timeout) -> Result<Frame, SessionError> {
        let frame = timeout.wait(&mut self.machine, |machine, deadline, timeout| {
            machine.frame(QUIESCING, deadline, timeout)
        });
        frame.map_err(|stop| self.given_up(stop))
    }

    fn send_quiesce(&mut self) -> Result<u64, SessionError> {
        let nonce = nonce();
        self.machine.send(&Frame { kind: FrameKind::Quiesce, nonce, payload: Vec::new() })?;
        Ok(nonce)
    }

    /// Ask the guest to power off and wait for its end.
    ///
    /// # Errors
    /// When it does not end by itself. The machine comes back either way, for its console.
    pub fn end(mut self) -> (P, Result<(), SessionError>) {
        let sent = self.machine.send(&Frame { kind: FrameKind::End, nonce: nonce(), payload: Vec::new() });
        let mut timeout = Timeout::new(&self.machine, END_TIMEOUT);
        let ended = sent.and_then(|()| timeout.wait(&mut self.machine, P::wait_for_exit));
        let result = match ended {
            Ok(None) => Ok(()),
            Ok(Some(frame)) => Err(ProtocolError::AfterEnd(frame.kind).into()),
            Err(stop) => Err(self.given_up(stop)),
        };
        (self.machine, result)
    }

    /// The machine, with nothing said to the guest.
    pub fn into_machine(self) -> P {
        self.machine
    }
}

impl Session<Machine> {
    /// Keep the guest as it is now in `directory`, which is empty, and end it. It was started with its memory shared.
    ///
    /// # Errors
    /// See [`SaveError`].
    pub fn save(self, directory: &Utf8Path) -> Result<(), SaveError> {
        let last = self.last_request();
        self.machine.save(last, directory)
    }

    /// Wait until the console shows all that the kernel printed before the last request ended. `false` when it does not
    /// within `timeout`.
    pub fn wait_for_messages(&self, timeout: Duration) -> bool {
        self.machine.console_shows(self.last_request(), timeout)
    }

    /// The nonce of the last request. The agent's greeting counts as the request 0.
    fn last_request(&self) -> u64 {
        self.requests.last().copied().unwrap_or(0)
    }

    /// Access to the guest from the outside, when it shares its memory; once.
    pub fn take_control(&mut self) -> Option<GuestControl> {
        self.machine.take_control()
    }
}

/// The greeting in a guest's first frame, when it is that of the agent, kernel and CPUs that were asked for.
fn greeting(frame: &Frame, release: &str, cpus: u64) -> Result<Ready, ProtocolError> {
    if frame.kind != FrameKind::Ready {
        return Err(ProtocolError::NotAGreeting(frame.kind));
    }
    let ready = Ready::parse(&frame.payload)?;
    if ready.version != PROTOCOL_VERSION {
        return Err(ProtocolError::Version(ready.version));
    }
    if ready.release != release {
        return Err(ProtocolError::Release { found: ready.release, expected: release.to_owned() });
    }
    if u64::from(ready.cpus) != cpus {
        return Err(ProtocolError::Cpus { online: ready.cpus, expected: cpus });
    }
    Ok(ready)
}

/// The timebase in the answer to a request to quiesce.
fn quiesced(frame: &Frame, nonce: u64) -> Result<u64, ProtocolError> {
    if frame.kind != FrameKind::Quiesced {
        return Err(ProtocolError::NotQuiesced(frame.kind));
    }
    if frame.nonce != nonce {
        return Err(ProtocolError::UnknownRequest);
    }
    let timebase = frame.payload.as_slice().try_into().map(u64::from_le_bytes);
    timebase.ok().filter(|timebase| *timebase != 0).ok_or(ProtocolError::NoTimebase)
}

/// A number that no guest program can guess in time: the hash of a random per-process key.
fn nonce() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(Instant::now()) | 1
}

#[cfg(test)]
mod tests;
