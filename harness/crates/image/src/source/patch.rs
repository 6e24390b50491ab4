//! Patches to the kernel's source.

use std::fs;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use xshell::{Shell, cmd};

use super::diff;
use crate::digest::text_digest;
use crate::error::ImageError;
use crate::store::BuildDir;
use vm::process::{LoggedCommand, run_logged};

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

    /// The part that touches files which `wanted` wants, by their paths below the source's root;
    /// `None` when there is no such part.
    pub(crate) fn part(&self, wanted: impl Fn(&Utf8Path) -> bool) -> Option<Patch> {
        let parts = diff::parts(&self.text);
        let parts = parts.iter().filter(|part| part.paths.iter().any(|path| wanted(path)));
        let text: String = parts.map(|part| part.text).collect();
        (!text.is_empty()).then(|| Patch { path: self.path.clone(), text })
    }

    /// Apply it to `tree`, without fuzz: a patch that has to be guessed at is not the one meant.
    ///
    /// # Errors
    /// When it does not apply, with what patch(1) says.
    pub(crate) fn apply(
        &self,
        sh: &Shell,
        build_dir: &BuildDir<'_>,
        tree: &Utf8Path,
    ) -> Result<(), ImageError> {
        let BuildDir { log, label, progress, scratch, .. } = build_dir;
        progress.line(label, &format!("applying {}", self.path));
        let file = scratch.join("change.patch");
        fs::write(&file, &self.text).map_err(|e| ImageError::file("write", &file, e))?;
        let command = cmd!(sh, "patch --batch --forward --fuzz=0 -p1 --directory {tree} --input {file}");
        run_logged(LoggedCommand { command, log, timeout: Duration::from_secs(60) }, |_| ())
            .map_err(|error| ImageError::Other(format!("patch `{}` does not apply: {error}", self.path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_for_a_folder() {
        let part = |name: &str| format!("--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-a\n+b\n");
        let text = ["kernel/a.c", "tools/perf/b.c", "tools/perfection.c"].map(part).concat();
        let patch = Patch { path: "p".into(), text };
        let perf = patch.part(|path| path.starts_with("tools/perf")).expect("one file");
        assert_eq!(perf.text, part("tools/perf/b.c"));
        assert!(patch.part(|path| path.starts_with("mm")).is_none());
        assert_ne!(perf.sha256(), patch.sha256());
    }
}
