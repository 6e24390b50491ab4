//! A directory of modules' source, as it is now.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};

use crate::digest::{Digest, file_digest, text_digest};
use crate::error::ImageError;
use crate::store::make_dir;

/// Endings of files of what a build makes: they are not source, and none of them counts.
const PRODUCTS: [&str; 9] = [".o", ".ko", ".mod", ".mod.c", ".cmd", ".order", ".symvers", ".i", ".a"];
/// How many files a directory of modules may have: more are a mistake, such as `/`.
const FILES_MAX: usize = 5000;

/// A directory of source: its files and a digest of all of them.
pub(super) struct SourceDir {
    dir: Utf8PathBuf,
    files: Vec<Utf8PathBuf>,
    digest: Digest,
}

impl SourceDir {
    /// Read it. Hidden files, and what a build has left in it, do not count.
    ///
    /// # Errors
    /// When a file cannot be read, or there are too many.
    pub(super) fn read(dir: &Utf8Path) -> Result<SourceDir, ImageError> {
        let mut files = Vec::new();
        collect(dir, Utf8Path::new(""), &mut files)?;
        files.sort();
        let mut text = String::new();
        for file in &files {
            let path = dir.join(file);
            let digest = file_digest(&path).map_err(|e| ImageError::file("read", path, e))?;
            text.push_str(&format!("{} {file}\n", digest.as_str()));
        }
        Ok(SourceDir { dir: dir.to_owned(), files, digest: text_digest(&text) })
    }

    /// Its name, for people.
    pub(super) fn name(&self) -> &str {
        self.dir.file_name().unwrap_or("root")
    }

    /// The digest of its files' names and contents.
    pub(super) fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Copy its files into `to`, which is made, with its parents.
    ///
    /// # Errors
    /// When the file system refuses.
    pub(super) fn copy(&self, to: &Utf8Path) -> Result<(), ImageError> {
        make_dir(to)?;
        for file in &self.files {
            let target = to.join(file);
            make_dir(target.parent().expect("below the directory"))?;
            let from = self.dir.join(file);
            fs::copy(&from, target).map_err(|e| ImageError::file("copy", from, e))?;
        }
        Ok(())
    }
}

fn collect(dir: &Utf8Path, below: &Utf8Path, files: &mut Vec<Utf8PathBuf>) -> Result<(), ImageError> {
    let directory = dir.join(below);
    for entry in directory.read_dir_utf8().map_err(|e| ImageError::file("list", &directory, e))? {
        let entry = entry.map_err(|e| ImageError::file("list", &directory, e))?;
        let name = entry.file_name();
        if name.starts_with('.') || PRODUCTS.iter().any(|ending| name.ends_with(ending)) {
            continue;
        }
        if entry.path().is_dir() {
            collect(dir, &below.join(name), files)?;
        } else {
            files.push(below.join(name));
        }
        if files.len() > FILES_MAX {
            return Err(ImageError::TooManyFiles { directory: dir.to_owned(), limit: FILES_MAX });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_products_do_not_count_and_sources_do() {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = Utf8Path::from_path(dir.path()).expect("UTF-8");
        let write = |name: &str, text: &str| {
            let path = dir.join(name);
            fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            fs::write(path, text).expect("written");
        };
        write("Kbuild", "obj-m += a.o\n");
        write("include/a.h", "1");
        write("a.c", "1");
        let digest = || SourceDir::read(dir).expect("read").digest().clone();
        let first = digest();
        for left in ["a.o", ".a.o.cmd", "a.mod.c", "Module.symvers", "a.ko", ".git/HEAD"] {
            write(left, "x");
        }
        assert_eq!(digest(), first);
        write("include/a.h", "2");
        assert_ne!(digest(), first);
        let to = dir.join(".copy");
        SourceDir::read(dir).expect("read").copy(&to).expect("copied");
        assert_eq!(SourceDir::read(&to).expect("read").digest(), &digest());
    }
}
