//! A directory of modules' source, as it was when it was copied.
//!
//! The user may edit it while a build waits or runs: what is built is a copy, and the digest in the product's key is
//! that of the copy.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::OFlags;

use crate::digest::{Digest, bytes_digest};
use crate::error::ImageError;
use crate::store::make_dir;

/// Endings of files of what a build makes: they are not source, and none of them counts.
const PRODUCTS: [&str; 9] = [".o", ".ko", ".mod", ".mod.c", ".cmd", ".order", ".symvers", ".i", ".a"];
/// How many files a directory of modules may have: more are a mistake, such as `/`.
const FILES_MAX: usize = 5000;

/// A copy of a directory of source, and a digest of all that is in it.
pub(super) struct SourceDir {
    name: String,
    copy: Utf8PathBuf,
    digest: Digest,
}

impl SourceDir {
    /// Copy the directory `dir` into `copy`, which is made, with its parents.
    ///
    /// What a build does not read is left out: hidden files, what a build has left, links that lead nowhere or back to
    /// where they are, and what is neither file nor directory.
    ///
    /// # Errors
    /// When a file cannot be read or copied, or there are too many.
    pub(super) fn copy_of(dir: &Utf8Path, copy: &Utf8Path) -> Result<SourceDir, ImageError> {
        SourceDir::copy_up_to(FILES_MAX, dir, copy)
    }

    fn copy_up_to(files_max: usize, dir: &Utf8Path, copy: &Utf8Path) -> Result<SourceDir, ImageError> {
        make_dir(copy)?;
        let root = dir.as_std_path();
        let mut walk = Walk { files_max, dir: dir.to_owned(), files: Vec::new() };
        let metadata = fs::metadata(root).map_err(|e| file_error("look at", root, e))?;
        walk.collect(root, Path::new(""), &[identity(&metadata)])?;
        walk.files.sort();
        let mut list = Vec::new();
        for file in &walk.files {
            let Some((digest, mode)) = copy_file(&root.join(file), &copy.as_std_path().join(file))? else {
                continue;
            };
            let kind = if mode & 0o111 == 0 { "file" } else { "program" };
            list.extend(format!("{} {kind} ", digest.as_str()).as_bytes());
            list.extend(file.as_os_str().as_bytes());
            list.push(b'\n');
        }
        let name = dir.file_name().unwrap_or("root").to_owned();
        Ok(SourceDir { name, copy: copy.to_owned(), digest: bytes_digest(&list) })
    }

    /// The directory's name, for people.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The digest of its files' names and contents, and of which of them are programs.
    pub(super) fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Copy it once more, into `to`, which is made, with its parents.
    ///
    /// # Errors
    /// When the file system refuses.
    pub(super) fn copy_to(&self, to: &Utf8Path) -> Result<(), ImageError> {
        SourceDir::copy_of(&self.copy, to).map(drop)
    }
}

/// Finds the files of a directory.
struct Walk {
    files_max: usize,
    dir: Utf8PathBuf,
    /// Relative to the directory.
    files: Vec<PathBuf>,
}

impl Walk {
    /// Find those in the directory `below` the root, which lies in the directories `above`.
    fn collect(&mut self, root: &Path, below: &Path, above: &[(u64, u64)]) -> Result<(), ImageError> {
        let directory = root.join(below);
        for entry in fs::read_dir(&directory).map_err(|e| file_error("list", &directory, e))? {
            let entry = entry.map_err(|e| file_error("list", &directory, e))?;
            let name = entry.file_name();
            // A link that leads nowhere has none.
            let Ok(metadata) = fs::metadata(entry.path()) else { continue };
            if is_left_out(&name) {
                continue;
            }
            if metadata.is_dir() {
                let own = identity(&metadata);
                if !above.contains(&own) {
                    self.collect(root, &below.join(name), &[above, &[own]].concat())?;
                }
            } else if metadata.is_file() {
                self.files.push(below.join(name));
            }
            if self.files.len() > self.files_max {
                return Err(ImageError::TooManyFiles { directory: self.dir.clone(), limit: self.files_max });
            }
        }
        Ok(())
    }
}

fn is_left_out(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.starts_with(b".") || PRODUCTS.iter().any(|ending| name.ends_with(ending.as_bytes()))
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Copy a file with its permissions; the digest of what was copied, and its mode. `None` when it is a file no longer.
fn copy_file(from: &Path, to: &Path) -> Result<Option<(Digest, u32)>, ImageError> {
    // A FIFO that has taken the file's place would wait for a writer.
    let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).expect("a small flag");
    let read = || -> io::Result<Option<(Vec<u8>, fs::Permissions)>> {
        let mut file = OpenOptions::new().read(true).custom_flags(nonblocking).open(from)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(Some((bytes, metadata.permissions())))
    };
    let Some((bytes, permissions)) = read().map_err(|e| file_error("read", from, e))? else {
        return Ok(None);
    };
    let write = || -> io::Result<()> {
        fs::create_dir_all(to.parent().expect("below the copy"))?;
        let mut file = File::create(to)?;
        file.write_all(&bytes)?;
        file.set_permissions(fs::Permissions::from_mode(permissions.mode() & 0o777 | 0o600))
    };
    write().map_err(|e| file_error("write", to, e))?;
    Ok(Some((bytes_digest(&bytes), permissions.mode())))
}

fn file_error(verb: &'static str, path: &Path, error: io::Error) -> ImageError {
    ImageError::file(verb, path.to_string_lossy().into_owned(), error)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    /// A directory of source, and beside it room for copies.
    struct Module {
        _dir: tempfile::TempDir,
        root: Utf8PathBuf,
    }

    impl Module {
        fn new() -> Module {
            let dir = tempfile::tempdir().expect("a directory");
            let root = Utf8Path::from_path(dir.path()).expect("UTF-8").to_owned();
            let module = Module { _dir: dir, root };
            module.write("Kbuild", "obj-m += a.o\n");
            module.write("include/a.h", "1");
            module.write("a.c", "1");
            module
        }

        fn dir(&self) -> Utf8PathBuf {
            self.root.join("module")
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.dir().join(name);
            fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            fs::write(path, text).expect("written");
        }

        fn copy(&self) -> SourceDir {
            let copy = self.root.join("copy");
            let _ = fs::remove_dir_all(&copy);
            SourceDir::copy_of(&self.dir(), &copy).expect("copied")
        }

        fn digest(&self) -> Digest {
            self.copy().digest().clone()
        }
    }

    #[test]
    fn build_products_do_not_count_and_sources_do() {
        let module = Module::new();
        let first = module.digest();
        for left in ["a.o", ".a.o.cmd", "a.mod.c", "Module.symvers", "a.ko", ".git/HEAD"] {
            module.write(left, "x");
        }
        assert_eq!(module.digest(), first);
        module.write("include/a.h", "2");
        let second = module.digest();
        assert_ne!(second, first);
        let kbuild = module.dir().join("Kbuild");
        fs::set_permissions(kbuild, fs::Permissions::from_mode(0o755)).expect("set");
        assert_ne!(module.digest(), second);
    }

    #[test]
    fn copy_is_what_the_digest_says_whatever_happens_to_the_directory() {
        let module = Module::new();
        let copied = module.copy();
        module.write("a.c", "another text");
        let to = module.root.join("build/deep");
        copied.copy_to(&to).expect("copied");
        assert_eq!(fs::read_to_string(to.join("a.c")).expect("there"), "1");
        let again = SourceDir::copy_of(&to, &module.root.join("again")).expect("copied");
        assert_eq!(again.digest(), copied.digest());
    }

    #[test]
    fn what_no_build_reads_does_no_harm() {
        let module = Module::new();
        let first = module.digest();
        let dir = module.dir();
        symlink("/nowhere", dir.join("dangling")).expect("linked");
        symlink("..", dir.join("include/back")).expect("linked");
        symlink("myself", dir.join("myself")).expect("linked");
        mknodat(CWD, dir.join("fifo").as_std_path(), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .expect("made");
        std::os::unix::net::UnixListener::bind(dir.join("socket")).expect("bound");
        assert_eq!(module.digest(), first);
    }

    #[test]
    fn fifo_in_the_place_of_a_file_is_not_waited_for() {
        let module = Module::new();
        let fifo = module.root.join("fifo");
        mknodat(CWD, fifo.as_std_path(), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("made");
        let copied = copy_file(fifo.as_std_path(), module.root.join("to").as_std_path()).expect("looked at");
        assert!(copied.is_none());
    }

    #[test]
    fn names_are_bytes() {
        let module = Module::new();
        let first = module.digest();
        let name = OsStr::from_bytes(b"caf\xe9.h");
        fs::write(module.dir().as_std_path().join(name), "x").expect("written");
        let copied = module.copy();
        assert_ne!(*copied.digest(), first);
        assert!(module.root.join("copy").as_std_path().join(name).exists());
    }

    #[test]
    fn links_to_sources_are_followed() {
        let module = Module::new();
        fs::create_dir(module.root.join("common")).expect("made");
        fs::write(module.root.join("common/b.c"), "b").expect("written");
        symlink("../common", module.dir().join("common")).expect("linked");
        symlink("../common/b.c", module.dir().join("b.c")).expect("linked");
        module.copy();
        for copied in ["common/b.c", "b.c"] {
            assert_eq!(fs::read_to_string(module.root.join("copy").join(copied)).expect("there"), "b");
        }
    }

    #[test]
    fn directory_with_too_many_files_is_refused() {
        let module = Module::new();
        let copy = module.root.join("copy");
        let error = SourceDir::copy_up_to(2, &module.dir(), &copy).map(drop).expect_err("refused");
        assert_eq!(
            error.to_string(),
            format!("`{}` has more than 2 files: name the module's own directory", module.dir())
        );
        assert!(SourceDir::copy_up_to(3, &module.dir(), &copy).is_ok());
    }
}
