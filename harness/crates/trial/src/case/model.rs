//! What a case is, checked and ready to run.

use std::fmt;
use std::time::Duration;

use camino::Utf8PathBuf;

use super::splat::ExpectedSplat;
use dtl::LogPlan;
use formats::Format;
use golden::Golden;
use guest::{GuestName, ModuleSource};
use image::digest::text_digest;
use vm::process::shell_line;

/// A case's id: its directory's path below `cases/`, such as `histogram-design/alias`.
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
    /// What a guest must have; on others the case is skipped.
    pub requires: Requires,
    /// The modules that its trials can load besides those of the guest.
    pub modules: Vec<ModuleSource>,
    /// The directory in the guest that its steps start in.
    pub cwd: String,
    /// Known bugs on which the kernel reports on its console.
    pub expected_splats: Vec<ExpectedSplat>,
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
    /// QEMU's own translator: under KVM a kernel leaves out what KVM does not have.
    pub tcg: bool,
}

/// One step.
#[derive(Debug, Clone)]
pub struct Step {
    /// Its line in the case's file, from 1.
    pub line: usize,
    /// What it does.
    pub action: Action,
    /// How long it may take.
    pub timeout: Duration,
    /// How many bytes it may print.
    pub output_limit: u32,
    /// What it may print to its standard error.
    pub stderr: Stderr,
    /// What is kept and compared.
    pub capture: Option<Capture>,
}

/// What a step may print to its standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stderr {
    /// Nothing.
    Empty,
    /// Anything.
    Any,
}

impl Stderr {
    /// Both, by the words that case files use.
    pub const ALL: [(&'static str, Stderr); 2] = [("empty", Stderr::Empty), ("any", Stderr::Any)];
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Run a script with `sh -e -o pipefail`; another exit status than this one is a failure.
    Run {
        /// The script.
        script: String,
        /// The exit status that it must have.
        exit_status: u32,
        /// What the hypervisor writes while it runs; its standard input is open until then.
        log: Option<LogPlan>,
    },
    /// Run perf on recorded data, in the guest and then, on a copy of the data, in a guest of another architecture. Both
    /// must print the same.
    Decode {
        /// perf's subcommand and its arguments, but for the data's file.
        arguments: Vec<String>,
        /// The data's file in the guest, relative to the case's `cwd`.
        data: String,
    },
    /// Describe the trace events in a module's file: on the host, without a guest.
    Inspect {
        /// The module's name.
        module: String,
    },
    /// Read a file to its end.
    Read {
        /// Its path, relative to the case's `cwd`.
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
    /// What of the output is kept.
    pub part: CapturePart,
    /// The module that must define exactly the captured `format` files.
    pub defined_by: Option<String>,
    /// What it must be.
    pub golden: Golden,
}

impl Requires {
    /// The word for perf in a case's file.
    pub const PERF: &str = "perf";
    /// The word for QEMU's own translator.
    pub const TCG: &str = "tcg";

    /// All of them, as in a case's file.
    pub fn words(&self) -> Vec<&str> {
        let symbols = self.symbols.iter().map(String::as_str);
        symbols.chain(self.perf.then_some(Requires::PERF)).chain(self.tcg.then_some(Requires::TCG)).collect()
    }
}

/// What of a step's output is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapturePart {
    /// All of it.
    All,
    /// Of perf's dump, the AUXTRACE records with the logs that they carry.
    AuxTrace,
    /// Of these, the hypervisor's entries by CPU, without the records that carry them.
    Entries,
}

impl CapturePart {
    /// All of them, by the words that case files use.
    pub const ALL: [(&'static str, CapturePart); 3] =
        [("all", CapturePart::All), ("auxtrace", CapturePart::AuxTrace), ("entries", CapturePart::Entries)];
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
            Action::Decode { arguments, .. } => format!("decode {}", shell_line(arguments)),
            Action::Read { path } => format!("read {path}"),
            Action::Inspect { module } => format!("inspect {module}"),
        }
    }
}

impl Case {
    /// The case for a guest in which everything may take so many times longer.
    pub(crate) fn with_timeouts_times(&self, factor: u32) -> Case {
        let mut case = self.clone();
        for step in &mut case.steps {
            step.timeout *= factor;
        }
        case
    }

    /// The digest of everything that decides what a step captures: the steps up to it. A golden has it in
    /// its first line, so that a golden written for other steps is noticed.
    ///
    /// It is computed from what the steps mean, not from their text: renaming a key of case files does not
    /// change it.
    ///
    /// `step` is an index of `steps`.
    pub fn steps_digest(&self, step: usize) -> String {
        let mut text = format!("{}\n", self.cwd);
        for step in &self.steps[..=step] {
            match &step.action {
                Action::Run { script, exit_status, log } => {
                    text.push_str(&format!("run {exit_status} {script}\n"));
                    text.extend(log.iter().map(LogPlan::to_text));
                }
                Action::Decode { arguments, data } => {
                    text.push_str(&format!("decode {data} {}\n", shell_line(arguments)));
                }
                Action::Read { path } => text.push_str(&format!("read {path}\n")),
                Action::Inspect { module } => text.push_str(&format!("inspect {module}\n")),
            }
        }
        text_digest(&text).as_str()[..12].to_owned()
    }

    /// Whether a guest is needed: `inspect` runs on the host alone.
    pub fn boots(&self) -> bool {
        self.steps.iter().any(|step| !matches!(step.action, Action::Inspect { .. }))
    }

    /// The modules that steps name, each with the step.
    pub fn named_modules(&self) -> impl Iterator<Item = (&Step, &str)> {
        self.steps.iter().flat_map(|step| {
            let inspected = match &step.action {
                Action::Inspect { module } => Some(module),
                _ => None,
            };
            let defining = step.capture.as_ref().and_then(|capture| capture.defined_by.as_ref());
            inspected.into_iter().chain(defining).map(move |name| (step, name.as_str()))
        })
    }

    /// Whether the hypervisor's part is played in it.
    pub fn writes_dispatch_log(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.action, Action::Run { log: Some(_), .. }))
    }

    /// Whether it is run on `guest`.
    pub fn runs_on(&self, guest: &GuestName) -> bool {
        self.guests.contains(guest)
    }
}
