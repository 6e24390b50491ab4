//! What a case is, checked and ready to run.

use std::fmt;
use std::time::Duration;

use camino::Utf8PathBuf;

use super::excuse::{Excuse, ExpectedDeath};
use crate::digest::text_digest;
use crate::golden::Golden;
use crate::guest::GuestName;
use crate::normalise::Format;

/// A case's id: its folder's path below `cases/`, such as `histogram-design/alias`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CaseId(String);

impl CaseId {
    /// An id; the caller has taken it from a path.
    pub fn new(id: &str) -> CaseId {
        CaseId(id.to_owned())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// One documented scenario.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its id.
    pub id: CaseId,
    /// One line that says what it shows.
    pub title: String,
    /// The kernel document that it comes from, if any.
    pub document: Option<String>,
    /// Its file, as it is shown.
    pub file: Utf8PathBuf,
    /// The SHA-256 of its file.
    pub digest: String,
    /// The guests that it is run on.
    pub guests: Vec<GuestName>,
    /// What it is skipped without.
    pub requires: Requires,
    /// The folder in the guest that its steps start from.
    pub directory: String,
    /// Known faults whose marks in captures are excused.
    pub xfail: Vec<Excuse>,
    /// A known fault of which the guest dies.
    pub expect_death: Option<ExpectedDeath>,
    /// Its steps, in order; at least one captures something.
    pub steps: Vec<Step>,
}

/// What a case needs of a guest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requires {
    /// Kernel config symbols, `CONFIG_` included.
    pub symbols: Vec<String>,
    /// A perf that knows tracepoints, in `/bin/perf`.
    pub perf: bool,
}

/// One step.
#[derive(Debug, Clone)]
pub struct Step {
    /// Its line in the case's file, from 1.
    pub line: usize,
    /// What it does.
    pub action: Action,
    /// How long it may take, in the guest's time.
    pub limit: Duration,
    /// What is kept and compared.
    pub capture: Option<Capture>,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Run a script with `sh -e`; another exit status than this one is an error.
    Run {
        /// The script.
        script: String,
        /// The exit status that it must have.
        status: u32,
    },
    /// Read a file to its end.
    Read {
        /// Its path, relative to the case's folder in the guest.
        path: String,
    },
}

/// An output that is kept under a name and compared with a golden.
#[derive(Debug, Clone)]
pub struct Capture {
    /// Its name, unique in the case. The golden's file is named after it.
    pub name: String,
    /// Its format.
    pub format: Format,
    /// What it must be.
    pub golden: Golden,
}

impl Requires {
    /// The word for perf in a case's file.
    pub const PERF: &str = "perf";

    /// All of them, as a case's file has them.
    pub fn words(&self) -> Vec<&str> {
        self.symbols.iter().map(String::as_str).chain(self.perf.then_some(Requires::PERF)).collect()
    }
}

impl Step {
    /// The step in one line, for showing.
    pub fn summary(&self) -> String {
        match &self.action {
            Action::Run { script, .. } => {
                let mut lines = script.lines().filter(|line| !line.trim().is_empty());
                let first = lines.next().unwrap_or_default().trim();
                if lines.next().is_some() { format!("{first} ...") } else { first.to_owned() }
            }
            Action::Read { path } => format!("read {path}"),
        }
    }
}

impl Case {
    /// The digest of everything that decides what a step's capture holds: the steps up to it. A
    /// golden carries it in its head, so that one that an edited case has left behind is noticed.
    ///
    /// `step` is an index of `steps`.
    pub fn steps_digest(&self, step: usize) -> String {
        let mut text = format!("{}\n", self.directory);
        for step in &self.steps[..=step] {
            match &step.action {
                Action::Run { script, status } => text.push_str(&format!("run {status} {script}\n")),
                Action::Read { path } => text.push_str(&format!("read {path}\n")),
            }
        }
        text_digest(&text).as_str()[..12].to_owned()
    }

    /// Whether it is run on `guest`.
    pub fn runs_on(&self, guest: &GuestName) -> bool {
        self.guests.contains(guest)
    }
}
