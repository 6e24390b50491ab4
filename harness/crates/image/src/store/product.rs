//! A finished product and the manifest that shows whether it is whole.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use super::lock::{Held, hold};
use super::recipe::Recipe;
use crate::digest::file_digest;
use crate::error::ImageError;

/// A finished product.
#[derive(Debug, Clone)]
pub struct Product {
    /// The directory that holds its files. Nothing in it may be changed.
    pub dir: Utf8PathBuf,
    files: BTreeMap<Utf8PathBuf, FileEntry>,
    /// A lock on the directory, which keeps it from being swept.
    _in_use: Arc<File>,
}

/// What there is of a product.
pub(super) enum Found {
    /// It is there and whole.
    Whole(Product),
    /// It is there, and its files are not those of its manifest: the text says which.
    Damaged(String),
    /// It is not there.
    Missing,
}

impl Product {
    /// The product of `recipe` in the directory `dir`. It counts as used now.
    pub(super) fn find(dir: &Utf8Path, recipe: &Recipe) -> Result<Found, ImageError> {
        let directory = match File::open(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Missing),
            other => other.map_err(|e| ImageError::file("open", dir, e))?,
        };
        // Only who removes it has it for itself.
        if hold(&directory, dir, FlockOperation::NonBlockingLockShared)? != Held::Yes {
            return Ok(Found::Missing);
        }
        let path = dir.join(MANIFEST);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Found::Damaged("its manifest is missing".to_owned()));
            }
            other => other.map_err(|e| ImageError::file("read", path, e))?,
        };
        let damage = match serde_json::from_str::<ProductManifest>(&text) {
            Ok(manifest) if manifest.recipe == *recipe => match damage(dir, &manifest)? {
                None => {
                    // A cache that is somebody else's can be used, and its times not set.
                    let _ = directory.set_modified(SystemTime::now());
                    let product =
                        Product { dir: dir.to_owned(), files: manifest.files, _in_use: Arc::new(directory) };
                    return Ok(Found::Whole(product));
                }
                Some(damage) => damage,
            },
            Ok(_) => "its manifest is that of another recipe".to_owned(),
            Err(error) => format!("its manifest cannot be read: {error}"),
        };
        Ok(Found::Damaged(damage))
    }

    /// The SHA-256 of one of its files, as the manifest has it.
    ///
    /// # Errors
    /// When the product has no such file.
    pub fn sha256(&self, file: &str) -> Result<&str, ImageError> {
        let entry = self.files.get(Utf8Path::new(file));
        let lacks = || ImageError::Lacks { file: self.dir.clone(), what: file.to_owned() };
        Ok(&entry.ok_or_else(lacks)?.sha256)
    }

    /// Its identity: its directory's name, with the digest of its recipe.
    pub fn id(&self) -> &str {
        self.dir.file_name().unwrap_or_default()
    }

    /// The names of its files, relative to its directory, in order.
    pub fn files(&self) -> impl Iterator<Item = &Utf8Path> {
        self.files.keys().map(Utf8PathBuf::as_path)
    }
}

/// A file as the manifest has it; its size is in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileEntry {
    sha256: String,
    size: u64,
}

/// What is written beside a product's files.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ProductManifest {
    pub(super) recipe: Recipe,
    pub(super) files: BTreeMap<Utf8PathBuf, FileEntry>,
}

/// The manifest's file.
pub(super) const MANIFEST: &str = "manifest.json";

/// Why the files in `dir` are not those of the manifest; `None` when they are.
fn damage(dir: &Utf8Path, manifest: &ProductManifest) -> Result<Option<String>, ImageError> {
    for (file, entry) in &manifest.files {
        let path = dir.join(file);
        match file_digest(&path) {
            Ok(found) if found.as_str() == entry.sha256 => {}
            Ok(found) => {
                return Ok(Some(format!(
                    "the SHA-256 of {file} is {} and should be {}",
                    found.as_str(),
                    entry.sha256
                )));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Some(format!("{file} is missing")));
            }
            Err(error) => return Err(ImageError::file("read", path, error)),
        }
    }
    Ok(None)
}

/// Every file below `dir`.
pub(super) fn inventory(dir: &Utf8Path) -> Result<BTreeMap<Utf8PathBuf, FileEntry>, ImageError> {
    let mut files = BTreeMap::new();
    let mut directories = vec![dir.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in directory.read_dir_utf8().map_err(|e| ImageError::file("list", &directory, e))? {
            let entry = entry.map_err(|e| ImageError::file("list", &directory, e))?;
            let path = entry.path();
            let kind = entry.metadata().map_err(|e| ImageError::file("look at", path, e))?;
            if kind.is_dir() {
                directories.push(path.to_owned());
                continue;
            }
            let sha256 =
                file_digest(path).map_err(|e| ImageError::file("read", path, e))?.as_str().to_owned();
            let name = path.strip_prefix(dir).expect("found below it").to_owned();
            files.insert(name, FileEntry { sha256, size: kind.len() });
        }
    }
    Ok(files)
}
