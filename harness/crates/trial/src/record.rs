//! What a trial's directory says of the trial, for commands that come later.

use std::fmt;
use std::fs;
use std::io;
use std::time::Duration;

use golden::Facts;
use serde::{Deserialize, Serialize};
use vm::Splat;

use crate::artefacts::TrialDir;
use crate::case::Case;
use crate::execute::Transcript;
use crate::judge::{Outcome, step_of};
use crate::prepare::PreparedGuest;

/// The record of a trial, in `trial.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// The SHA-256 of the case's file as it was run.
    pub case_digest: String,
    /// What it ran on; `None` when there was nothing to run it on.
    pub ran_on: Option<RanOn>,
    /// What came of it.
    pub verdict: Verdict,
    /// How long it took; `None` when nobody measured it.
    #[serde(default)]
    pub elapsed: Option<Duration>,
    /// What its console had.
    #[serde(default)]
    pub console: ConsoleRecord,
    /// Why nothing can be blessed from it; `None` when something can.
    pub unusable: Option<String>,
}

/// What the console of a trial had.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsoleRecord {
    /// The splats, expected or not, in order.
    pub splats: Vec<SplatRecord>,
    /// The patterns of the guest's known messages that came.
    pub known_messages: Vec<String>,
}

/// A splat of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplatRecord {
    /// What is the same of it in every trial: its kind, its function, and the first functions of its call trace.
    pub fingerprint: String,
    /// The line that names it.
    pub line: String,
    /// The step in which it came, from 1; one more than there are steps after the last one; `None` for the boot.
    pub step: Option<usize>,
}

/// What a trial ran on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RanOn {
    /// The kernel's release.
    pub release: String,
    /// What the conditions of goldens could ask.
    pub facts: Facts,
    /// How the kernel and its modules differ from what the project describes, one line each.
    pub changes: Vec<String>,
}

/// An outcome in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It passed.
    Pass,
    /// It failed.
    Fail,
    /// A known bug is there.
    Xfail,
    /// A known bug is no longer there.
    Xpass,
    /// It could not be done.
    Error,
    /// It was not run.
    Skip,
    /// The user interrupted.
    Interrupted,
}

const FILE: &str = "trial.json";

impl ConsoleRecord {
    /// What the console of a trial had.
    pub fn of(transcript: &Transcript) -> ConsoleRecord {
        let record = |splat: &Splat| SplatRecord {
            fingerprint: splat.fingerprint(),
            line: splat.line.clone(),
            step: step_of(splat, &transcript.steps).map(|step| step + 1),
        };
        ConsoleRecord {
            splats: transcript.splats.iter().map(record).collect(),
            known_messages: transcript.known_messages.clone(),
        }
    }
}

impl RanOn {
    /// What a trial in this guest runs on.
    pub fn of(prepared: &PreparedGuest) -> RanOn {
        let kernel = &prepared.kernel;
        RanOn {
            release: kernel.kernel.release.clone(),
            facts: prepared.facts(),
            changes: kernel.changes.clone(),
        }
    }
}

impl TrialRecord {
    /// The record of a trial that came to `outcome`.
    pub fn new(case: &Case, ran_on: Option<RanOn>, outcome: &Outcome, console: ConsoleRecord) -> TrialRecord {
        TrialRecord {
            case_digest: case.digest.clone(),
            ran_on,
            verdict: Verdict::of(outcome),
            elapsed: None,
            console,
            unusable: outcome.unusable(),
        }
    }

    /// Write it into the trial's directory.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn write(&self, dir: &TrialDir) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        fs::write(dir.dir.join(FILE), text + "\n")
    }

    /// Read the record in a trial's directory; `None` when there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(dir: &TrialDir) -> io::Result<Option<TrialRecord>> {
        match fs::read_to_string(dir.dir.join(FILE)) {
            Ok(text) => Ok(Some(serde_json::from_str(&text)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl fmt::Display for Verdict {
    /// The word that reports use.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Pass => "PASS",
            Verdict::Fail => "FAIL",
            Verdict::Xfail => "XFAIL",
            Verdict::Xpass => "XPASS",
            Verdict::Error => "ERROR",
            Verdict::Skip => "SKIP",
            Verdict::Interrupted => "INTERRUPTED",
        })
    }
}

impl Verdict {
    /// Whether the trial ran to an end that says something of the kernel.
    pub fn is_of_the_kernel(self) -> bool {
        matches!(self, Verdict::Pass | Verdict::Fail | Verdict::Xfail | Verdict::Xpass)
    }

    /// The verdict of an outcome.
    pub fn of(outcome: &Outcome) -> Verdict {
        match outcome {
            Outcome::Pass => Verdict::Pass,
            Outcome::Fail(_) => Verdict::Fail,
            Outcome::Xfail(_) => Verdict::Xfail,
            Outcome::Xpass { .. } => Verdict::Xpass,
            Outcome::Error(_) => Verdict::Error,
            Outcome::Skip(_) => Verdict::Skip,
            Outcome::Interrupted => Verdict::Interrupted,
        }
    }
}
