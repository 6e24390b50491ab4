//! Guests: what machine QEMU plays, and what runs in it.
//!
//! A guest is a row of data in `guests/NAME.yaml`. This module reads and checks it; it starts
//! nothing and knows no case.

mod description;
mod modules;
mod project;
mod read;

pub use description::{AccelSpec, Guest, GuestName, KernelSpec, KnownMessage, QemuSpec, Quirk};
pub use modules::{ModuleSource, is_directory_of_modules};
pub use project::{NoProject, Project};
pub use read::{load_all, read_guest, read_message_pattern};
