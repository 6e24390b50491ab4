//! The kernel's source, and changes to it.

mod archive;
mod diff;
mod patch;

pub(crate) use archive::SourceArchive;
pub use patch::Patch;
