//! Why an image could not be had.

use std::io;

use camino::Utf8PathBuf;

use vm::process::LoggedError;

/// Why an image could not be had.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// A command of a build did not succeed.
    #[error(transparent)]
    Command(#[from] LoggedError),
    /// A file or folder could not be used.
    #[error("failed to {verb} `{path}`: {error}")]
    File {
        /// What was attempted.
        verb: &'static str,
        /// On what.
        path: Utf8PathBuf,
        /// What happened.
        error: io::Error,
    },
    /// A module that a guest would not load, told in full: what a file asks for is at fault.
    #[error("{0}")]
    IncompatibleModule(String),
    /// A short command failed, or the user has interrupted.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Anything else, told in full.
    #[error("{0}")]
    Other(String),
}

impl ImageError {
    /// A file or folder could not be used.
    pub fn file(verb: &'static str, path: impl Into<Utf8PathBuf>, error: io::Error) -> ImageError {
        ImageError::File { verb, path: path.into(), error }
    }

    /// Whether the cause is the user's interrupt.
    pub fn is_interrupt(&self) -> bool {
        match self {
            ImageError::Io(error)
            | ImageError::File { error, .. }
            | ImageError::Command(LoggedError::Io { error, .. }) => {
                error.kind() == io::ErrorKind::Interrupted
            }
            _ => false,
        }
    }
}
