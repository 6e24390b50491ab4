//! QEMU's program on the host.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use guest::Guest;

/// A program that is no longer than this, in bytes, may be a script that starts the real one.
const SCRIPT_MAX: u64 = 1 << 16;

/// Where the guest's QEMU is.
///
/// # Errors
/// When it is not installed.
pub(super) fn find(guest: &Guest) -> io::Result<PathBuf> {
    let (binary, package) = (&guest.qemu.binary, &guest.qemu.package);
    which::which(binary).map_err(|_| {
        io::Error::new(
            io::ErrorKind::NotFound,
            format!("program {binary} not found: install the package {package} (`ci/bootstrap` does)"),
        )
    })
}

/// What changes when the guest's QEMU is replaced by another: path, size and time of its program, and, where that is a
/// script, of the programs that the script names.
///
/// # Errors
/// When it is not installed, or cannot be looked at.
pub fn identity(guest: &Guest) -> io::Result<String> {
    let program = find(guest)?;
    let mut text = describe(&program)?;
    if fs::metadata(&program)?.len() <= SCRIPT_MAX {
        let script = fs::read(&program)?;
        let script = String::from_utf8_lossy(&script);
        let words = script.split(|c: char| c.is_whitespace() || "\"'=;".contains(c));
        for named in words.map(Path::new).filter(|path| path.is_absolute() && path.is_file()) {
            text += &describe(named)?;
        }
    }
    Ok(text)
}

fn describe(path: &Path) -> io::Result<String> {
    let found = fs::metadata(path)?;
    let (seconds, nanoseconds) = (found.mtime(), found.mtime_nsec());
    Ok(format!("{} {} bytes {seconds}.{nanoseconds:09}\n", path.display(), found.len()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use guest::Project;

    #[test]
    fn program_behind_a_script_counts() {
        let dir = tempfile::tempdir().expect("a directory");
        let (script, program) = (dir.path().join("qemu"), dir.path().join("real"));
        fs::write(&program, "1").expect("written");
        fs::write(&script, format!("#!/bin/sh\nexec \"{}\" \"$@\"\n", program.display())).expect("written");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("set");
        let root =
            camino::Utf8Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).expect("the workspace");
        let guests = guest::load_all(&Project::at(root).expect("a project")).expect("valid guests");
        let mut guest = guests.into_iter().next().expect("a guest");
        guest.qemu.binary = script.to_str().expect("UTF-8").to_owned();
        let before = identity(&guest).expect("there");
        assert!(before.contains("/real 1 bytes"), "{before}");
        assert_eq!(identity(&guest).expect("there"), before);
        fs::write(&program, "other").expect("written");
        assert_ne!(identity(&guest).expect("there"), before);
        guest.qemu.binary = "/nowhere/qemu".to_owned();
        assert!(identity(&guest).expect_err("missing").to_string().contains("install the package"));
    }
}
