//! The guest that decodes what another one has recorded.
//!
//! Each trial has its own: a recording that breaks it breaks no other trial. It is started when the recorded guest is
//! ready, and boots while that records.

use std::fs;
use std::time::Duration;

use camino::Utf8Path;

use guest::{GuestName, KnownMessage};
use vm::process::{last_lines, shell_line};
use vm::qemu::{Machine, StopReason};
use vm::{Answer, Request, Session, SessionError, StepEnd, Work};

use super::abort::{Abort, HarnessError};
use crate::prepare::{Launched, PreparedGuest};

/// How long each part of a file may take to be written.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How many of the console's last lines an error shows.
const TAIL_LINES: usize = 20;

/// A guest that decodes.
pub(super) struct Decoder {
    guest: GuestName,
    /// Its clock, which these are about, decodes nothing.
    boot_errors: Vec<KnownMessage>,
    prepared: PreparedGuest,
    state: State,
}

enum State {
    Starting(Launched),
    Ready(Session),
    Gone,
}

impl Decoder {
    /// Start the guest. Its console, QEMU's standard error and command line are kept in `directory`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start(prepared: &PreparedGuest, directory: &Utf8Path) -> Result<Decoder, Abort> {
        let guest = prepared.guest.name.clone();
        let file = |verb, error| HarnessError::file(verb, directory, error);
        fs::create_dir_all(directory).map_err(|error| file("create", error))?;
        let launched = prepared.launch(false, Some(directory)).map_err(|error| match error.error.kind() {
            std::io::ErrorKind::Interrupted => Abort::Interrupted,
            _ => HarnessError::Decoder { guest: guest.clone(), what: error.to_string() }.into(),
        })?;
        fs::write(directory.join("qemu-command"), prepared.command_file(&launched.machine))
            .map_err(|error| file("write in", error))?;
        let boot_errors = prepared.guest.boot_errors.clone();
        Ok(Decoder { guest, boot_errors, prepared: prepared.clone(), state: State::Starting(launched) })
    }

    /// The guest's name.
    pub(super) fn guest(&self) -> &GuestName {
        &self.guest
    }

    /// Make a file of the guest hold these bytes. Its directory is made.
    ///
    /// # Errors
    /// When the guest does not answer, or the file cannot be written.
    pub(super) fn write(&mut self, cwd: &str, path: &str, content: &[u8]) -> Result<(), Abort> {
        let directory = Utf8Path::new(cwd).join(path);
        let directory = directory.parent().unwrap_or(Utf8Path::new("/"));
        let made = self.request(&Request {
            work: Work::Run(shell_line(["mkdir", "-p", "--", cwd, directory.as_str()])),
            cwd: "/".to_owned(),
            timeout: TIMEOUT,
            output_limit: 1 << 16,
        })?;
        let end = match made.end {
            StepEnd::Exited(0) => {
                let written = self.session()?.write_file(cwd, path, content, TIMEOUT);
                written.map_err(|error| self.lost(&error))?
            }
            other => other,
        };
        if end == StepEnd::Exited(0) {
            return Ok(());
        }
        Err(self.error(format!("failed to write {path}: {end}")).into())
    }

    /// Send a request and wait for its answer.
    ///
    /// # Errors
    /// When the guest does not answer.
    pub(super) fn request(&mut self, request: &Request) -> Result<Answer, Abort> {
        let answer = self.session()?.request(request);
        answer.map_err(|error| self.lost(&error))
    }

    /// The session with the guest, once it has booted.
    fn session(&mut self) -> Result<&mut Session, Abort> {
        let session = match std::mem::replace(&mut self.state, State::Gone) {
            State::Ready(session) => session,
            State::Starting(launched) => {
                let opened = self.prepared.open(launched);
                opened.map_err(|failed| self.failed(&failed.error, &failed.machine))?
            }
            State::Gone => return Err(self.error("it has ended".to_owned()).into()),
        };
        self.state = State::Ready(session);
        match &mut self.state {
            State::Ready(session) => Ok(session),
            State::Starting(_) | State::Gone => unreachable!("it is ready"),
        }
    }

    /// The guest is of no more use.
    fn lost(&mut self, error: &SessionError) -> Abort {
        match std::mem::replace(&mut self.state, State::Gone) {
            State::Ready(session) => self.failed(error, session.machine()),
            State::Starting(launched) => self.failed(error, &launched.machine),
            State::Gone => Abort::from(self.error(error.to_string())),
        }
    }

    /// The error with the console's last lines.
    fn failed(&self, error: &SessionError, machine: &Machine) -> Abort {
        if matches!(error, SessionError::Stopped(StopReason::Interrupted)) {
            return Abort::Interrupted;
        }
        let console = machine.console().unwrap_or_default();
        let tail: String = last_lines(&console, TAIL_LINES)
            .lines()
            .map(|line| format!("\n    console: {}", line.trim_end()))
            .collect();
        self.error(format!("{error}{tail}")).into()
    }

    fn error(&self, what: String) -> HarnessError {
        HarnessError::Decoder { guest: self.guest.clone(), what }
    }

    /// End the guest.
    ///
    /// # Errors
    /// When its kernel printed a splat, or its logs are not complete: what it decoded may be wrong.
    pub(super) fn finish(self) -> Result<(), HarnessError> {
        let mut machine = match self.state {
            State::Starting(launched) => launched.machine,
            State::Ready(session) => session.into_machine(),
            // Whoever lost it has its error.
            State::Gone => return Ok(()),
        };
        let what = match machine.finish() {
            Err(error) => error.to_string(),
            Ok(()) => match machine.splats().iter().find(|splat| splat.known_as(&self.boot_errors).is_none())
            {
                Some(splat) => format!("its kernel printed a splat: {}", splat.line),
                None => return Ok(()),
            },
        };
        Err(HarnessError::Decoder { guest: self.guest, what })
    }
}
