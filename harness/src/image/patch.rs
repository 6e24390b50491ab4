//! Patches to the kernel's source.

use std::fs;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use xshell::{Shell, cmd};

use super::error::ImageError;
use super::store::Workshop;
use crate::digest::text_digest;
use crate::process::{Logged, run_logged};

/// A unified diff against the root of the kernel's source tree.
#[derive(Debug, Clone)]
pub struct Patch {
    path: Utf8PathBuf,
    text: String,
}

impl Patch {
    /// Read a patch.
    ///
    /// # Errors
    /// When the file cannot be read as text, or holds no diff.
    pub fn load(path: &Utf8Path) -> Result<Patch, ImageError> {
        let text = fs::read_to_string(path).map_err(|e| ImageError::file("read patch", path, e))?;
        if !text.lines().any(|line| line.starts_with("+++ ")) {
            return Err(ImageError::Other(format!(
                "`{path}` is no patch: it has no line that begins with `+++ ` (make one with `git diff` or `diff -u`)"
            )));
        }
        Ok(Patch { path: path.to_owned(), text })
    }

    /// The digest of its text.
    pub fn sha256(&self) -> String {
        text_digest(&self.text).as_str().to_owned()
    }

    /// Apply it to `tree`, without fuzz: a patch that has to be guessed at is not the one meant.
    ///
    /// # Errors
    /// When it does not apply, with what patch(1) says.
    pub(super) fn apply(
        &self,
        sh: &Shell,
        workshop: &Workshop<'_>,
        tree: &Utf8Path,
    ) -> Result<(), ImageError> {
        let Workshop { log, label, watch, scratch, .. } = workshop;
        watch.line(label, &format!("applying {}", self.path));
        let file = scratch.join("change.patch");
        fs::write(&file, &self.text).map_err(|e| ImageError::file("write", &file, e))?;
        let command = cmd!(sh, "patch --batch --forward --fuzz=0 -p1 --directory {tree} --input {file}");
        run_logged(Logged { command, log, limit: Duration::from_secs(60) }, |_| ())
            .map_err(|error| ImageError::Other(format!("patch `{}` does not apply: {error}", self.path)))
    }
}
