//! Exit statuses, and errors that end a command.

use crate::report::{Colour, render_diagnostics};
use diagnostic::Diagnostic;
use image::ImageError;
use vm::process::interrupt;

/// How goldtrace ends. The numbers are part of its interface (README.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// All is well.
    Success,
    /// A case failed.
    Failed,
    /// The command line or an input file is wrong.
    WrongInput,
    /// The host, a build or a guest did not do its part.
    Infrastructure,
    /// The user has interrupted.
    Interrupted,
}

impl Status {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Status::Success => 0,
            Status::Failed => 1,
            Status::WrongInput => 2,
            Status::Infrastructure => 3,
            Status::Interrupted => interrupt::EXIT_STATUS,
        }
    }
}

/// Why a command went no further.
#[derive(Debug)]
pub(super) enum CommandError {
    /// Input files are faulty.
    Files(Vec<Diagnostic>),
    /// The command line asks for something that is not there.
    Usage(String),
    /// The host, a build or a guest did not do its part.
    Infrastructure(anyhow::Error),
}

impl CommandError {
    /// Print it; the status that goes with it.
    pub(super) fn report(self) -> Status {
        if interrupt::happened() {
            anstream::eprintln!("interrupted");
            return Status::Interrupted;
        }
        match self {
            CommandError::Files(faults) => {
                anstream::eprint!("{}", render_diagnostics(&faults, Colour::of(&std::io::stderr())));
                Status::WrongInput
            }
            CommandError::Usage(message) => {
                anstream::eprintln!("error: {message}");
                Status::WrongInput
            }
            CommandError::Infrastructure(error) => {
                anstream::eprintln!("error: {error:#}");
                Status::Infrastructure
            }
        }
    }
}

impl From<Vec<Diagnostic>> for CommandError {
    fn from(faults: Vec<Diagnostic>) -> CommandError {
        CommandError::Files(faults)
    }
}

impl From<ImageError> for CommandError {
    fn from(error: ImageError) -> CommandError {
        match error {
            ImageError::IncompatibleModule(why) => CommandError::Usage(why),
            error => CommandError::Infrastructure(error.into()),
        }
    }
}

impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> CommandError {
        CommandError::Infrastructure(error.into())
    }
}
