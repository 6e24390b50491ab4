//! What a kernel under test can do to a step other than what the case says.

use std::fmt;
use std::io;
use std::time::Duration;

use formats::units::show_duration;
use yaml::show_size;

/// A step that did not end as its case says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}{stderr}")]
pub struct StepError {
    /// What is wrong.
    pub problem: StepProblem,
    /// The last lines of its standard error, each indented on a line of its own.
    pub stderr: String,
}

/// What is wrong with a step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StepProblem {
    /// It ended with another exit status.
    #[error("exit status {found}, expected {expected}{}", sigpipe(*.found))]
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
    /// It printed to its standard error.
    #[error("unexpected output on standard error (`stderr: any` allows it)")]
    Noisy,
    /// A process that it left behind holds what is captured open, so that the capture depends on timing.
    #[error(
        "a process that the step left behind holds its output open: redirect that process's output, or wait for it"
    )]
    HeldOpen,
    /// The guest no longer answers: what was waited for.
    #[error("{0}, while QEMU was running")]
    Hung(String),
    /// The guest shut down or reset by itself.
    #[error("{0}")]
    ShutDown(String),
    /// The kernel did not take what was written to the dispatch trace log.
    #[error("{0}")]
    Unread(String),
    /// The command that records ended too early.
    #[error("{0}")]
    Ended(String),
}

impl StepProblem {
    /// The problem in one word.
    pub fn word(&self) -> &'static str {
        match self {
            StepProblem::ExitStatus { .. } | StepProblem::Read { .. } | StepProblem::Shell(_) => "refused",
            StepProblem::Signal(_) => "killed",
            StepProblem::TimedOut(_) | StepProblem::Hung(_) => "hung",
            StepProblem::Flooded(_) => "flooded",
            StepProblem::Noisy => "noisy",
            StepProblem::HeldOpen => "left open",
            StepProblem::ShutDown(_) => "shut down",
            StepProblem::Unread(_) => "unread",
            StepProblem::Ended(_) => "ended early",
        }
    }
}

/// A hint at what `-o pipefail` makes of `head`: 128 and SIGPIPE's number.
fn sigpipe(status: u32) -> impl fmt::Display {
    match status {
        141 => {
            " (SIGPIPE: a part of a pipeline ended before it had read all; use `sed -n 1,3p` in place of `head -3`)"
        }
        _ => "",
    }
}

/// The words for an error number of the guest, which are the host's.
fn os_error(errno: u32) -> String {
    match i32::try_from(errno) {
        Ok(errno @ 1..) => io::Error::from_raw_os_error(errno).to_string(),
        _ => format!("unknown error number {errno}"),
    }
}

/// The last lines of a step's standard error, for a message.
pub fn excerpt(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(10)..];
    last.iter().map(|line| format!("\n    stderr: {line}")).collect()
}
