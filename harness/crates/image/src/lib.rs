//! Kernels, initramfs and all that they are made of, built and cached.
//!
//! [`Builder`] makes what a guest boots out of Debian's packages, the fragments in `images/` and
//! the agent's source; [`Store`] keeps each product under the digest of everything that went into it.
//!
//! This module starts no guest and knows no case.

mod builder;
mod config;
mod context;
mod debian;
pub mod digest;
mod environment;
mod error;
mod kept_tree;
mod kernel;
mod modules;
mod perf;
mod progress;
mod rootfs;
mod snapshot;
mod source;
mod store;
#[cfg(test)]
mod testing;
mod toolchain;

pub use builder::{BuildOptions, Builder, Rootfs, RootfsSpec};
pub use config::ConfigFragment;
pub use debian::{Refresh, SourcesFile};
pub use error::{ErrorKind, ImageError, LoadKey};
pub use kernel::BuiltKernel;
pub use modules::{BuiltModule, plain_name};
pub use perf::{Features, Perf};
pub use progress::{ProgressSink, Silent};
pub use snapshot::SnapshotInputs;
pub use source::Patch;
pub use store::{Product, Store};
pub use toolchain::{PROGRAMS, cross_programs};
