//! Why a trial did not get to its end, by whose part it was.
//!
//! The kernel, a step, QEMU, the guest's agent, the dispatch trace log and the harness each have a variant:
//! a verdict depends on which of them it was, never on the words. [`Abort::of_kernel`] says which are the kernel's.

use std::io;

use camino::Utf8PathBuf;

use super::problem::{StepError, StepProblem};
use guest::GuestName;
use kmod::ModuleError;
use vm::dispatch_log::{LogError, WriteError};
use vm::qemu::{MachineLogError, StopReason};
use vm::{SessionError, StepEnd};

/// Why a trial did not get to its end.
#[derive(Debug, thiserror::Error)]
pub enum Abort {
    /// The kernel panicked. After the agent's greeting, that is the kernel's failure.
    #[error("the kernel panicked")]
    Panic,
    /// The guest is not fit for a step, by what its kernel printed while it booted.
    #[error("the guest is not fit for a trial: {line}\n  {reason}")]
    Boot {
        /// The kernel's message.
        line: String,
        /// What it means.
        reason: String,
    },
    /// A step did not end as its case says.
    #[error(transparent)]
    Step(StepError),
    /// The guest no longer answers, while QEMU goes on.
    #[error("{0}")]
    Hung(StopReason),
    /// The guest shut down or reset before it was asked to.
    #[error("{0}")]
    ShutDown(StopReason),
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
    /// The guest that decodes recordings a second time did not do its part.
    #[error("failed to decode in guest {guest}: {what}")]
    Decoder {
        /// The guest.
        guest: GuestName,
        /// What happened.
        what: String,
    },
    /// No guest was prepared to decode.
    #[error("there is no guest that decodes recordings")]
    NoDecoder,
    /// The kernel did not look for leaked memory.
    #[error("failed to look for leaked memory in the guest: {end}{stderr}")]
    Leaks {
        /// How the request ended.
        end: StepEnd,
        /// The last lines of its standard error, each indented on a line of its own.
        stderr: String,
    },
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
    /// The console or QEMU's standard error is not complete, and it is unknown what the kernel printed last.
    #[error(transparent)]
    Console(MachineLogError),
    /// What QEMU or the guest printed could not be read back.
    #[error("failed to read the guest's console or QEMU's standard error: {0}")]
    Output(io::Error),
    /// A step that needs a guest came up in a trial that boots none.
    #[error("this step needs a guest")]
    NoGuest,
}

impl From<SessionError> for Abort {
    fn from(error: SessionError) -> Abort {
        match error {
            SessionError::Stopped(StopReason::Panicked(_)) => Abort::Panic,
            SessionError::Stopped(StopReason::Interrupted) => Abort::Interrupted,
            SessionError::Stopped(stop @ StopReason::TimedOut { .. }) => Abort::Hung(stop),
            SessionError::Stopped(stop @ StopReason::Exited(status)) if status.success() => {
                Abort::ShutDown(stop)
            }
            other => Abort::Guest(other),
        }
    }
}

impl Abort {
    /// What the kernel did to the step, when that is what ended the trial, after the agent's greeting. A documented
    /// command that the kernel refuses or never ends is a verdict on the kernel. `None` where QEMU, the agent, the
    /// harness or the host failed, and for a panic, which the console accounts for.
    pub fn of_kernel(&self) -> Option<StepError> {
        let plain = |problem| Some(StepError { problem, stderr: String::new() });
        match self {
            Abort::Step(error) => Some(error.clone()),
            Abort::Hung(stop) => plain(StepProblem::Hung(stop.to_string())),
            Abort::ShutDown(stop) => plain(StepProblem::ShutDown(stop.to_string())),
            Abort::DispatchLog(DispatchLogError::Ended { error, end, stderr }) => {
                let problem = StepProblem::Ended(format!("{error}: {end}"));
                Some(StepError { problem, stderr: stderr.clone() })
            }
            Abort::DispatchLog(DispatchLogError::Write(
                error @ (WriteError::TimedOut { .. } | WriteError::Log(LogError::Gone { .. })),
            )) => plain(StepProblem::Unread(error.to_string())),
            Abort::Panic
            | Abort::Boot { .. }
            | Abort::Start(_)
            | Abort::Guest(_)
            | Abort::DispatchLog(_)
            | Abort::Harness(_)
            | Abort::Interrupted => None,
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
