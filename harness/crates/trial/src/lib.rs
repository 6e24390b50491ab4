//! Trials: one case on one guest, from the case's file to the verdict.
//!
//! [`TrialPlan`] says which trials there are, [`PreparedGuests`] makes what they boot, [`run_trial`] takes one through all its
//! stages, and [`run_all`] runs them several at once. Between the stages is plain data: executing a case's steps gives a
//! transcript, and judging turns that into an [`Outcome`]. A trial whose guest, harness or host did not do its part is an error and
//! never a verdict on the kernel; a golden is never written from one.
//!
//! This crate prints nothing, draws nothing and knows no command line.

mod artefacts;
mod bless;
mod captured;
pub mod case;
mod execute;
mod flaky;
mod judge;
pub mod lint;
mod order;
mod plan;
mod prepare;
mod record;
mod run;
mod schedule;
#[cfg(test)]
mod testing;

pub use artefacts::{RunDir, TrialDir};
pub use bless::{Blessing, Refusal, bless_case};
pub use execute::{SecondDecoding, StepError, StepProblem};
pub use flaky::{Flaky, flaky};
pub use judge::{
    CaptureFailure, DecodeFailure, ExpectedFailure, Failure, ModuleFailure, Outcome, StepFailure, StepPlace,
    Taint, TrialError,
};
pub use order::longest_first;
pub use plan::{NoTrial, Trial, TrialPlan};
pub use prepare::{
    Isolation, PrepareError, PreparedGuest, PreparedGuests, PreparedKernel, Unprepared, rootfs_of,
};
pub use record::{ConsoleRecord, RanOn, SplatRecord, TrialRecord, Verdict};
pub use run::{run_prepared, run_trial};
pub use schedule::{TrialResult, Watcher, default_jobs, run_all, run_one};
