//! Why a machine can no longer be used.

use std::process::ExitStatus;
use std::time::Duration;

use super::log::MachineLogError;

/// Why a machine can no longer be talked to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StopReason {
    /// The kernel panicked: the first line of the report that led to it.
    #[error("the kernel panicked: {0}")]
    Panicked(String),
    /// QEMU exited by itself.
    #[error("{}", exited(*.0))]
    Exited(ExitStatus),
    /// Something did not happen in time.
    #[error("timed out after {:.1} s waiting for {what}", timeout.as_secs_f64())]
    TimedOut {
        /// What was waited for.
        what: String,
        /// For how long.
        timeout: Duration,
    },
    /// QEMU was suspended by a signal, so that nothing can be said of the guest.
    #[error("QEMU was suspended (SIGSTOP) while waiting for {0}")]
    Suspended(String),
    /// The guest or QEMU printed too much.
    #[error(transparent)]
    Flooded(MachineLogError),
    /// The agent's port is broken.
    #[error("{0}")]
    Port(String),
    /// The user has interrupted.
    #[error("interrupted")]
    Interrupted,
}

fn exited(status: ExitStatus) -> String {
    if status.success() {
        "the guest shut down before it was asked to (QEMU exited with status 0, and the kernel reported no panic)"
            .to_owned()
    } else {
        format!("QEMU exited with {status}")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn messages_name_the_cause() {
        let exited = |raw| StopReason::Exited(ExitStatus::from_raw(raw)).to_string();
        assert!(exited(0).starts_with("the guest shut down before it was asked to"));
        assert_eq!(exited(256), "QEMU exited with exit status: 1");
        assert_eq!(exited(9), "QEMU exited with signal: 9 (SIGKILL)");
        let late = StopReason::TimedOut { what: "x".to_owned(), timeout: Duration::from_millis(1500) };
        assert_eq!(late.to_string(), "timed out after 1.5 s waiting for x");
        assert_eq!(StopReason::Panicked("p".to_owned()).to_string(), "the kernel panicked: p");
        assert_eq!(StopReason::Interrupted.to_string(), "interrupted");
    }
}
