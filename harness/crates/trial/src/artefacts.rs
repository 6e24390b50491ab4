//! What runs keep: one directory a run, one in it for each trial.
//!
//! A run that a process is working in is never removed, however many others start meanwhile: each holds a lock on
//! its directory. This module knows no outcome and no golden.

use std::fs::{self, File};
use std::io;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use camino::{Utf8Path, Utf8PathBuf};
use guest::{GuestName, Project};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::case::CaseId;
use crate::plan::Trial;

/// How many runs are kept.
const KEPT: usize = 10;
const LAST: &str = "last";
/// The file in a run's directory that is locked while the run is in use.
const LOCK: &str = "lock";
/// What the name of the directory begins with that holds the trials of a second or later repetition.
const REPEAT: &str = "repeat-";
/// What the name of a run begins with while it is being removed.
const REMOVED: &str = ".removed-";

/// The directory of a run. While it or a clone of it lives, no other process removes the run.
#[derive(Debug, Clone)]
pub struct RunDir {
    dir: Utf8PathBuf,
    _lock: Option<Arc<File>>,
}

/// The directory of a trial: `console.log`, `qemu-stderr.log`, `qemu-command`, each capture under its
/// name in `captures/`, the picture of one that shows dispatches in `plots/NAME.svg`, and each step's
/// output in `steps/`.
#[derive(Debug, Clone)]
pub struct TrialDir {
    /// The directory.
    pub dir: Utf8PathBuf,
}

impl RunDir {
    /// A new directory below the project's results; `last` points to it, and the oldest runs go.
    ///
    /// Trials that a test runner runs in processes of their own share the run that the runner
    /// names (`NEXTEST_RUN_ID`).
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn create(project: &Project) -> io::Result<RunDir> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let name = match std::env::var("NEXTEST_RUN_ID") {
            Ok(id) if id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') => format!("run-{id}"),
            _ => format!("run-{now}-{}", std::process::id()),
        };
        RunDir::create_in(&project.results(), &name)
    }

    /// The same in a directory of results, under this name.
    pub(crate) fn create_in(results: &Utf8Path, name: &str) -> io::Result<RunDir> {
        let dir = results.join(name);
        let lock = loop {
            fs::create_dir_all(&dir)?;
            // Another process may take the directory away until the lock is held.
            if let Some(lock) = lock_in_use(&dir)? {
                break lock;
            }
        };
        prune(results)?;
        let link = results.join(format!(".{LAST}-{}", std::process::id()));
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(name, &link)?;
        fs::rename(&link, results.join(LAST))?;
        Ok(RunDir { dir, _lock: Some(Arc::new(lock)) })
    }

    /// The directory of the last run; `None` when there was none.
    pub fn last(project: &Project) -> Option<RunDir> {
        let dir = project.results().join(LAST);
        dir.is_dir().then_some(RunDir { dir, _lock: None })
    }

    /// The runs that are kept, the newest first. Others may remove them at any time.
    pub fn earlier(project: &Project) -> Vec<RunDir> {
        // Where nothing was run yet there is no directory.
        let mut runs = runs(&project.results()).unwrap_or_default();
        runs.reverse();
        runs.into_iter().map(|dir| RunDir { dir, _lock: None }).collect()
    }

    /// The directory of a trial, there or not.
    pub fn trial_dir(&self, case: &CaseId, guest: &GuestName) -> TrialDir {
        TrialDir { dir: self.dir.join(format!("{case}@{guest}")) }
    }

    /// The directory of a trial that is repeated: the first time it is that of one that runs once.
    fn repeated_dir(&self, trial: &Trial<'_>) -> TrialDir {
        let TrialDir { dir } = self.trial_dir(&trial.case.id, &trial.guest.name);
        match trial.repetition {
            0 | 1 => TrialDir { dir },
            n => {
                TrialDir { dir: self.dir.join(format!("{REPEAT}{n}/{}@{}", trial.case.id, trial.guest.name)) }
            }
        }
    }

    /// The directory.
    pub fn path(&self) -> &Utf8Path {
        &self.dir
    }

    /// A new directory for a trial.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn trial(&self, trial: &Trial<'_>) -> io::Result<TrialDir> {
        let TrialDir { dir } = self.repeated_dir(trial);
        for sub in ["captures", "plots", "steps"] {
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
        self.dir.join("plots").join(format!("{capture}.svg"))
    }

    /// The file that holds what a step printed. Steps count from 1.
    pub fn step(&self, number: usize, stream: &str) -> Utf8PathBuf {
        self.dir.join("steps").join(format!("{number:02}.{stream}"))
    }

    /// The directory of the guest that decodes recordings: its console, and copies of what it decoded.
    pub fn decoder(&self) -> Utf8PathBuf {
        self.dir.join("decoder")
    }

    /// The file that holds the console.
    pub fn console(&self) -> Utf8PathBuf {
        self.dir.join("console.log")
    }
}

/// Lock a run's directory as one in use, together with others that use it; `None` when the
/// directory was removed meanwhile.
fn lock_in_use(dir: &Utf8Path) -> io::Result<Option<File>> {
    let path = dir.join(LOCK);
    let file = match File::options().create(true).append(true).open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    flock(&file, FlockOperation::LockShared)?;
    Ok(is_at(&file, &path)?.then_some(file))
}

/// Whether the path leads to this very file.
fn is_at(file: &File, path: &Utf8Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let id = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    match fs::metadata(path) {
        Ok(there) => Ok(id(there) == id(file.metadata()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Remove the oldest runs, but for those in use. Others may remove them at the same time.
fn prune(results: &Utf8Path) -> io::Result<()> {
    for entry in results.read_dir_utf8()? {
        let entry = entry?;
        if entry.file_name().starts_with(REMOVED) {
            // Somebody removes it now, or was killed while it did.
            remove(entry.path())?;
        }
    }
    let runs = runs(results)?;
    let surplus = runs.len().saturating_sub(KEPT);
    for run in &runs[..surplus] {
        remove_unused(run)?;
    }
    Ok(())
}

/// The directories of runs, the oldest first.
fn runs(results: &Utf8Path) -> io::Result<Vec<Utf8PathBuf>> {
    let mut runs = Vec::new();
    for entry in results.read_dir_utf8()? {
        let entry = entry?;
        if !entry.file_name().starts_with("run-") {
            continue;
        }
        if let Some(metadata) = unless_gone(entry.metadata())? {
            runs.push((metadata.modified()?, entry.into_path()));
        }
    }
    runs.sort();
    Ok(runs.into_iter().map(|(_, run)| run).collect())
}

fn remove_unused(run: &Utf8Path) -> io::Result<()> {
    // A run without a lock is one of which only the directory was made, or of an older goldtrace.
    let lock = unless_gone(File::open(run.join(LOCK)))?;
    if let Some(lock) = &lock {
        match flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) if is_at(lock, &run.join(LOCK))? => {}
            Ok(()) | Err(Errno::WOULDBLOCK) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    // Out of the way first: no run is found of which a part is missing.
    let gone = run.with_file_name(format!("{REMOVED}{}", run.file_name().unwrap_or_default()));
    match fs::rename(run, &gone) {
        Err(error) if is_taken(&error) => Ok(()),
        renamed => renamed.and_then(|()| remove(&gone)),
    }
}

/// Whether another process is at the same removal, or was killed during it.
fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty)
}

/// Remove a directory that others may be removing as well. One that cannot be emptied, as somebody has just made a file in
/// it, is left to the next run.
fn remove(dir: &Utf8Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty) => {
            Ok(())
        }
        removed => removed,
    }
}

/// `None` for what somebody else has removed meanwhile.
fn unless_gone<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(there) => Ok(Some(there)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Results {
        _temporary: tempfile::TempDir,
        dir: Utf8PathBuf,
    }

    impl Results {
        fn new() -> Results {
            let temporary = tempfile::tempdir().expect("a directory");
            let dir = Utf8Path::from_path(temporary.path()).expect("UTF-8").to_owned();
            Results { _temporary: temporary, dir }
        }

        /// A run of an earlier process, older the smaller its number.
        fn old(&self, number: u64) {
            let dir = self.dir.join(format!("run-old-{number:02}"));
            fs::create_dir_all(dir.join("case@guest/captures")).expect("made");
            let time = UNIX_EPOCH + std::time::Duration::from_secs(number);
            File::open(&dir).and_then(|file| file.set_modified(time)).expect("dated");
        }

        fn names(&self) -> Vec<String> {
            let entries = self.dir.read_dir_utf8().expect("readable");
            let names = entries.map(|entry| entry.expect("an entry").file_name().to_owned());
            let mut names: Vec<String> = names.filter(|name| name.starts_with("run-")).collect();
            names.sort();
            names
        }
    }

    #[test]
    fn oldest_runs_are_removed() {
        let results = Results::new();
        (1..=12).for_each(|number| results.old(number));
        let run = RunDir::create_in(&results.dir, "run-new").expect("created");
        assert!(run.path().is_dir() && results.dir.join(LAST).join(LOCK).exists());
        let names = results.names();
        assert_eq!(names.len(), KEPT);
        assert_eq!((names[0].as_str(), names[1].as_str()), ("run-new", "run-old-04"));
    }

    #[test]
    fn run_in_use_is_kept() {
        let results = Results::new();
        let used = RunDir::create_in(&results.dir, "run-used").expect("created");
        let other = RunDir::create_in(&results.dir, "run-used").expect("shared with another process");
        let date = File::open(used.path()).and_then(|file| file.set_modified(UNIX_EPOCH));
        date.expect("dated as the oldest");
        (1..=12).for_each(|number| results.old(number));
        drop(other);
        let _new = RunDir::create_in(&results.dir, "run-new").expect("created");
        assert!(results.names().contains(&"run-used".to_owned()), "{:?}", results.names());

        drop(used);
        (13..=24).for_each(|number| results.old(number));
        prune(&results.dir).expect("pruned");
        assert!(!results.names().contains(&"run-used".to_owned()), "{:?}", results.names());
    }

    #[test]
    fn runs_that_are_pruned_by_several_at_once_are_no_error() {
        for _ in 0..20 {
            let results = Results::new();
            (1..=30).for_each(|number| results.old(number));
            std::thread::scope(|scope| {
                let prunes: Vec<_> = (0..4).map(|_| scope.spawn(|| prune(&results.dir))).collect();
                for pruned in prunes {
                    pruned.join().expect("no panic").expect("no error");
                }
            });
            assert!(results.names().len() <= KEPT);
        }
    }

    #[test]
    fn directory_that_was_replaced_is_not_taken_for_locked() {
        let results = Results::new();
        results.old(1);
        let dir = results.dir.join("run-old-01");
        let file = File::options().create(true).append(true).open(dir.join(LOCK)).expect("opened");
        fs::remove_dir_all(&dir).expect("removed");
        assert!(!is_at(&file, &dir.join(LOCK)).expect("looked"));
        assert!(lock_in_use(&dir).expect("looked").is_none());
        results.old(1);
        assert!(lock_in_use(&dir).expect("looked").is_some());
        assert!(!is_at(&file, &dir.join(LOCK)).expect("looked"));
    }
}
