//! What a trial's folder says of the trial, for commands that come later.

use std::fs;
use std::io;

use serde::{Deserialize, Serialize};

use crate::artefacts::TrialDir;
use crate::case::Case;
use crate::judge::{Failure, Outcome};
use crate::prepare::PreparedGuest;
use golden::Facts;

/// The record of a trial, in `trial.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrialRecord {
    /// The SHA-256 of the case's file as it was run.
    pub case_digest: String,
    /// The kernel's release.
    pub release: String,
    /// What the conditions of goldens could ask.
    pub facts: Facts,
    /// What came of it.
    pub verdict: Verdict,
    /// Why nothing can be blessed from it; `None` when something can.
    pub unusable: Option<String>,
}

/// An outcome in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It passed.
    Pass,
    /// It failed.
    Fail,
    /// A fault that is known and excused.
    Xfail,
    /// A fault that is excused and no longer there.
    Xpass,
    /// It could not be done.
    Error,
    /// It was not run.
    Skip,
    /// The user interrupted.
    Interrupted,
}

const FILE: &str = "trial.json";

impl TrialRecord {
    /// The record of a trial that came to `outcome`.
    pub fn new(case: &Case, ready: &PreparedGuest, outcome: &Outcome) -> TrialRecord {
        let unusable = match outcome {
            Outcome::Pass | Outcome::Xfail(_) => None,
            Outcome::Fail(failures) | Outcome::Xpass { failures, .. } => {
                failures.iter().find_map(|failure| match failure {
                    Failure::Kernel { complaint, .. } => {
                        Some(format!("the kernel complained: {}", complaint.line))
                    }
                    Failure::Capture(_) | Failure::Decoded(_) | Failure::Module(_) => None,
                })
            }
            Outcome::Error(error) => Some(format!("the trial was an error: {}", error.what)),
            Outcome::Skip(why) => Some(format!("the trial was skipped: {why}")),
            Outcome::Interrupted => Some("the trial was interrupted".to_owned()),
        };
        TrialRecord {
            case_digest: case.digest.clone(),
            release: ready.image.kernel.release.clone(),
            facts: ready.facts(),
            verdict: Verdict::of(outcome),
            unusable,
        }
    }

    /// Write it into the trial's folder.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn write(&self, dir: &TrialDir) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        fs::write(dir.dir.join(FILE), text + "\n")
    }

    /// Read the record in a trial's folder; `None` when there is none.
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

impl Verdict {
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
