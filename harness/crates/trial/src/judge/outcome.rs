//! What came of a trial.

use camino::Utf8PathBuf;

use crate::execute::HostOutput;
use formats::Format;
use golden::{Bindings, Comparison, Golden};
use vm::Splat;

/// What came of a trial.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// Every capture is what its golden says, the console is clean, and the guest ended as told.
    Pass,
    /// The kernel does not do what the goldens say, or complained.
    Fail(Vec<Failure>),
    /// The kernel has a fault that the case knows and excuses, and no other.
    Xfail(Vec<ExpectedFailure>),
    /// A fault that the case excuses is not there any more: the excuse must go.
    Xpass {
        /// The excuses that nothing needs.
        excuses: Vec<ExpectedFailure>,
        /// What else is wrong.
        failures: Vec<Failure>,
    },
    /// It was not run, for this reason.
    Skip(String),
    /// The harness or the guest could not do its part. Nothing can be said of the kernel.
    Error(Box<TrialError>),
    /// The user has interrupted.
    Interrupted,
}

impl Outcome {
    /// Whether it is a failure of nothing but captures, which blessing would accept.
    pub fn only_captures_differ(&self) -> bool {
        let capture = |failure: &Failure| matches!(failure, Failure::Capture(_));
        matches!(self, Outcome::Fail(failures) if failures.iter().all(capture))
    }
}

/// An excuse of the case that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedFailure {
    /// Where the excuse stands.
    pub file: Utf8PathBuf,
    /// Its line, from 1.
    pub line: usize,
    /// What is excused, and why.
    pub reason: String,
}

/// One thing that is not as it should be.
#[derive(Debug, Clone)]
pub enum Failure {
    /// A capture differs from its golden.
    Capture(Box<CaptureFailure>),
    /// perf on the host prints something else than perf in the guest, of the same data.
    Decoded(Box<DecodeFailure>),
    /// A module's source does not define what its file holds.
    Module(Box<ModuleFailure>),
    /// The kernel complained on its console.
    Kernel {
        /// The first complaint, or the panic.
        complaint: Splat,
        /// How many other complaints there are.
        others: usize,
        /// The step that was running or had just ended when the trial stopped; `None` when all
        /// steps were done.
        step: Option<StepPlace>,
        /// The whole console.
        console: Utf8PathBuf,
    },
}

/// A capture that differs from its golden.
#[derive(Debug, Clone)]
pub struct CaptureFailure {
    /// The golden.
    pub golden: Golden,
    /// The capture.
    pub capture: Vec<u8>,
    /// What differs.
    pub comparison: Comparison,
    /// What names meant when the trial's captures were compared.
    pub bindings: Bindings,
    /// The format of the capture.
    pub format: Format,
    /// The file that holds the capture.
    pub file: Utf8PathBuf,
}

/// Data that perf on the host reads otherwise than perf in the guest.
#[derive(Debug, Clone)]
pub struct DecodeFailure {
    /// The step that has decoded it.
    pub step: StepPlace,
    /// What perf printed in the guest.
    pub guest: Vec<u8>,
    /// The file that holds that.
    pub file: Utf8PathBuf,
    /// What it printed on the host.
    pub host: HostOutput,
}

/// A module whose source and file disagree.
#[derive(Debug, Clone)]
pub struct ModuleFailure {
    /// The step that has looked at it.
    pub step: StepPlace,
    /// Its name.
    pub module: String,
    /// What is wrong, each beginning with the event's name.
    pub faults: Vec<String>,
}

/// Where a step stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepPlace {
    /// The case's file.
    pub file: Utf8PathBuf,
    /// The step's line, from 1.
    pub line: usize,
    /// The step in one line.
    pub summary: String,
}

/// Why a trial could not be done.
#[derive(Debug, Clone)]
pub struct TrialError {
    /// What happened.
    pub what: String,
    /// At which step; `None` for the boot and the end.
    pub step: Option<StepPlace>,
    /// QEMU's full command line; empty when it was not started.
    pub command: String,
    /// What QEMU itself printed on its standard error.
    pub stderr: String,
    /// The console's last lines.
    pub console: String,
    /// The folder with all that was kept.
    pub dir: Utf8PathBuf,
}
