//! Directories to work in, and the locks that keep two processes from making one thing.

use std::fs::{self, File};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use rustix::fs::{FlockOperation, flock};

use super::{Store, make_dir, remove_dir};
use crate::error::ImageError;
use crate::progress::ProgressSink;
use vm::process::interrupt;

/// How long one goldtrace waits for another that makes the same product.
const LOCK_TIMEOUT: Duration = Duration::from_secs(3600);

/// A directory of the cache that is removed when this is dropped.
#[derive(Debug)]
pub(super) struct WorkDir {
    /// The directory.
    pub(super) dir: Utf8PathBuf,
    _lock: File,
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        // A kernel's tree takes seconds to remove, and a user who interrupts wants an end now. What
        // is left is removed by the next process that makes something.
        if !interrupt::happened() {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

impl Store {
    /// A directory to work in that is removed when the guard is dropped. What interrupted processes
    /// have left is removed first.
    ///
    /// # Errors
    /// When the directory cannot be made, or another process keeps it too long.
    pub(super) fn work_dir(&self, name: &str, progress: &dyn ProgressSink) -> Result<WorkDir, ImageError> {
        let lock = self.lock(&work_lock(name), name, progress)?;
        let dir = self.root.join("work").join(name);
        remove_dir(&dir)?;
        self.sweep(name)?;
        make_dir(&dir)?;
        Ok(WorkDir { dir, _lock: lock })
    }

    /// Remove the work directories that no process holds any more, except `mine`.
    fn sweep(&self, mine: &str) -> Result<(), ImageError> {
        let work = self.root.join("work");
        for entry in work.read_dir_utf8().map_err(|e| ImageError::file("list", &work, e))? {
            let entry = entry.map_err(|e| ImageError::file("list", &work, e))?;
            if entry.file_name() == mine {
                continue;
            }
            let path = self.root.join("locks").join(work_lock(entry.file_name()));
            let file = File::create(&path).map_err(|e| ImageError::file("create", &path, e))?;
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                remove_dir(entry.path())?;
            }
        }
        Ok(())
    }

    /// Hold the lock `name`, once no other process does. `label` is what it guards, for people.
    ///
    /// # Errors
    /// [`ImageError::LockTimeout`] when another process keeps it too long.
    pub(crate) fn lock(
        &self,
        name: &str,
        label: &str,
        progress: &dyn ProgressSink,
    ) -> Result<File, ImageError> {
        self.lock_within(name, label, progress, LOCK_TIMEOUT)
    }

    fn lock_within(
        &self,
        name: &str,
        label: &str,
        progress: &dyn ProgressSink,
        timeout: Duration,
    ) -> Result<File, ImageError> {
        let path = self.root.join("locks").join(name);
        let file = File::create(&path).map_err(|e| ImageError::file("create", &path, e))?;
        let start = Instant::now();
        let mut noticed = false;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                Err(rustix::io::Errno::WOULDBLOCK) => {}
                Err(error) => return Err(ImageError::file("lock", &path, error.into())),
            }
            interrupt::check()?;
            if !noticed {
                progress.notice(&format!("waiting for another goldtrace to finish {label}"));
                noticed = true;
            }
            if start.elapsed() > timeout {
                return Err(ImageError::LockTimeout { path, seconds: timeout.as_secs() });
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn work_lock(name: &str) -> String {
    format!("work-{name}")
}
