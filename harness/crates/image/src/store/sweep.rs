//! The removal of what nobody uses any more.
//!
//! A product is used from when it was verified to the end of the process that did it, which holds a lock on its
//! directory so long; each use sets the directory's time. What was not used for [`UNUSED`] and is not held goes, unless
//! nothing at all was used for so long: the clock was set, or somebody comes back, and what is used now is not known yet.

use std::fs::File;
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::FlockOperation;

use super::Store;
use super::files::{entries, remove_dir, remove_file};
use super::lock::{Held, hold};
use crate::error::ImageError;

/// How long a product, a log or a lock that nobody uses is kept.
const UNUSED: Duration = Duration::from_secs(90 * 24 * 3600);
/// The same of a snapshot, which takes seconds to make, and of which each kernel has several.
const SNAPSHOT_UNUSED: Duration = Duration::from_secs(7 * 24 * 3600);
/// The same of a tree that a kernel was built in.
const TREE_UNUSED: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long a damaged product is kept for inspection.
const DAMAGED: Duration = Duration::from_secs(30 * 24 * 3600);
/// How often all is looked through.
const INTERVAL: Duration = Duration::from_secs(24 * 3600);
/// The file whose time says when that was done last.
const MARKER: &str = "swept";

impl Store {
    /// Remove what killed processes have left and, once a day, what nobody uses.
    pub(super) fn sweep(&self, now: SystemTime) -> Result<(), ImageError> {
        self.sweep_work()?;
        let marker = self.root.join(MARKER);
        // Of a marker in the future, the clock was set back since.
        let last = marker.metadata().and_then(|metadata| metadata.modified());
        let since = last.ok().and_then(|last| now.duration_since(last).ok());
        if since.is_some_and(|since| since <= INTERVAL) {
            return Ok(());
        }
        let file = File::create(&marker).map_err(|e| ImageError::file("create", &marker, e))?;
        file.set_modified(now).map_err(|e| ImageError::file("set the time of", &marker, e))?;
        if since.is_some_and(|since| since > UNUSED) {
            return Ok(());
        }
        self.sweep_products(now)?;
        self.sweep_trees(usize::MAX, now)?;
        for path in entries(&self.root.join("damaged"))? {
            if is_older(&path, DAMAGED, now) {
                remove_dir(&path)?;
            }
        }
        remove_older_at(&self.root.join("logs"), UNUSED, now)?;
        for path in entries(&self.root.join("locks"))? {
            if !is_older(&path, UNUSED, now) {
                continue;
            }
            // Who waits for it notices that it was removed.
            if let Some(_held) = self.try_lock(path.file_name().unwrap_or_default())? {
                remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Remove the kept trees that nobody has used for a while, and those that were not used for longest, but `most`. One
    /// that is in use stays.
    pub(crate) fn sweep_trees(&self, most: usize, now: SystemTime) -> Result<(), ImageError> {
        let mut trees: Vec<(SystemTime, Utf8PathBuf)> = Vec::new();
        for path in entries(&self.trees())? {
            let time = path.metadata().and_then(|metadata| metadata.modified());
            trees.push((time.unwrap_or(SystemTime::UNIX_EPOCH), path));
        }
        trees.sort();
        let too_many = trees.len().saturating_sub(most);
        for (place, (_, path)) in trees.iter().enumerate() {
            let name = path.file_name().unwrap_or_default();
            if place >= too_many && !is_older(path, TREE_UNUSED, now) {
                continue;
            }
            let Some(_lock) = self.try_lock(name)? else { continue };
            let work = self.work_dir(name)?;
            std::fs::rename(path, work.dir.join("unused"))
                .map_err(|e| ImageError::file("move away", path, e))?;
        }
        Ok(())
    }

    fn sweep_products(&self, now: SystemTime) -> Result<(), ImageError> {
        for path in entries(&self.root.join("products"))? {
            let name = path.file_name().unwrap_or_default();
            let unused = unused(name);
            if !is_older(&path, unused, now) {
                continue;
            }
            // Who is about to make or to replace it has this lock.
            let Some(_lock) = self.try_lock(name)? else { continue };
            let Ok(directory) = File::open(&path) else { continue };
            let held = hold(&directory, &path, FlockOperation::NonBlockingLockExclusive)?;
            if held == Held::Yes && is_older(&path, unused, now) {
                // It goes at once: half a product would be a damaged one.
                let work = self.work_dir(name)?;
                std::fs::rename(&path, work.dir.join("unused"))
                    .map_err(|e| ImageError::file("move away", &path, e))?;
            }
        }
        Ok(())
    }
}

/// How long a product of this name may be unused.
fn unused(name: &str) -> Duration {
    if name.starts_with("snapshot-") { SNAPSHOT_UNUSED } else { UNUSED }
}

/// Remove the files of a directory that were not written for `age`.
pub(crate) fn remove_older(dir: &Utf8Path, age: Duration) -> Result<(), ImageError> {
    remove_older_at(dir, age, SystemTime::now())
}

fn remove_older_at(dir: &Utf8Path, age: Duration, now: SystemTime) -> Result<(), ImageError> {
    for path in entries(dir)? {
        if is_older(&path, age, now) {
            remove_file(&path)?;
        }
    }
    Ok(())
}

/// Whether the file or directory was last used longer ago than `age`. Not when its time is in the future.
fn is_older(path: &Utf8Path, age: Duration, now: SystemTime) -> bool {
    let time = path.symlink_metadata().and_then(|metadata| metadata.modified());
    time.is_ok_and(|time| now.duration_since(time).is_ok_and(|since| since > age))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::testing::{recipe, store, write};
    use super::*;
    use crate::progress::Silent;

    fn in_days(days: u64) -> SystemTime {
        SystemTime::now() + Duration::from_secs(days * 24 * 3600)
    }

    fn age(path: &Utf8Path, days: u64) {
        let time = SystemTime::now() - Duration::from_secs(days * 24 * 3600);
        File::open(path).and_then(|file| file.set_modified(time)).expect("set");
    }

    #[test]
    fn trees_that_are_old_or_too_many_go_and_one_in_use_stays() {
        let (_dir, store) = store();
        let tree = |name: &str, days: u64| {
            let dir = store.trees().join(name);
            fs::create_dir_all(&dir).expect("made");
            age(&dir, days);
        };
        let left = || {
            let paths = entries(&store.trees()).expect("there");
            let mut names: Vec<_> =
                paths.iter().filter_map(|path| path.file_name()).map(str::to_owned).collect();
            names.sort();
            names
        };
        for (name, days) in [("tree-a", 3), ("tree-b", 2), ("tree-c", 1), ("tree-d", 8)] {
            tree(name, days);
        }
        store.sweep_trees(usize::MAX, SystemTime::now()).expect("swept");
        assert_eq!(left(), ["tree-a", "tree-b", "tree-c"]);
        let held = store.try_lock("tree-a").expect("locks").expect("free");
        store.sweep_trees(1, SystemTime::now()).expect("swept");
        assert_eq!(left(), ["tree-a", "tree-c"]);
        drop(held);
        store.sweep_trees(1, SystemTime::now()).expect("swept");
        assert_eq!(left(), ["tree-c"]);
    }

    #[test]
    fn product_in_use_is_kept_and_unused_one_is_removed() {
        let (_dir, store) = store();
        let used = store.product(&recipe(), &Silent, |w| write(w, "used")).expect("made");
        let unused = {
            // Of a process that has ended.
            let other = Store::open(store.root()).expect("opens");
            other.product(&recipe().with("other", "b"), &Silent, |w| write(w, "x")).expect("made").dir.clone()
        };
        store.sweep(in_days(89)).expect("swept");
        assert!(used.dir.exists() && unused.exists());
        store.sweep(in_days(91)).expect("swept");
        assert!(used.dir.exists() && !unused.exists());
        assert_eq!(entries(&store.root().join("building")).expect("there"), [""; 0]);
    }

    #[test]
    fn unused_snapshot_goes_sooner() {
        let (_dir, store) = store();
        let other = Store::open(store.root()).expect("opens");
        let made = |kind: &str| {
            let recipe = crate::store::Recipe::new(kind, "x");
            other.product(&recipe, &Silent, |w| write(w, "x")).expect("made").dir
        };
        let (snapshot, kernel) = (made("snapshot"), made("kernel"));
        drop(other);
        store.sweep(in_days(6)).expect("swept");
        assert!(snapshot.exists() && kernel.exists());
        store.sweep(in_days(8)).expect("swept");
        assert!(!snapshot.exists() && kernel.exists());
    }

    #[test]
    fn clock_that_jumps_removes_nothing_at_once() {
        let (_dir, store) = store();
        store.sweep(SystemTime::now()).expect("swept");
        let unused = {
            let other = Store::open(store.root()).expect("opens");
            other.product(&recipe(), &Silent, |w| write(w, "x")).expect("made").dir.clone()
        };
        store.sweep(in_days(400)).expect("swept");
        assert!(unused.exists());
        // Back again, where the marker is of the future.
        age(&unused, 100);
        store.sweep(SystemTime::now()).expect("swept");
        assert!(!unused.exists());
    }

    #[test]
    fn use_of_a_product_keeps_it() {
        let (_dir, store) = store();
        let dir = {
            let other = Store::open(store.root()).expect("opens");
            let dir = other.product(&recipe(), &Silent, |w| write(w, "x")).expect("made").dir.clone();
            age(&dir, 80);
            dir
        };
        let user = Store::open(store.root()).expect("opens");
        drop(user.product(&recipe(), &Silent, |_| panic!("it is there")).expect("found"));
        drop(user);
        store.sweep(in_days(80)).expect("swept");
        assert!(dir.exists());
    }

    #[test]
    fn old_logs_locks_and_damaged_products_are_removed() {
        let (_dir, store) = store();
        let root = store.root();
        for (name, is_dir) in [("logs/old", false), ("locks/old", false), ("damaged/old", true)] {
            let path = root.join(name);
            fs::create_dir_all(if is_dir { &path } else { path.parent().expect("a parent") }).expect("made");
            if !is_dir {
                fs::write(&path, "").expect("written");
            }
            age(&path, 100);
        }
        let held = store.lock("held", "held", &Silent).expect("free");
        age(&root.join("locks/held"), 100);
        store.sweep(SystemTime::now()).expect("swept");
        let left = |dir: &str| entries(&root.join(dir)).expect("there").len();
        assert_eq!((left("logs"), left("damaged")), (0, 0));
        assert_eq!(entries(&root.join("locks")).expect("there"), [root.join("locks/held")]);
        drop(held);
    }

    #[test]
    fn all_is_looked_through_once_a_day() {
        let (_dir, store) = store();
        let log = store.root().join("logs/old");
        store.sweep(SystemTime::now()).expect("swept");
        fs::write(&log, "").expect("written");
        age(&log, 100);
        store.sweep(SystemTime::now()).expect("swept");
        assert!(log.exists());
        store.sweep(in_days(2)).expect("swept");
        assert!(!log.exists());
    }
}
