//! What a run leaves behind: one folder a run, one folder in it for each trial.

use std::fs;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use camino::{Utf8Path, Utf8PathBuf};

use crate::case::CaseId;
use crate::plan::Trial;
use guest::GuestName;
use guest::Project;

/// How many runs are kept.
const KEPT: usize = 10;
const LAST: &str = "last";

/// The folder of a run.
#[derive(Debug, Clone)]
pub struct RunDir {
    dir: Utf8PathBuf,
}

/// The folder of a trial: `console.log`, `qemu-stderr.log`, `qemu-command`, each capture under its
/// name in `captures/` (with the picture `NAME.svg` where it shows dispatches), and each step's output in `steps/`.
#[derive(Debug, Clone)]
pub struct TrialDir {
    /// The folder.
    pub dir: Utf8PathBuf,
}

impl RunDir {
    /// A new folder below the project's results; `last` points to it, and the oldest runs go.
    ///
    /// Trials that a test runner runs in processes of their own share the run that the runner
    /// names (`NEXTEST_RUN_ID`).
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn create(project: &Project) -> io::Result<RunDir> {
        let results = project.results();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let name = match std::env::var("NEXTEST_RUN_ID") {
            Ok(id) if id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') => format!("run-{id}"),
            _ => format!("run-{now}-{}", std::process::id()),
        };
        let dir = results.join(&name);
        fs::create_dir_all(&dir)?;
        prune(&results, &dir)?;
        let link = results.join(format!(".{LAST}-{}", std::process::id()));
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(&name, &link)?;
        fs::rename(&link, results.join(LAST))?;
        Ok(RunDir { dir })
    }

    /// The folder of the last run; `None` when there was none.
    pub fn last(project: &Project) -> Option<RunDir> {
        let dir = project.results().join(LAST);
        dir.is_dir().then_some(RunDir { dir })
    }

    /// The folder of a trial, there or not.
    pub fn trial_dir(&self, case: &CaseId, guest: &GuestName) -> TrialDir {
        TrialDir { dir: self.dir.join(format!("{case}@{guest}")) }
    }

    /// The folder.
    pub fn path(&self) -> &Utf8Path {
        &self.dir
    }

    /// A new folder for a trial.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn trial(&self, trial: &Trial<'_>) -> io::Result<TrialDir> {
        let TrialDir { dir } = self.trial_dir(&trial.case.id, &trial.guest.name);
        for sub in ["captures", "steps"] {
            fs::create_dir_all(dir.join(sub))?;
        }
        Ok(TrialDir { dir })
    }
}

impl TrialDir {
    /// The file that holds a capture.
    pub fn capture(&self, name: &str) -> Utf8PathBuf {
        self.dir.join("captures").join(name)
    }

    /// The picture of the dispatches in a capture.
    pub fn plot(&self, capture: &str) -> Utf8PathBuf {
        self.dir.join("captures").join(format!("{capture}.svg"))
    }

    /// The file that holds what a step printed. Steps count from 1.
    pub fn step(&self, number: usize, stream: &str) -> Utf8PathBuf {
        self.dir.join("steps").join(format!("{number:02}.{stream}"))
    }

    /// The folder for what is decoded on the host.
    pub fn host(&self) -> Utf8PathBuf {
        self.dir.join("host")
    }

    /// The file that holds the console.
    pub fn console(&self) -> Utf8PathBuf {
        self.dir.join("console.log")
    }
}

/// Remove the oldest runs. A run that another process is working in is among the newest.
fn prune(results: &Utf8Path, this: &Utf8Path) -> io::Result<()> {
    let mut runs = Vec::new();
    for entry in results.read_dir_utf8()? {
        let entry = entry?;
        if entry.file_name().starts_with("run-") && entry.path() != this {
            runs.push((entry.metadata()?.modified()?, entry.into_path()));
        }
    }
    runs.sort();
    let surplus = (runs.len() + 1).saturating_sub(KEPT);
    for (_, run) in &runs[..surplus] {
        match fs::remove_dir_all(run) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
