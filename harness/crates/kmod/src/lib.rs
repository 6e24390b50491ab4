//! What a kernel module's file says of itself, and of the events that the kernel's macros have
//! defined in it.
//!
//! [`Module`] is read from the file (`.ko`) alone: its `.modinfo`, and the structures that
//! `TRACE_EVENT` and its kin leave in it, found by following relocations. It can be compared with the
//! `format` files of a guest ([`format_violations`]) and with the module's preprocessed source
//! ([`missing_definitions`]), and be shown ([`describe`]) in words that are the same on every
//! architecture.
//!
//! The invariant: an event that cannot be read whole is an error, and none is skipped. Nothing is started
//! or built here; this crate knows no case, no guest and no file system.

mod agreement;
mod error;
mod events;
mod fields;
mod format;
mod identity;
mod model;
mod object;
mod read;
mod replace;
mod show;
mod source;
#[cfg(any(test, feature = "testing"))]
mod testing;

/// A module with events, for the tests of other crates.
///
/// # Panics
/// When the sample cannot be read: a defect of this crate.
#[cfg(any(test, feature = "testing"))]
pub fn for_tests() -> Module {
    Module::parse(&testing::sample(testing::Elf::new(testing::X86))).expect("a module")
}

pub use agreement::format_violations;
pub use error::ModuleError;
pub use format::{FormatField, FormatFile, read_formats};
pub use identity::Identity;
pub use model::{Eval, Event, Field, Module, ModuleCounts};
pub use show::describe;
pub use source::missing_definitions;
