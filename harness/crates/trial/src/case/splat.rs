//! Splats of the kernel that a case expects, as data. What counts as the expected one is judged elsewhere.

use camino::Utf8PathBuf;
use golden::{Condition, Facts};
use guest::KnownMessage;
use vm::SplatKind;

/// A known bug on which the kernel reports on its console: the trial fails with it, and that is expected.
#[derive(Debug, Clone)]
pub struct ExpectedSplat {
    /// The case's file, as it is shown.
    pub file: Utf8PathBuf,
    /// Its line in that file, from 1.
    pub line: usize,
    /// What kind of report it is.
    pub kind: SplatKind,
    /// The function that the report's own line names: `RIP:`, `NIP`, `WARNING: ... at`. Where a report has none, its
    /// line is given.
    pub symbol: Option<String>,
    /// What the report's own line is, as a pattern for the whole of it.
    pub message: Option<KnownMessage>,
    /// Where it comes.
    pub step: ExpectedAt,
    /// The kernels and guests that have the bug; all without it.
    pub condition: Option<Condition>,
    /// What is wrong, and since when.
    pub reason: String,
}

/// Where an expected splat comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedAt {
    /// In the last step that ran, or after it.
    Last,
    /// In this step, as an index of the case's steps.
    Step(usize),
    /// In one step or several, whichever they are.
    Any,
}

impl ExpectedSplat {
    /// Whether it is expected on a guest.
    pub fn applies(&self, facts: &Facts) -> bool {
        self.condition.as_ref().is_none_or(|condition| condition.holds(facts))
    }
}
