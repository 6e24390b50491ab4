//! What came of a trial.

use camino::Utf8PathBuf;

use super::taint::{Taint, words};
use crate::artefacts::TrialDir;
use crate::case::{Case, ExpectedSplat, Step};
use crate::execute::{SecondDecoding, StepError, Transcript};
use formats::Format;
use golden::{Bindings, Comparison, Golden, KnownBug};
use vm::Splat;

/// How many of the console's last lines a failed step shows.
const CONSOLE_TAIL: usize = 5;

/// What came of a trial.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// Every capture is as its golden says, the console is clean, and the guest powered off.
    Pass,
    /// The kernel does not do what the goldens say, or printed a splat.
    Fail(Vec<Failure>),
    /// The kernel has bugs that are known, and no other.
    Xfail(Vec<ExpectedFailure>),
    /// A known bug is not there any more: its xfail entry must go.
    Xpass {
        /// The known bugs that are not there.
        gone: Vec<ExpectedFailure>,
        /// What else is wrong.
        failures: Vec<Failure>,
    },
    /// It was not run, for this reason.
    Skip(String),
    /// The harness or the guest could not do its part. There is no verdict on the kernel.
    Error(Box<TrialError>),
    /// The user has interrupted.
    Interrupted,
}

impl Outcome {
    /// Whether captures differ and nothing else is wrong, so that blessing would accept it.
    pub fn only_captures_differ(&self) -> bool {
        matches!(self, Outcome::Fail(_)) && self.unusable().is_none()
    }

    /// Why nothing can be blessed from it; `None` when something can. What the harness itself found
    /// to be contradictory must not become an expectation.
    pub fn unusable(&self) -> Option<String> {
        match self {
            Outcome::Pass | Outcome::Xfail(_) => None,
            Outcome::Fail(failures) | Outcome::Xpass { failures, .. } => {
                failures.iter().find_map(Failure::contradiction)
            }
            Outcome::Error(error) => Some(format!("the trial was an error: {}", error.what)),
            Outcome::Skip(why) => Some(format!("the trial was skipped: {why}")),
            Outcome::Interrupted => Some("the trial was interrupted".to_owned()),
        }
    }
}

/// A known bug that was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedFailure {
    /// The file that says so.
    pub file: Utf8PathBuf,
    /// The line of its entry, from 1.
    pub line: usize,
    /// What is wrong, and since when.
    pub reason: String,
}

impl ExpectedFailure {
    /// A splat that a case expects.
    pub(super) fn of_splat(expected: &ExpectedSplat) -> ExpectedFailure {
        let ExpectedSplat { file, line, reason, .. } = expected;
        ExpectedFailure { file: file.clone(), line: *line, reason: reason.clone() }
    }

    /// A known bug in a golden.
    pub(super) fn of_golden(golden: &Golden, bug: &KnownBug) -> ExpectedFailure {
        ExpectedFailure { file: golden.file.clone(), line: bug.line, reason: bug.reason.clone() }
    }
}

/// One thing that is not as it should be.
#[derive(Debug, Clone)]
pub enum Failure {
    /// A capture differs from its golden.
    Capture(Box<CaptureFailure>),
    /// perf in another guest prints something else than perf in this one, of the same data.
    Decoded(Box<DecodeFailure>),
    /// A module's source does not define what its file holds.
    Module(Box<ModuleFailure>),
    /// The kernel refused a step, never ended it, or did something else to it that the case does not say.
    Step(Box<StepFailure>),
    /// The kernel is tainted by something that its console does not show.
    Tainted {
        /// The causes.
        taints: Vec<Taint>,
        /// The step after which it was.
        step: StepPlace,
        /// The whole console.
        console: Utf8PathBuf,
    },
    /// The kernel printed a splat.
    Kernel {
        /// The panic, or the first splat.
        splat: Splat,
        /// How many other splats there are.
        others: usize,
        /// The step in which it came; `None` when that is not known.
        step: Option<StepPlace>,
        /// The whole console.
        console: Utf8PathBuf,
    },
}

impl Failure {
    /// What no golden may be written from; `None` for a capture that does no more than differ.
    fn contradiction(&self) -> Option<String> {
        match self {
            Failure::Capture(failure) => {
                let violation = failure.comparison.violations.first()?;
                let name = failure.file.file_name().unwrap_or_default();
                Some(format!(
                    "`{name}` contradicts itself or what is known, at line {}: {}",
                    violation.line, violation.message
                ))
            }
            Failure::Decoded(failure) => Some(format!(
                "perf in guest {} and in this one do not agree on the output of `{}`",
                failure.second.guest, failure.step.summary
            )),
            Failure::Module(failure) => {
                Some(format!("the source of module {} does not define what its file holds", failure.module))
            }
            Failure::Step(failure) => {
                let StepFailure { step, error, .. } = failure.as_ref();
                let step = step.as_ref().map_or("the guest's end", |step| step.summary.as_str());
                Some(format!("`{step}` was {}: {}", error.problem.word(), error.problem))
            }
            Failure::Tainted { taints, .. } => Some(format!("the kernel is tainted: {}", words(taints))),
            Failure::Kernel { splat, .. } => Some(format!("the kernel printed a splat: {}", splat.line)),
        }
    }
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

/// Data that perf in two guests decodes differently.
#[derive(Debug, Clone)]
pub struct DecodeFailure {
    /// The step that has decoded it.
    pub step: StepPlace,
    /// What perf printed in the guest that has recorded it.
    pub guest: Vec<u8>,
    /// The file that holds that.
    pub file: Utf8PathBuf,
    /// What it printed in the other guest.
    pub second: SecondDecoding,
}

/// A module whose source and file disagree.
#[derive(Debug, Clone)]
pub struct ModuleFailure {
    /// The step that has looked at it.
    pub step: StepPlace,
    /// Its name.
    pub module: String,
    /// How they differ, each beginning with the event's name.
    pub differences: Vec<String>,
}

/// A step that did not go as its case says.
#[derive(Debug, Clone)]
pub struct StepFailure {
    /// The step; `None` for the guest's end.
    pub step: Option<StepPlace>,
    /// What is wrong with it.
    pub error: StepError,
    /// The console's last lines.
    pub tail: String,
    /// The file that holds all of the console.
    pub console: Utf8PathBuf,
}

impl StepFailure {
    pub(super) fn new(
        step: Option<StepPlace>,
        error: StepError,
        transcript: &Transcript,
        dir: &TrialDir,
    ) -> StepFailure {
        StepFailure {
            step,
            error,
            tail: transcript.console_tail(CONSOLE_TAIL).to_owned(),
            console: dir.console(),
        }
    }
}

/// Where a step stands in its case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepPlace {
    /// The case's file.
    pub file: Utf8PathBuf,
    /// The step's line, from 1.
    pub line: usize,
    /// The step in one line.
    pub summary: String,
}

impl StepPlace {
    /// A step of a case.
    pub(super) fn of(case: &Case, step: &Step) -> StepPlace {
        StepPlace { file: case.file.clone(), line: step.line, summary: step.summary() }
    }
}

/// Why a trial could not be done.
#[derive(Debug, Clone, Default)]
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
    /// The directory with all that was kept; `None` when nothing was.
    pub dir: Option<Utf8PathBuf>,
}

impl TrialError {
    /// An error before or beside the guest.
    pub(crate) fn harness(what: String) -> TrialError {
        TrialError { what, ..TrialError::default() }
    }
}
