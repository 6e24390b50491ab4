//! Trials: one case on one guest, each in a guest of its own.
//!
//! [`TrialPlan`] says which trials there are, [`PreparedGuests`] has what they boot, [`execute`] runs one and
//! gives its [`Transcript`], [`judge`] turns that into an [`Outcome`], and [`run_all`] does all of
//! them, several at once. Judging is a function of plain data; only executing needs QEMU.
//!
//! This module prints nothing.

mod artefacts;
mod bless;
pub mod case;
mod execute;
mod judge;
pub mod lint;
mod plan;
mod prepare;
mod record;
mod schedule;

pub use artefacts::{RunDir, TrialDir};
pub use bless::{Blessing, bless_case};
pub use execute::{Abort, HostOutput, Inspected, StepRecord, Transcript, execute};
pub use judge::{
    CaptureFailure, DecodeFailure, ExpectedFailure, Failure, ModuleFailure, Outcome, StepPlace, TrialError,
    judge,
};
pub use plan::{NoMatch, Trial, TrialPlan};
pub use prepare::{BootError, Needs, PreparedGuest, PreparedGuests, rootfs_spec};
pub use record::{TrialRecord, Verdict};
pub use schedule::{TrialResult, default_jobs, run_all, run_one};
