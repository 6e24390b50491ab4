//! `goldtrace exec`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::str::FromStr;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;

use super::error::CommandError;
use super::options::{CaseModules, Guests, Images, IsolateOption, ProjectOption};
use super::status::Status;
use crate::report::{pass_on, pass_on_to_stderr};
use image::{Refresh, RootfsSpec};
use trial::PreparedGuest;
use vm::process::{last_lines, shell_line};
use vm::{Request, Session, SessionError, StepEnd, Work};

/// Where commands start, and relative paths.
const DIRECTORY: &str = "/sys/kernel/tracing";
/// Where files go that are given without a path.
const PUT_DIRECTORY: &str = "/tmp";
/// How long each part of a file may take to be copied.
const COPY_TIMEOUT: Duration = Duration::from_secs(60);
/// How long what was printed may wait to be passed on.
const INTERVAL: Duration = Duration::from_millis(20);
/// How many of the console's last lines an error shows.
const TAIL_LINES: usize = 20;

/// The exit statuses that are not the command's own, as timeout(1) has them.
const TIMED_OUT: u8 = 124;
const FAILED: u8 = 125;
/// What is added to the number of the signal that killed the command, as sh(1) does.
const SIGNAL: u32 = 128;

const HELP: &str = "\
One word is a script for the guest's shell; several are a program and its arguments. The command starts in
/sys/kernel/tracing and has no standard input.

Exit status: that of the command; 128 and the signal's number when a signal killed it; 124 when it ran into the timeout;
125 when goldtrace, a build or the guest failed; 130 when interrupted";

/// Run one command in a guest, with the image that trials boot, and perf
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct Exec {
    #[command(flatten)]
    guests: Guests,
    #[command(flatten)]
    images: Images,
    #[command(flatten)]
    modules: CaseModules,
    /// Copy this file into the guest before the command runs (repeatable) [default PATH: /tmp and the file's name]
    #[arg(long, value_name = "FILE[:PATH]")]
    put: Vec<Copied>,
    /// Copy this file of the guest out when the command has ended (repeatable) [default FILE: the path's last part]
    #[arg(long, value_name = "PATH[:FILE]")]
    get: Vec<Copied>,
    /// How long the command may take
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = timeout)]
    timeout: Duration,
    /// How the command gets a guest that nothing else has touched
    #[arg(long, value_enum, default_value = "snapshot")]
    isolate: IsolateOption,
    /// The command
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// A file that is copied, and where to, when that is given.
#[derive(Debug, Clone)]
struct Copied {
    from: Utf8PathBuf,
    to: Option<Utf8PathBuf>,
}

impl FromStr for Copied {
    type Err = String;

    fn from_str(text: &str) -> Result<Copied, String> {
        let (from, to) = match text.split_once(':') {
            Some((from, to)) => (from, Some(to)),
            None => (text, None),
        };
        if from.is_empty() || to == Some("") {
            return Err("a path is empty".to_owned());
        }
        Ok(Copied { from: from.into(), to: to.map(Utf8PathBuf::from) })
    }
}

fn timeout(text: &str) -> Result<Duration, String> {
    formats::units::parse_duration(text).map(Duration::from_nanos).map_err(|error| error.to_string())
}

impl Exec {
    /// Run the command. The status is its own.
    pub(super) fn run(&self, option: &ProjectOption) -> Result<Status, CommandError> {
        match self.execute(option) {
            Ok(status) => Ok(Status::OfCommand(status)),
            Err(error) => Ok(match error.report() {
                Status::Interrupted => Status::Interrupted,
                _ => Status::OfCommand(FAILED),
            }),
        }
    }

    fn execute(&self, option: &ProjectOption) -> Result<u8, CommandError> {
        let project = option.project()?;
        let inputs = self.modules.inputs(&project)?;
        let guest = self.guests.choose_one(&inputs.guests)?;
        let files = self.put.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let spec = RootfsSpec { perf: true, modules: self.modules.choose(&inputs.cases)? };
        let guests = self.images.guests(&project, &inputs, Refresh::WhenOld, self.isolate.into())?;
        let prepared = guests.with_snapshot(guests.guest(guest, &spec)?, &spec)?;
        guests.check_patches()?;
        let mut guest = Running::start(&prepared)?;
        for (path, content, is_program) in &files {
            guest.write(path, content, *is_program)?;
        }
        let end = guest.run(&self.script(), self.timeout)?;
        for copied in &self.get {
            guest.read(copied)?;
        }
        guest.end();
        Ok(match end {
            StepEnd::Exited(status) => u8::try_from(status).unwrap_or(FAILED),
            StepEnd::Signalled(signal) => u8::try_from(SIGNAL + signal).unwrap_or(FAILED),
            StepEnd::TimedOut => {
                note_line!("error: the command was killed: it took longer than {:?}", self.timeout);
                TIMED_OUT
            }
            end @ (StepEnd::Flooded | StepEnd::Errno(_)) => {
                note_line!("error: the command could not be run to its end: {end}");
                FAILED
            }
        })
    }

    /// The command as a script. Its exit status is that of the last command, as in any shell.
    fn script(&self) -> String {
        match self.command.as_slice() {
            [script] => format!("set +e +o pipefail\n{script}"),
            words => format!("exec {}", shell_line(words)),
        }
    }
}

/// A file to be copied into the guest: its path there, its content, and whether it is a program.
fn read(copied: &Copied) -> Result<(Utf8PathBuf, Vec<u8>, bool), CommandError> {
    let from = &copied.from;
    let content = fs::read(from).map_err(|error| CommandError::file("read", from, error))?;
    let mode = fs::metadata(from).map_err(|error| CommandError::file("look at", from, error))?.permissions();
    let name = from.file_name().unwrap_or("file");
    let path = copied.to.clone().unwrap_or_else(|| Utf8Path::new(PUT_DIRECTORY).join(name));
    Ok((path, content, mode.mode() & 0o111 != 0))
}

/// The guest, whose agent is ready.
struct Running {
    session: Session,
}

impl Running {
    fn start(prepared: &PreparedGuest) -> Result<Running, CommandError> {
        let session = prepared.start_session().map_err(CommandError::Guest)?;
        Ok(Running { session })
    }

    fn request(work: Work, timeout: Duration) -> Request {
        Request { work, cwd: DIRECTORY.to_owned(), timeout, output_limit: u32::MAX }
    }

    fn write(&mut self, path: &Utf8Path, content: &[u8], is_program: bool) -> Result<(), CommandError> {
        let written = self.session.write_file(DIRECTORY, path.as_str(), content, COPY_TIMEOUT);
        let mut end = written.map_err(|error| self.lost(&error))?;
        if is_program && end == StepEnd::Exited(0) {
            let script = shell_line(["chmod", "+x", path.as_str()]);
            let answer = self.session.request(&Running::request(Work::Run(script), COPY_TIMEOUT));
            end = answer.map_err(|error| self.lost(&error))?.end;
        }
        match end {
            StepEnd::Exited(0) => Ok(()),
            end => Err(CommandError::Guest(format!("failed to write {path} in the guest: {end}"))),
        }
    }

    fn read(&mut self, copied: &Copied) -> Result<(), CommandError> {
        let path = &copied.from;
        let request = Running::request(Work::Read(path.to_string()), COPY_TIMEOUT);
        let answer = self.session.request(&request).map_err(|error| self.lost(&error))?;
        if answer.end != StepEnd::Exited(0) {
            return Err(CommandError::Guest(format!("failed to read {path} in the guest: {}", answer.end)));
        }
        let file = copied.to.clone().unwrap_or_else(|| path.file_name().unwrap_or("file").into());
        fs::write(&file, answer.stdout).map_err(|error| CommandError::file("write", &file, error))
    }

    /// Run a script, and pass on what it prints while it runs.
    fn run(&mut self, script: &str, timeout: Duration) -> Result<StepEnd, CommandError> {
        let request = Running::request(Work::Run(script.to_owned()), timeout);
        let mut pending = self.session.start(&request).map_err(|error| self.lost(&error))?;
        loop {
            let ended = self.session.wait(&mut pending, INTERVAL);
            // Also when the guest is lost.
            let (stdout, stderr) = pending.take_output();
            pass_on(&stdout)?;
            pass_on_to_stderr(&stderr)?;
            if ended.map_err(|error| self.lost(&error))? {
                return Ok(pending.answer().end.clone());
            }
        }
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
    fn end(self) {
        for splat in self.session.machine().splats() {
            note_line!("warning: the kernel printed a splat: {}", splat.line);
        }
    }
}
