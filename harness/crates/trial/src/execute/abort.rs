//! Why a trial did not get to its end, by whose part it was.
//!
//! The kernel, a step, QEMU, the guest's agent, the dispatch trace log and the harness each have a variant:
//! a verdict depends on which of them it was, never on the words.

use std::io;
use std::time::Duration;

use camino::Utf8PathBuf;

use formats::units::show_duration;
use kmod::ModuleError;
use vm::dispatch_log::WriteError;
use vm::qemu::{ConsoleError, StopReason};
use vm::{SessionError, StepEnd};
use yaml::show_size;

/// Why a trial did not get to its end.
#[derive(Debug, thiserror::Error)]
pub enum Abort {
    /// The kernel panicked. After the agent's greeting, that is the kernel's failure.
    #[error("the kernel panicked")]
    Panic,
    /// A step did not end as its case says.
    #[error(transparent)]
    Step(StepError),
    /// QEMU could not be started.
    #[error("failed to start QEMU: {0}")]
    Start(io::Error),
    /// QEMU or the guest's agent stopped, or did not keep to the protocol.
    #[error(transparent)]
    Guest(SessionError),
    /// The dispatch trace log could not be written as planned.
    #[error("failed to write the dispatch trace log: {0}")]
    DispatchLog(DispatchLogError),
    /// The harness could not do its own part.
    #[error(transparent)]
    Harness(#[from] HarnessError),
    /// The user has interrupted.
    #[error("interrupted")]
    Interrupted,
}

/// A step that did not end as its case says.
#[derive(Debug, thiserror::Error)]
#[error("{problem}{stderr}")]
pub struct StepError {
    /// How it ended.
    pub problem: StepProblem,
    /// The last lines of its standard error, each indented on a line of its own.
    pub stderr: String,
}

/// How a step ended.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepProblem {
    /// With another exit status.
    #[error("exit status {found}, expected {expected}")]
    ExitStatus {
        /// Its exit status.
        found: u32,
        /// The one that the case says.
        expected: u32,
    },
    /// A signal killed it.
    #[error("killed by signal {0}")]
    Signal(u32),
    /// It ran into its timeout.
    #[error(
        "timed out after {}: the step was killed (`timeout:` sets another timeout)",
        show_duration(u64::try_from(.0.as_nanos()).unwrap_or(u64::MAX))
    )]
    TimedOut(Duration),
    /// It printed more than it may, which is given in bytes.
    #[error("the output reached {}: the step was killed (`output_limit:` sets another limit)", show_size(u64::from(*.0)))]
    Flooded(u32),
    /// The file could not be read.
    #[error("failed to read {path}: {}", os_error(*errno))]
    Read {
        /// The file.
        path: String,
        /// The guest's error number.
        errno: u32,
    },
    /// The shell could not be started: the guest's error number.
    #[error("failed to start the shell: {}", os_error(*.0))]
    Shell(u32),
}

/// Why the dispatch trace log was not written as planned.
#[derive(Debug, thiserror::Error)]
pub enum DispatchLogError {
    /// The guest was booted without memory that the harness can write to.
    #[error("the guest's memory is not shared")]
    NotShared,
    /// The kernel's symbols could not be read.
    #[error("failed to read the kernel's symbols in `{path}`: {error}")]
    Symbols {
        /// The file.
        path: Utf8PathBuf,
        /// What happened.
        error: io::Error,
    },
    /// The command that records ended too early.
    #[error("{error}: {end}{stderr}")]
    Ended {
        /// Before what.
        error: WriteError<SessionError>,
        /// How it ended.
        end: StepEnd,
        /// The last lines of its standard error, each indented on a line of its own.
        stderr: String,
    },
    /// The log is not as expected, or cannot be written.
    #[error(transparent)]
    Write(WriteError<SessionError>),
}

/// What the harness could not do.
#[derive(Debug, thiserror::Error)]
pub enum HarnessError {
    /// A file on the host could not be used.
    #[error("failed to {verb} `{path}`: {error}")]
    File {
        /// What was attempted.
        verb: &'static str,
        /// On what.
        path: Utf8PathBuf,
        /// What happened.
        error: io::Error,
    },
    /// A file could not be copied out of the guest.
    #[error("failed to copy {path} out of the guest: {end}")]
    Copy {
        /// The file.
        path: String,
        /// How the request ended.
        end: StepEnd,
    },
    /// perf could not be run on the host.
    #[error("failed to run perf on the host on {data}: {error}")]
    HostPerf {
        /// The data's file.
        data: String,
        /// What happened.
        error: io::Error,
    },
    /// No perf was made for the host.
    #[error("there is no perf for the host")]
    NoHostPerf,
    /// The guest does not have the module.
    #[error("the guest has no module `{0}`")]
    NoModule(String),
    /// A module's file cannot be read as one.
    #[error("failed to inspect module `{path}`: {error}")]
    Module {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong with it.
        error: ModuleError,
    },
    /// The console is not complete, and it is unknown what the kernel printed last.
    #[error(transparent)]
    Console(ConsoleError),
    /// What QEMU or the guest printed could not be read back.
    #[error("failed to read the guest's console or QEMU's standard error: {0}")]
    Output(io::Error),
    /// A step that needs a guest came up in a trial that boots none.
    #[error("this step needs a guest")]
    NoGuest,
}

/// The words for an error number of the guest, which are the host's.
fn os_error(errno: u32) -> String {
    match i32::try_from(errno) {
        Ok(errno @ 1..) => io::Error::from_raw_os_error(errno).to_string(),
        _ => format!("unknown error number {errno}"),
    }
}

impl From<SessionError> for Abort {
    fn from(error: SessionError) -> Abort {
        match error {
            SessionError::Stopped(StopReason::Panicked(_)) => Abort::Panic,
            SessionError::Stopped(StopReason::Interrupted) => Abort::Interrupted,
            other => Abort::Guest(other),
        }
    }
}

impl From<DispatchLogError> for Abort {
    fn from(error: DispatchLogError) -> Abort {
        match error {
            DispatchLogError::Write(WriteError::Guest(error)) => error.into(),
            other => Abort::DispatchLog(other),
        }
    }
}

impl HarnessError {
    pub(super) fn file(verb: &'static str, path: impl Into<Utf8PathBuf>, error: io::Error) -> HarnessError {
        HarnessError::File { verb, path: path.into(), error }
    }
}

/// The last lines of a step's standard error, for a message.
pub(super) fn excerpt(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(10)..];
    last.iter().map(|line| format!("\n    stderr: {line}")).collect()
}
