//! Patches to the kernel's source.

use std::fs;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use vm::process::LoggedError;
use xshell::cmd;

use super::diff;
use crate::debian::Package;
use crate::digest::text_digest;
use crate::error::ImageError;
use crate::store::BuildDir;

const TIMEOUT: Duration = Duration::from_secs(60);
/// How many lines of hunks that do not apply are shown; the log has what patch(1) printed.
const HUNK_LINES: usize = 40;

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
            return Err(ImageError::NotAPatch { path: path.to_owned() });
        }
        Ok(Patch { path: path.to_owned(), text })
    }

    /// The digest of its text.
    pub(crate) fn sha256(&self) -> String {
        text_digest(&self.text).as_str().to_owned()
    }

    /// The part that touches files which `wanted` accepts, by their paths below the source's root;
    /// `None` when there is no such part.
    pub(crate) fn part(&self, wanted: impl Fn(&Utf8Path) -> bool) -> Option<Patch> {
        let parts = diff::parts(&self.text);
        let parts = parts.iter().filter(|part| part.paths.iter().any(|path| wanted(path)));
        let text: String = parts.map(|part| part.text).collect();
        (!text.is_empty()).then(|| Patch { path: self.path.clone(), text })
    }

    /// Apply it to `tree`, the source out of `package`, without fuzz: a patch that has to be guessed at
    /// is not the one meant.
    ///
    /// # Errors
    /// [`ImageError::PatchDoesNotApply`] with what patch(1) prints and the hunks that it rejects.
    pub(crate) fn apply(
        &self,
        build_dir: &BuildDir<'_>,
        package: &Package<'_>,
        tree: &Utf8Path,
    ) -> Result<(), ImageError> {
        let BuildDir { label, progress, sh, .. } = build_dir;
        progress.line(label, &format!("applying {}", self.path));
        let (file, rejects) = (build_dir.scratch.join("change.patch"), build_dir.scratch.join("rejects"));
        fs::write(&file, &self.text).map_err(|e| ImageError::file("write", &file, e))?;
        let options = ["--batch", "--forward", "--fuzz=0", "-p1"];
        let command =
            cmd!(sh, "patch {options...} --directory {tree} --input {file} --reject-file {rejects}");
        match build_dir.run(command, TIMEOUT) {
            Err(ImageError::Command(LoggedError::Failed { tail, .. })) => {
                Err(ImageError::PatchDoesNotApply {
                    patch: self.path.clone(),
                    source_package: package.to_string(),
                    details: details(&tail, &fs::read_to_string(&rejects).unwrap_or_default()),
                })
            }
            other => other,
        }
    }
}

/// What patch(1) printed of failures, and the hunks that it rejected.
fn details(printed: &str, rejects: &str) -> String {
    let failures = printed.lines().map(str::trim).filter(|line| {
        let about = ["FAILED at", "can't find file", "malformed", "Reversed", "ignored", "|--- "];
        about.iter().any(|part| line.contains(part))
    });
    let mut lines: Vec<&str> = failures.collect();
    if lines.is_empty() {
        lines = printed.lines().map(str::trim).collect();
    }
    let hunks: Vec<&str> = rejects.lines().collect();
    lines.extend(hunks.iter().take(HUNK_LINES));
    if hunks.len() > HUNK_LINES {
        lines.push("...");
    }
    lines.join("\n")
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_of_a_directory_is_taken() {
        let part = |name: &str| format!("--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-a\n+b\n");
        let text = ["kernel/a.c", "tools/perf/b.c", "tools/perfection.c"].map(part).concat();
        let patch = Patch { path: "p".into(), text };
        let perf = patch.part(|path| path.starts_with("tools/perf")).expect("one file");
        assert_eq!(perf.text, part("tools/perf/b.c"));
        assert!(patch.part(|path| path.starts_with("mm")).is_none());
        assert_ne!(perf.sha256(), patch.sha256());
    }
}
