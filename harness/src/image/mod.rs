//! Kernels, initramfs and all that they are made of, built and cached.
//!
//! [`Builder`] makes what a guest boots out of Debian's packages, the fragments in `images/` and
//! the agent's source; [`Store`] keeps each product under the digest of everything that went into it.
//!
//! This module starts no guest and knows no case.

mod apt;
mod builder;
mod error;
mod initramfs;
mod kconfig;
mod kernel;
mod patch;
mod sources;
mod store;
mod userland;
mod watch;

pub use builder::{Builder, GuestImage};
pub use error::ImageError;
pub use kernel::Kernel;
pub use patch::Patch;
pub use sources::{Refresh, Sources, SourcesFile};
pub use store::{Product, Recipe, Store};
pub use watch::{Silent, Watch};
