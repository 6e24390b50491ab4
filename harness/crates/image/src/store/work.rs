//! Directories to work in.
//!
//! Each has a name of its own, so that two processes never work in one, and is locked while it is used: what a killed
//! process has left is known by its lock being free.

use std::fs::{self, File};
use std::io;

use camino::Utf8PathBuf;
use rustix::fs::FlockOperation;

use super::Store;
use super::files::{entries, make_dir, remove_dir, remove_file};
use super::lock::{Held, hold};
use crate::error::ImageError;
use vm::process::interrupt;

/// A directory of the cache that is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct WorkDir {
    /// The directory.
    pub(crate) dir: Utf8PathBuf,
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
    /// A directory to work in, whose name begins with `name`.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub(crate) fn work_dir(&self, name: &str) -> Result<WorkDir, ImageError> {
        let work = self.root.join("building");
        let fail = |e| ImageError::file("create a directory in", &work, e);
        loop {
            make_dir(&work)?;
            let made =
                tempfile::Builder::new().prefix(&format!("{name}-")).tempdir_in(&work).map_err(fail)?;
            let dir = Utf8PathBuf::try_from(made.keep()).map_err(|e| fail(e.into_io_error()))?;
            let lock = match File::open(&dir) {
                // Swept before it was locked.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other.map_err(|e| ImageError::file("open", &dir, e))?,
            };
            if hold(&lock, &dir, FlockOperation::NonBlockingLockExclusive)? == Held::Yes {
                return Ok(WorkDir { dir, _lock: lock });
            }
        }
    }

    /// Remove the work directories that no process holds any more.
    pub(super) fn sweep_work(&self) -> Result<(), ImageError> {
        for path in entries(&self.root.join("building"))? {
            if path.is_file() {
                remove_file(&path)?;
                continue;
            }
            // Another process may be sweeping too.
            let Ok(lock) = File::open(&path) else { continue };
            if hold(&lock, &path, FlockOperation::NonBlockingLockExclusive)? == Held::Yes {
                remove_dir(&path)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::store;
    use super::*;

    #[test]
    fn abandoned_work_is_swept_and_held_work_is_kept() {
        let (_dir, store) = store();
        let left = store.root().join("building/left");
        make_dir(&left.join("deep")).expect("made");
        let (one, two) = (store.work_dir("held").expect("made"), store.work_dir("held").expect("made"));
        assert_ne!(one.dir, two.dir);
        store.sweep_work().expect("swept");
        assert!(!left.exists() && one.dir.exists() && two.dir.exists());
        drop(one);
        assert_eq!(entries(&store.root().join("building")).expect("there"), std::slice::from_ref(&two.dir));
    }
}
