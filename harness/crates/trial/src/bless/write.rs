//! Several files written together.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;

use camino::Utf8PathBuf;
use tempfile::NamedTempFile;

/// Write all of these files or none: each is complete beside its place before the first takes its place.
///
/// # Errors
/// When the file system refuses. After an error of the last step, a rename in a directory that was
/// just written to, those before it stay.
pub(super) fn write_all<'f>(files: impl Iterator<Item = (Utf8PathBuf, &'f [u8])>) -> io::Result<()> {
    let mut staged = Vec::new();
    for (path, bytes) in files {
        staged.push((stage(&path, bytes)?, path));
    }
    for (file, path) in staged {
        file.persist(&path).map_err(|error| error.error)?;
    }
    Ok(())
}

/// A file beside `path`, with the content that is to be there. Its name is hidden, so that a run that is killed now
/// leaves nothing that would be taken for a golden.
fn stage(path: &Utf8PathBuf, bytes: &[u8]) -> io::Result<NamedTempFile> {
    if path.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, format!("`{path}` is a directory")));
    }
    let dir = path.parent().ok_or_else(|| io::Error::other(format!("`{path}` is not a file")))?;
    let mut file = tempfile::Builder::new().prefix(".goldtrace-").suffix(".tmp").tempfile_in(dir)?;
    file.write_all(bytes)?;
    // A temporary file is for its owner's eyes only; a golden is a source file.
    file.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
    file.as_file().sync_all()?;
    Ok(file)
}
