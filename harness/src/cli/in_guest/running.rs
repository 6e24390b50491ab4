//! The guest, whose agent is ready.

use std::time::Duration;

use super::files::{Copied, GuestFile};
use super::stdin::Part;
use super::{KernelLines, Stdin, Terminal};
use crate::cli::error::CommandError;
use crate::report::{pass_on, pass_on_to_stderr};
use guest::GuestName;
use trial::PreparedGuest;
use vm::process::{last_lines, shell_line};
use vm::qemu::Machine;
use vm::{Pending, Request, Session, SessionError, StepEnd, Work};

/// Where commands start, and relative paths.
const DIRECTORY: &str = "/sys/kernel/tracing";
/// How long each part of a file may take to be copied.
const COPY_TIMEOUT: Duration = Duration::from_secs(60);
/// How long input, another size and messages of the kernel may wait until they are passed on.
const INTERVAL: Duration = Duration::from_millis(10);
/// How long the console may take to show what the kernel printed before the command ended. It shows less when the command
/// has silenced it.
const MESSAGES_TIMEOUT: Duration = Duration::from_secs(1);
/// How many of the console's last lines an error shows.
const TAIL_LINES: usize = 20;

/// The guest, whose agent is ready.
pub(in crate::cli) struct Running {
    guest: GuestName,
    session: Session,
}

/// What a command is connected with besides standard output and standard error.
#[derive(Debug, Default)]
pub(in crate::cli) struct Connected {
    /// Its standard input; `None` where it has none that is ours.
    pub(in crate::cli) stdin: Option<Stdin>,
    /// The terminal that it has taken.
    pub(in crate::cli) terminal: Option<Terminal>,
    /// The kernel's messages, when they are shown while it runs.
    pub(in crate::cli) kernel: Option<KernelLines>,
}

impl Running {
    pub(super) fn start(prepared: &PreparedGuest) -> Result<Running, CommandError> {
        let session = prepared.start_session().map_err(CommandError::Guest)?;
        Ok(Running { guest: prepared.guest.name.clone(), session })
    }

    /// The guest's name.
    pub(in crate::cli) fn guest(&self) -> &GuestName {
        &self.guest
    }

    /// The machine.
    pub(in crate::cli) fn machine(&self) -> &Machine {
        self.session.machine()
    }

    fn request(work: Work, timeout: Duration) -> Request {
        Request { work, cwd: DIRECTORY.to_owned(), timeout, output_limit: u32::MAX }
    }

    /// Write a file in the guest.
    pub(super) fn write(&mut self, file: &GuestFile) -> Result<(), CommandError> {
        let GuestFile { path, content, is_program } = file;
        let written = self.session.write_file(DIRECTORY, path.as_str(), content, COPY_TIMEOUT);
        let mut end = written.map_err(|error| self.lost(&error))?;
        if *is_program && end == StepEnd::Exited(0) {
            let script = shell_line(["chmod", "+x", path.as_str()]);
            let answer = self.session.request(&Running::request(Work::Run(script), COPY_TIMEOUT));
            end = answer.map_err(|error| self.lost(&error))?.end;
        }
        match end {
            StepEnd::Exited(0) => Ok(()),
            end => Err(CommandError::Guest(format!("failed to write {path} in the guest: {end}"))),
        }
    }

    /// Read a file of the guest, and write it here.
    pub(super) fn read(&mut self, copied: &Copied) -> Result<(), CommandError> {
        let path = copied.from();
        let request = Running::request(Work::Read(path.to_string()), COPY_TIMEOUT);
        let answer = self.session.request(&request).map_err(|error| self.lost(&error))?;
        if answer.end != StepEnd::Exited(0) {
            return Err(CommandError::Guest(format!("failed to read {path} in the guest: {}", answer.end)));
        }
        copied.write(&answer.stdout)
    }

    /// Run a script, and pass on what it prints and is sent while it runs; `None` when the user has ended the guest.
    pub(in crate::cli) fn run(
        &mut self,
        work: Work,
        timeout: Duration,
        mut connected: Connected,
    ) -> Result<Option<StepEnd>, CommandError> {
        let request = Running::request(work, timeout);
        let mut pending = self.session.start(&request).map_err(|error| self.lost(&error))?;
        loop {
            let ended = self.session.wait_for_part(&mut pending, INTERVAL);
            // Also when the guest is lost.
            let (stdout, stderr) = pending.take_output();
            pass_on(&stdout)?;
            pass_on_to_stderr(&stderr)?;
            let ended = ended.map_err(|error| self.lost(&error))?;
            if ended {
                self.session.wait_for_messages(MESSAGES_TIMEOUT);
            }
            if let Some(kernel) = &mut connected.kernel {
                kernel.print(self.session.machine())?;
            }
            if ended {
                return Ok(Some(pending.answer().end.clone()));
            }
            if let Some(size) = connected.terminal.as_mut().and_then(Terminal::new_size) {
                self.session.resize(&pending, size).map_err(|error| self.lost(&error))?;
            }
            if pending.takes_input() && !self.pass_input(&mut pending, &mut connected.stdin)? {
                return Ok(None);
            }
        }
    }

    /// Pass on what has come to our standard input. `false` when the user has ended the guest.
    fn pass_input(&mut self, pending: &mut Pending, stdin: &mut Option<Stdin>) -> Result<bool, CommandError> {
        let Some(input) = stdin else { return Ok(true) };
        let read = |error| CommandError::Guest(format!("failed to read standard input: {error}"));
        let sent = match input.next().map_err(read)? {
            Part::Nothing => Ok(()),
            Part::Bytes(bytes) => self.session.send_input(pending, &bytes),
            Part::Escape => return Ok(false),
            Part::End => {
                *stdin = None;
                self.session.close_input(pending)
            }
        };
        sent.map_err(|error| self.lost(&error))?;
        Ok(true)
    }

    /// The guest is of no more use: the error, with the console's last lines.
    fn lost(&self, error: &SessionError) -> CommandError {
        let console = self.session.machine().console().unwrap_or_default();
        CommandError::Guest(format!(
            "{error}\nthe console's last lines:\n{}",
            last_lines(&console, TAIL_LINES)
        ))
    }

    /// End the guest, and say what its kernel reported.
    pub(super) fn end(self) {
        for splat in self.session.machine().splats() {
            note_line!("warning: the kernel printed a splat: {}", splat.line);
        }
    }
}
