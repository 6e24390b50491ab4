//! Exit statuses, and errors that end a command.

use crate::report::{Colour, render_diagnostics};
use diagnostic::Diagnostic;
use image::ImageError;
use vm::process::interrupt;

/// How goldtrace ends. The numbers are part of its interface (README.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// All is well.
    Success,
    /// A case failed.
    CaseFailed,
    /// The command line or an input file is wrong.
    Usage,
    /// The host, a build or a guest did not do its part.
    Infrastructure,
    /// The user has interrupted.
    Interrupted,
}

impl ExitStatus {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            ExitStatus::Success => 0,
            ExitStatus::CaseFailed => 1,
            ExitStatus::Usage => 2,
            ExitStatus::Infrastructure => 3,
            ExitStatus::Interrupted => interrupt::EXIT_STATUS,
        }
    }
}

/// Why a command went no further.
#[derive(Debug)]
pub(super) enum Stop {
    /// Input files are faulty.
    Faults(Vec<Diagnostic>),
    /// The command line asks for something that is not there.
    Usage(String),
    /// The host, a build or a guest did not do its part.
    Infrastructure(anyhow::Error),
}

impl Stop {
    /// Print it; the status that goes with it.
    pub(super) fn report(self) -> ExitStatus {
        if interrupt::happened() {
            anstream::eprintln!("interrupted");
            return ExitStatus::Interrupted;
        }
        match self {
            Stop::Faults(faults) => {
                anstream::eprint!("{}", render_diagnostics(&faults, Colour::of(&std::io::stderr())));
                ExitStatus::Usage
            }
            Stop::Usage(message) => {
                anstream::eprintln!("error: {message}");
                ExitStatus::Usage
            }
            Stop::Infrastructure(error) => {
                anstream::eprintln!("error: {error:#}");
                ExitStatus::Infrastructure
            }
        }
    }
}

impl From<Vec<Diagnostic>> for Stop {
    fn from(faults: Vec<Diagnostic>) -> Stop {
        Stop::Faults(faults)
    }
}

impl From<ImageError> for Stop {
    fn from(error: ImageError) -> Stop {
        match error {
            ImageError::Unfit(why) => Stop::Usage(why),
            error => Stop::Infrastructure(error.into()),
        }
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Stop {
        Stop::Infrastructure(error.into())
    }
}
