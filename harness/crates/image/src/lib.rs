//! Kernels, initramfs and all that they are made of, built and cached.
//!
//! [`Builder`] makes what a guest boots out of Debian's packages, the fragments in `images/` and
//! the agent's source; [`Store`] keeps each product under the digest of everything that went into it.
//!
//! This module starts no guest and knows no case.

mod builder;
mod debian;
pub mod digest;
mod error;
mod kernel;
mod modules;
mod perf;
mod progress;
mod rootfs;
mod source;
mod store;
mod toolchain;

pub use builder::{Builder, GuestImage, Rootfs, RootfsSpec};
pub use debian::sources::{Refresh, Sources, SourcesFile};
pub use error::ImageError;
pub use kernel::BuiltKernel;
pub use modules::{BuiltModule, plain_name};
pub use perf::{Features, Perf};
pub use progress::{ProgressSink, Silent};
pub use source::Patch;
pub use store::{Product, Recipe, Store};
