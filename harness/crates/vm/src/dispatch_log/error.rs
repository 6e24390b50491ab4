//! Why a log could not be written as planned.

use std::fmt::Display;
use std::io;
use std::time::Duration;

use dtl::NoSymbol;

use super::log::LogError;
use crate::memory::NoSuchWord;

/// Why a plan could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum WriteError<E: Display> {
    /// The kernel or its memory is not as expected.
    #[error(transparent)]
    Log(#[from] LogError),
    /// An entry's address names a symbol that the kernel does not have.
    #[error("{error}{}", help.as_ref().map(|help| format!("; {help}")).unwrap_or_default())]
    Address {
        /// The symbol.
        error: NoSymbol,
        /// A suggestion.
        help: Option<String>,
    },
    /// The variables of the kernel's clock cannot be read.
    #[error("the kernel's {what} cannot be read: {error}")]
    Clock {
        /// Which of its variables.
        what: &'static str,
        /// Where it was to be read.
        error: NoSuchWord,
    },
    /// The guest has fewer processors.
    #[error("cannot write the log of CPU {cpu}: the guest has {cpus} CPUs")]
    NoCpu {
        /// The processor.
        cpu: u32,
        /// CPUs of the guest.
        cpus: u64,
    },
    /// Something did not happen in time.
    #[error("timed out after {:.1} s waiting until {what}", timeout.as_secs_f64())]
    TimedOut {
        /// What was waited for.
        what: String,
        /// For how long.
        timeout: Duration,
    },
    /// The command that records has ended too early.
    #[error("the command ended before {0}")]
    Ended(String),
    /// QEMU does not pause or resume the guest.
    #[error("failed to pause the guest while its log is written: {0}")]
    Machine(#[from] io::Error),
    /// The guest stopped while it was waited for.
    #[error("{0}")]
    Guest(E),
}
