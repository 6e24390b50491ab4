//! Cases: documented scenarios, each with the goldens of what it captures.
//!
//! A case is a directory below `cases/` with a `case.yaml`; its path is its id. [`load_all`] reads and
//! checks all of them, goldens included, and reports all errors at once, before anything is booted.
//!
//! This module runs nothing and compares nothing.

mod dispatch_log;
mod draft;
mod find;
mod model;
mod names;
mod read;
mod renamed;
mod splat;

pub use draft::{DraftModule, draft, relative};
pub use find::{FILE, GOLDEN_EXTENSION, MissingGolden, load_all};
pub use model::{Action, Capture, CapturePart, Case, CaseId, Requires, Stderr, Step};
pub use splat::{ExpectedAt, ExpectedSplat};
