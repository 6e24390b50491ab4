//! Trials: one case on one guest, each in a guest of its own.
//!
//! [`Plan`] says which trials there are, [`Lab`] has what they boot, [`execute`] runs one and
//! gives its [`Transcript`], [`judge`] turns that into an [`Outcome`], and [`run_all`] does all of
//! them, several at once. Judging is a function of plain data; only executing needs QEMU.
//!
//! This module prints nothing.

mod artefacts;
mod bless;
pub mod case;
mod decode;
mod execute;
mod hypervisor;
mod inspect;
mod judge;
mod lab;
pub mod lint;
mod outcome;
mod plan;
mod record;
mod schedule;

pub use artefacts::{RunDir, TrialDir};
pub use bless::{Blessing, bless_case};
pub use decode::HostOutput;
pub use execute::{StepRecord, Transcript, Trouble, execute};
pub use inspect::Inspected;
pub use judge::judge;
pub use lab::{Bench, Lab, Needs, userland};
pub use outcome::{
    CaptureFailure, DecodeFailure, Excused, Failure, ModuleFailure, Outcome, StepPlace, TrialError,
};
pub use plan::{NoMatch, Plan, Trial};
pub use record::{TrialRecord, Verdict};
pub use schedule::{Finished, default_jobs, run_all, run_one};
