//! Why a trial did not get to its end.

use vm::SessionError;
use vm::process::last_lines;
use vm::qemu::StopReason;

/// How many lines of its standard error a step's message shows.
const LINES: usize = 10;

/// Why a trial did not get to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Abort {
    /// The kernel panicked. After the agent's greeting, that is the kernel's failure.
    Panic,
    /// A step ended otherwise than the case says.
    Step(String),
    /// The machine, the agent or the harness did not do its part.
    Machine(String),
    /// The user has interrupted.
    Interrupted,
}

impl From<SessionError> for Abort {
    fn from(error: SessionError) -> Abort {
        match error {
            SessionError::Stopped(StopReason::Panicked(_)) => Abort::Panic,
            SessionError::Stopped(StopReason::Interrupted) => Abort::Interrupted,
            other => Abort::Machine(other.to_string()),
        }
    }
}

/// The last lines of a step's standard error, for a message.
pub(super) fn excerpt(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let last = last_lines(&text, LINES).lines();
    last.map(|line| format!("\n    stderr: {}", line.escape_debug())).collect()
}
