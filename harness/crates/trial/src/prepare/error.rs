//! Why a trial has nothing to boot.

use std::sync::Arc;

use camino::Utf8PathBuf;

use guest::GuestName;
use image::{ErrorKind, ImageError};

/// Why what a trial boots could not be made. Cheap to clone: every trial that needs the product
/// gets it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PrepareError {
    /// A kernel, a module, perf or a root file system could not be made.
    #[error(transparent)]
    Image(#[from] Arc<ImageError>),
    /// The wanted accelerator cannot be used: why.
    #[error("{0}")]
    Accelerator(String),
    /// A step decodes what its guest has recorded, and the guest names no other that does so again.
    #[error(
        "{file}:{line}: no guest decodes what guest {guest} records\nhelp: name one of another architecture with `decoder:` in guests/{guest}.yaml"
    )]
    NoDecoder {
        /// The case's file.
        file: Utf8PathBuf,
        /// The step's line, from 1.
        line: usize,
        /// The guest.
        guest: GuestName,
    },
    /// A step names a module that the guest does not have.
    #[error("{file}:{line}: guest {guest} has no module `{module}`: {help}")]
    UnknownModule {
        /// The case's file.
        file: Utf8PathBuf,
        /// The step's line, from 1.
        line: usize,
        /// The guest.
        guest: GuestName,
        /// The module's name as the step has it.
        module: String,
        /// Advice.
        help: String,
    },
}

impl From<ImageError> for PrepareError {
    fn from(error: ImageError) -> PrepareError {
        PrepareError::Image(Arc::new(error))
    }
}

impl PrepareError {
    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            PrepareError::Image(error) => error.kind(),
            PrepareError::UnknownModule { .. } | PrepareError::NoDecoder { .. } => ErrorKind::InvalidInput,
            PrepareError::Accelerator(_) => ErrorKind::Host,
        }
    }

    /// Whether what a file says is the cause, and not the host or a build.
    pub fn is_wrong_input(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::PatchDoesNotApply
                | ErrorKind::InvalidConfig
                | ErrorKind::InvalidInput
                | ErrorKind::IncompatibleModule
        )
    }

    /// Whether the cause is the user's interrupt.
    pub fn is_interrupt(&self) -> bool {
        matches!(self, PrepareError::Image(error) if error.is_interrupt())
    }
}
