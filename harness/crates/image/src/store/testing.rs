//! A cache for tests, and a listener.

use std::fs;
use std::sync::Mutex;
use std::time::Duration;

use camino::Utf8Path;

use super::{BuildDir, Recipe, Store};
use crate::error::ImageError;
use crate::progress::ProgressSink;

/// An empty cache in a directory of its own.
pub(crate) fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().expect("a directory");
    let root = Utf8Path::from_path(dir.path()).expect("UTF-8").join("cache");
    let store = Store::open(&root).expect("opens");
    (dir, store)
}

/// A recipe.
pub(super) fn recipe() -> Recipe {
    Recipe::new("thing", "one").with("flag", "a")
}

/// Make its product: one file.
pub(super) fn write(build_dir: &BuildDir<'_>, text: &str) -> Result<(), ImageError> {
    fs::write(build_dir.out.join("file"), text).expect("written");
    Ok(())
}

/// Keeps notices.
#[derive(Debug, Default)]
pub(super) struct Notices {
    lines: Mutex<Vec<String>>,
}

impl Notices {
    /// All of them, one a line.
    pub(super) fn text(&self) -> String {
        self.lines.lock().expect("no panic").join("\n")
    }
}

impl ProgressSink for Notices {
    fn begin(&self, _: &str) {}
    fn line(&self, _: &str, _: &str) {}
    fn end(&self, _: &str, _: bool, _: Duration) {}
    fn notice(&self, text: &str) {
        self.lines.lock().expect("no panic").push(text.to_owned());
    }
}
