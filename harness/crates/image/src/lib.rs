//! Kernels, initramfs and all that they are made of, built and cached.
//!
//! [`Builder`] makes what a guest boots out of Debian's packages, the fragments in `images/` and
//! the agent's source; [`Store`] keeps each product under the digest of everything that went into it.
//!
//! This module starts no guest and knows no case.

mod applets;
mod apt;
mod builder;
mod diff;
pub mod digest;
mod error;
mod initramfs;
mod kconfig;
mod kernel;
mod linux_source;
mod modules;
mod patch;
mod perf;
mod sources;
mod store;
mod toolchain;
mod userland;
mod watch;

pub use builder::{Builder, GuestImage, Root, Userland};
pub use error::ImageError;
pub use kernel::Kernel;
pub use modules::{BuiltModule, plain_name};
pub use patch::Patch;
pub use perf::{Features, Perf};
pub use sources::{Refresh, Sources, SourcesFile};
pub use store::{Product, Recipe, Store};
pub use watch::{Silent, Watch};
