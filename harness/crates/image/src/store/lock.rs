//! Locks between processes, which hold although a user may remove the cache at any time.
//!
//! A lock is a flock(2) on an open file. A file that was removed, or replaced by another of its name, excludes nobody:
//! after the lock was taken, the file must still be the one that the path names.

use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use rustix::fs::{FlockOperation, flock, fstat, stat};
use rustix::io::Errno;

use super::Store;
use super::files::make_dir;
use crate::error::ImageError;
use crate::progress::ProgressSink;
use vm::process::interrupt;

/// How long one goldtrace waits for another that makes the same product: longer than the longest build may take.
const LOCK_TIMEOUT: Duration = Duration::from_secs(100 * 60);

impl Store {
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
        let start = Instant::now();
        let mut noticed = false;
        loop {
            if let Some(file) = self.try_lock(name)? {
                return Ok(file);
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

    /// Hold the lock `name`; `None` when another process does.
    pub(super) fn try_lock(&self, name: &str) -> Result<Option<File>, ImageError> {
        let path = self.root.join("locks").join(name);
        loop {
            make_dir(&self.root.join("locks"))?;
            let file = match File::create(&path) {
                // The directory was removed in between.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other.map_err(|e| ImageError::file("create", &path, e))?,
            };
            match hold(&file, &path, FlockOperation::NonBlockingLockExclusive)? {
                Held::Yes => return Ok(Some(file)),
                Held::ByAnother => return Ok(None),
                Held::Removed => {}
            }
        }
    }
}

/// What came of an attempt to lock an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// It is locked, and the path names it.
    Yes,
    /// Another process has it locked.
    ByAnother,
    /// The path names it no longer: the lock is worth nothing.
    Removed,
}

/// Lock the open `file`, which was opened by `path`, without waiting.
pub(super) fn hold(file: &File, path: &Utf8Path, how: FlockOperation) -> Result<Held, ImageError> {
    match flock(file, how) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(Held::ByAnother),
        Err(error) => return Err(ImageError::file("lock", path, error.into())),
    }
    let fail = |error: Errno| ImageError::file("look at", path, error.into());
    let open = fstat(file).map_err(fail)?;
    match stat(path.as_std_path()) {
        Ok(named) if (named.st_dev, named.st_ino) == (open.st_dev, open.st_ino) => Ok(Held::Yes),
        Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => Ok(Held::Removed),
        Err(error) => Err(fail(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::testing::{Notices, store};
    use super::*;
    use crate::progress::Silent;

    #[test]
    fn held_lock_times_out_with_its_path() {
        let (_dir, store) = store();
        let _held = store.lock("thing", "thing", &Silent).expect("free");
        let notices = Notices::default();
        let timeout = Duration::from_millis(120);
        let error = store.lock_within("thing", "thing one", &notices, timeout).expect_err("held");
        let path = store.root().join("locks/thing");
        assert!(matches!(&error, ImageError::LockTimeout { path: found, seconds: 0 } if *found == path));
        assert!(error.to_string().contains(&format!("another goldtrace holds {path}\nhelp: ")), "{error}");
        assert_eq!(notices.text(), "waiting for another goldtrace to finish thing one");
    }

    #[test]
    fn file_removed_while_it_is_waited_for_is_not_the_lock() {
        let (_dir, store) = store();
        let path = store.root().join("locks/thing");
        let old = File::create(&path).expect("created");
        fs::remove_file(&path).expect("removed");
        let how = FlockOperation::NonBlockingLockExclusive;
        assert_eq!(hold(&old, &path, how).expect("locked"), Held::Removed);
        let _now = store.lock("thing", "thing", &Silent).expect("free");
        assert_eq!(hold(&old, &path, how).expect("locked"), Held::Removed);
        assert_eq!(store.try_lock("thing").expect("readable").map(drop), None);
    }

    #[test]
    fn lock_is_taken_although_the_directory_of_locks_was_removed() {
        let (_dir, store) = store();
        fs::remove_dir_all(store.root().join("locks")).expect("removed");
        let _held = store.lock("thing", "thing", &Silent).expect("free");
        assert!(store.try_lock("thing").expect("readable").is_none());
    }
}
