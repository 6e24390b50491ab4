//! Requests to the agent, and their answers.

use std::fmt;
use std::time::{Duration, Instant};

use super::protocol::{Frame, FrameKind, PROTOCOL_VERSION, Ready};
use crate::qemu::{GuestControl, Machine, MachineEvent, StopReason};

/// How much longer than the guest's own limit the host waits: under TCG on a busy host, the guest's
/// clock and ours drift apart, and its killing of a process group takes time too.
const GRACE: Duration = Duration::from_secs(5);

/// What is waited for while the guest's interrupt handlers end.
const SETTLING: &str = "the guest's CPUs";

/// How long a guest may take to end after it was told to.
const END_LIMIT: Duration = Duration::from_secs(10);

/// What a request does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// Run a script with `sh -e`.
    Run(String),
    /// The same, with a standard input that stays open until [`Session::close_input`].
    RunOpen(String),
    /// Read a file to its end.
    Read(String),
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What to do.
    pub work: Work,
    /// The directory that relative paths start from.
    pub cwd: String,
    /// How long it may take, in the guest's time.
    pub timeout: Duration,
    /// How many bytes it may print, on both streams together.
    pub output_limit: u32,
}

/// How a request ended in the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepEnd {
    /// The script ended with this status; a file that was read counts as 0.
    Exited(u32),
    /// The script was ended by this signal.
    Signalled(u32),
    /// It reached its time limit and was killed.
    TimedOut,
    /// It reached its output limit and was killed.
    Flooded,
    /// It could not be started, opened or read: errno.
    Errno(u32),
}

impl fmt::Display for StepEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StepEnd::Exited(status) => write!(f, "exit status {status}"),
            StepEnd::Signalled(signal) => write!(f, "ended by signal {signal}"),
            StepEnd::TimedOut => write!(f, "killed at its time limit"),
            StepEnd::Flooded => write!(f, "killed at its limit of output"),
            StepEnd::Errno(errno) => {
                let error = std::io::Error::from_raw_os_error(i32::try_from(*errno).unwrap_or(0));
                write!(f, "{error}")
            }
        }
    }
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// How it ended.
    pub end: StepEnd,
    /// Its standard output, or the file's content.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// How long it took, in the guest's time.
    pub elapsed: Duration,
}

/// An answer that is on its way.
#[derive(Debug)]
pub struct Pending {
    nonce: u64,
    /// What is waited for, for messages.
    what: String,
    limit: Duration,
    deadline: Instant,
    output_limit: usize,
    answer: Answer,
}

impl Pending {
    fn new(nonce: u64, what: String, limit: Duration, output_limit: usize) -> Pending {
        let answer = Answer {
            end: StepEnd::Exited(0),
            stdout: Vec::new(),
            stderr: Vec::new(),
            elapsed: Duration::ZERO,
        };
        Pending { nonce, what, limit, deadline: Instant::now() + limit, output_limit, answer }
    }

    /// What the guest has answered so far.
    pub fn answer(&self) -> &Answer {
        &self.answer
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The machine stopped, or did nothing for too long.
    #[error("{0}")]
    Stopped(StopReason),
    /// The agent does not keep to the protocol, or is not the one that was built.
    #[error("{0}")]
    Protocol(String),
    /// The request does not fit in a frame.
    #[error("the step is too large: {size} bytes, and at most {max} fit")]
    TooLarge {
        /// Bytes of the request.
        size: usize,
        /// Bytes that fit.
        max: usize,
    },
}

impl From<StopReason> for SessionError {
    fn from(stop: StopReason) -> SessionError {
        SessionError::Stopped(stop)
    }
}

/// A guest that did not get as far as the agent's greeting.
pub struct OpenError {
    /// The machine, for its console.
    pub machine: Machine,
    /// What happened.
    pub error: SessionError,
}

/// A conversation with a guest that is ready.
pub struct Session {
    machine: Machine,
    ready: Ready,
    /// From the start of QEMU to the agent's greeting.
    boot_time: Duration,
}

impl Session {
    /// Wait for the agent's greeting and check that it is the agent, the kernel and the CPUs that
    /// were asked for.
    ///
    /// # Errors
    /// When the guest does not get that far within `limit`, or is another one. The machine comes
    /// back with the error, for its console.
    pub fn open(
        mut machine: Machine,
        release: &str,
        cpus: u64,
        limit: Duration,
    ) -> Result<Session, Box<OpenError>> {
        let deadline = machine.started() + limit;
        let frame = match machine.frame("the agent's greeting", deadline, limit) {
            Ok(frame) => frame,
            Err(stop) => return Err(Box::new(OpenError { machine, error: stop.into() })),
        };
        let boot_time = machine.started().elapsed();
        let checked = Ready::parse(&frame.payload)
            .map_err(|e| SessionError::Protocol(e.to_string()))
            .and_then(|ready| {
                if frame.kind != FrameKind::Ready || ready.version != PROTOCOL_VERSION {
                    return Err(SessionError::Protocol(format!(
                        "the agent speaks version {} of the protocol, and this goldtrace {PROTOCOL_VERSION}",
                        ready.version
                    )));
                }
                if ready.release != release {
                    return Err(SessionError::Protocol(format!(
                        "the guest runs kernel {}, and {release} was to be booted",
                        ready.release
                    )));
                }
                if u64::from(ready.cpus) != cpus {
                    return Err(SessionError::Protocol(format!(
                        "{} of the guest's {cpus} CPUs are online",
                        ready.cpus
                    )));
                }
                Ok(ready)
            });
        match checked {
            Ok(ready) => Ok(Session { machine, ready, boot_time }),
            Err(error) => Err(Box::new(OpenError { machine, error })),
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
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The guest from the outside, when it shares its memory; once.
    pub fn take_control(&mut self) -> Option<GuestControl> {
        self.machine.take_control()
    }

    /// Send a request and gather its answer.
    ///
    /// # Errors
    /// See [`SessionError`]. After one, the guest is of no more use.
    pub fn request(&mut self, request: &Request) -> Result<Answer, SessionError> {
        let pending = self.start(request)?;
        self.finish(pending)
    }

    /// Send a request. Its answer has to be gathered before the next one is sent.
    ///
    /// # Errors
    /// As [`Session::request`].
    pub fn start(&mut self, request: &Request) -> Result<Pending, SessionError> {
        let nonce = nonce();
        let payload = payload(request);
        if payload.len() > Frame::payload_max() {
            return Err(SessionError::TooLarge { size: payload.len(), max: Frame::payload_max() });
        }
        let (kind, what) = match &request.work {
            Work::Run(script) => (FrameKind::Run, format!("the end of `{}`", first_line(script))),
            Work::RunOpen(script) => (FrameKind::RunOpen, format!("the end of `{}`", first_line(script))),
            Work::Read(path) => (FrameKind::Read, format!("the content of {path}")),
        };
        self.machine.send(&Frame { kind, nonce, payload })?;
        Ok(Pending::new(nonce, what, request.timeout + GRACE, request.output_limit as usize))
    }

    /// Gather the answer to its end.
    ///
    /// # Errors
    /// As [`Session::request`].
    pub fn finish(&mut self, mut pending: Pending) -> Result<Answer, SessionError> {
        let deadline = pending.deadline;
        while !self.gather(&mut pending, deadline)? {}
        Ok(pending.answer)
    }

    /// Gather what comes of the answer within `time`; whether that was its end.
    ///
    /// # Errors
    /// As [`Session::request`].
    pub fn wait(&mut self, pending: &mut Pending, time: Duration) -> Result<bool, SessionError> {
        let until = Instant::now() + time;
        loop {
            match self.gather(pending, until) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(SessionError::Stopped(StopReason::TimedOut { .. })) if until < pending.deadline => {
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Take the next frame of the answer, which has to come until `until`; whether it was the last.
    fn gather(&mut self, pending: &mut Pending, until: Instant) -> Result<bool, SessionError> {
        let frame = self.machine.frame(&pending.what, until, pending.limit)?;
        take(pending, frame)
    }

    /// End the standard input of a [`Work::RunOpen`]. When the script has ended already, nothing
    /// happens.
    ///
    /// # Errors
    /// When the port is closed.
    pub fn close_input(&mut self, pending: &Pending) -> Result<(), SessionError> {
        Ok(self.machine.send(&Frame { kind: FrameKind::Close, nonce: pending.nonce, payload: Vec::new() })?)
    }

    /// Wait until every interrupt handler that had begun on any of the guest's CPUs has ended; the
    /// timebase after that, in ticks.
    ///
    /// # Errors
    /// As [`Session::request`]; a guest whose processor has no timebase, which only powerpc has.
    pub fn quiesce(&mut self) -> Result<u64, SessionError> {
        let nonce = self.send_quiesce()?;
        let frame = self.machine.frame(SETTLING, Instant::now() + GRACE, GRACE)?;
        settled(&frame, nonce)
    }

    /// The same while an answer is on its way; `None` when the answer has come to its end meanwhile.
    ///
    /// # Errors
    /// As [`Session::quiesce`].
    pub fn quiesce_during(&mut self, pending: &mut Pending) -> Result<Option<u64>, SessionError> {
        let nonce = self.send_quiesce()?;
        let mut ended = false;
        loop {
            let frame = self.machine.frame(SETTLING, pending.deadline, pending.limit)?;
            if frame.kind == FrameKind::Settled {
                let timebase = settled(&frame, nonce)?;
                return Ok((!ended).then_some(timebase));
            }
            ended |= take(pending, frame)?;
        }
    }

    fn send_quiesce(&mut self) -> Result<u64, SessionError> {
        let nonce = nonce();
        self.machine.send(&Frame { kind: FrameKind::Settle, nonce, payload: Vec::new() })?;
        Ok(nonce)
    }

    /// Tell the guest to power off and wait for QEMU's end.
    ///
    /// # Errors
    /// When QEMU does not end by itself. The machine comes back either way, for its console.
    pub fn end(mut self) -> (Machine, Result<(), SessionError>) {
        let sent = self.machine.send(&Frame { kind: FrameKind::End, nonce: nonce(), payload: Vec::new() });
        if let Err(stop) = sent {
            return (self.machine, Err(stop.into()));
        }
        let deadline = Instant::now() + END_LIMIT;
        let result = loop {
            match self.machine.event(deadline) {
                Some(MachineEvent::Exited(status)) if status.success() => break Ok(()),
                Some(MachineEvent::Exited(status)) => break Err(StopReason::Exited(status).into()),
                Some(MachineEvent::Frame(_)) => {
                    break Err(SessionError::Protocol("the agent spoke after it was told to end".to_owned()));
                }
                Some(_) => {}
                None => {
                    break Err(
                        StopReason::TimedOut { what: "QEMU's end".to_owned(), limit: END_LIMIT }.into()
                    );
                }
            }
        };
        (self.machine, result)
    }

    /// The machine, without a word to the guest.
    pub fn into_machine(self) -> Machine {
        self.machine
    }
}

fn first_line(script: &str) -> &str {
    script.lines().find(|line| !line.trim().is_empty()).unwrap_or_default()
}

/// The timebase in the answer to a request to settle.
fn settled(frame: &Frame, nonce: u64) -> Result<u64, SessionError> {
    if frame.kind != FrameKind::Settled || frame.nonce != nonce {
        return Err(SessionError::Protocol(format!("the agent sent {:?} when it was to settle", frame.kind)));
    }
    let timebase = frame.payload.as_slice().try_into().map(u64::from_le_bytes);
    let timebase = timebase.ok().filter(|timebase| *timebase != 0);
    timebase.ok_or_else(|| SessionError::Protocol("the guest's processor has no timebase".to_owned()))
}

/// Add a frame to the answer that it belongs to; whether it was the last.
fn take(pending: &mut Pending, frame: Frame) -> Result<bool, SessionError> {
    if frame.nonce != pending.nonce {
        return Err(SessionError::Protocol("the agent answered a request that was not made".to_owned()));
    }
    let answer = &mut pending.answer;
    match frame.kind {
        FrameKind::Stdout => answer.stdout.extend(frame.payload),
        FrameKind::Stderr => answer.stderr.extend(frame.payload),
        FrameKind::Done => {
            finish(answer, &frame.payload)?;
            return Ok(true);
        }
        other => {
            return Err(SessionError::Protocol(format!("the agent sent {other:?} inside an answer")));
        }
    }
    if answer.stdout.len() + answer.stderr.len() > pending.output_limit {
        return Err(SessionError::Protocol("the agent sent more than it may".to_owned()));
    }
    Ok(false)
}

fn payload(request: &Request) -> Vec<u8> {
    let body = match &request.work {
        Work::Run(text) | Work::RunOpen(text) | Work::Read(text) => text,
    };
    let ms = u32::try_from(request.timeout.as_millis()).unwrap_or(u32::MAX);
    let length = u32::try_from(request.cwd.len()).unwrap_or(u32::MAX);
    let mut bytes = Vec::new();
    bytes.extend(ms.to_le_bytes());
    bytes.extend(request.output_limit.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend(request.cwd.as_bytes());
    bytes.extend(body.as_bytes());
    bytes
}

fn finish(answer: &mut Answer, payload: &[u8]) -> Result<(), SessionError> {
    let payload: &[u8; 32] = payload
        .try_into()
        .map_err(|_| SessionError::Protocol(format!("an end record of {} bytes", payload.len())))?;
    let word = |at: usize| u32::from_le_bytes(payload[at..at + 4].try_into().expect("four bytes"));
    let long = |at: usize| u64::from_le_bytes(payload[at..at + 8].try_into().expect("eight bytes"));
    let value = word(4);
    answer.end = match word(0) {
        0 => StepEnd::Exited(value),
        1 => StepEnd::Signalled(value),
        2 => StepEnd::TimedOut,
        3 => StepEnd::Flooded,
        4 => StepEnd::Errno(value),
        other => return Err(SessionError::Protocol(format!("an end record of the unknown kind {other}"))),
    };
    answer.elapsed = Duration::from_micros(long(24));
    let received = (answer.stdout.len() as u64, answer.stderr.len() as u64);
    if received != (long(8), long(16)) {
        return Err(SessionError::Protocol(format!(
            "the agent sent {} and {} bytes of output, and {} and {} came",
            long(8),
            long(16),
            received.0,
            received.1
        )));
    }
    Ok(())
}

/// A number that no guest program can guess in time: the hash of a random per-process key.
fn nonce() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(Instant::now()) | 1
}
