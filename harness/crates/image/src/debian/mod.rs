//! Debian's packages: which ones images are made from, and how they are downloaded.
//!
//! Nothing of the host's apt is changed, and nothing is installed: apt runs with a source list and a state of
//! its own below the cache. This module does not know what is made of a package.

mod apt;
mod candidate;
mod mirror;
mod package;
mod resolve;
mod sources_file;
#[cfg(test)]
mod testing;
mod transport;
mod version;

#[cfg(test)]
pub(crate) use candidate::Candidate;
pub(crate) use package::Package;
pub use resolve::{Refresh, Sources};
pub use sources_file::SourcesFile;
