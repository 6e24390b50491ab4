//! Files and directories of the cache.

use std::fs::{self, File};
use std::io::{self, Write};

use camino::Utf8Path;

use crate::error::ImageError;

/// Make a directory, with its parents, unless it is there.
pub(crate) fn make_dir(path: &Utf8Path) -> Result<(), ImageError> {
    fs::create_dir_all(path).map_err(|e| ImageError::file("create", path, e))
}

/// Remove a directory with all that is in it, if it is there.
pub(super) fn remove_dir(path: &Utf8Path) -> Result<(), ImageError> {
    unless_missing(fs::remove_dir_all(path)).map_err(|e| ImageError::file("remove", path, e))
}

/// Remove a file, if it is there.
pub(crate) fn remove_file(path: &Utf8Path) -> Result<(), ImageError> {
    unless_missing(fs::remove_file(path)).map_err(|e| ImageError::file("remove", path, e))
}

fn unless_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Write a file that is on the disk when this returns.
pub(super) fn write_synced(path: &Utf8Path, bytes: &[u8]) -> Result<(), ImageError> {
    let write = || {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(|e| ImageError::file("write", path, e))
}

/// Write a file so that a reader, even one without a lock, gets all of the old text or all of the new.
pub(crate) fn write_whole(path: &Utf8Path, text: &str) -> Result<(), ImageError> {
    let directory = path.parent().expect("a file stands in a directory");
    make_dir(directory)?;
    let write = || {
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(text.as_bytes())?;
        file.persist(path).map_err(|e| e.error)
    };
    write().map(drop).map_err(|e| ImageError::file("write", path, e))
}

/// The paths of what a directory holds; none when there is no such directory.
pub(super) fn entries(dir: &Utf8Path) -> Result<Vec<camino::Utf8PathBuf>, ImageError> {
    let fail = |e| ImageError::file("list", dir, e);
    match dir.read_dir_utf8() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(fail(error)),
        Ok(found) => found.map(|entry| Ok(entry.map_err(fail)?.into_path())).collect(),
    }
}
