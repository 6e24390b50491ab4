//! Patches to the kernel's source.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use vm::process::LoggedError;
use xshell::cmd;

use super::diff;
use crate::debian::Package;
use crate::digest::bytes_digest;
use crate::error::ImageError;
use crate::store::BuildDir;

const TIMEOUT: Duration = Duration::from_secs(60);
/// How many lines of hunks that do not apply are shown; the log has what patch(1) printed.
const HUNK_LINES: usize = 40;

/// A unified diff against the root of the kernel's source tree.
#[derive(Debug, Clone)]
pub struct Patch {
    path: Utf8PathBuf,
    /// Its bytes: a mail's head may be in any encoding.
    text: Vec<u8>,
}

impl Patch {
    /// Read a patch.
    ///
    /// # Errors
    /// When the file cannot be read, no line of it names a file of a diff, or one is outside of the source.
    pub fn load(path: &Utf8Path) -> Result<Patch, ImageError> {
        let text = fs::read(path).map_err(|e| ImageError::file("read patch", path, e))?;
        let patch = Patch { path: path.to_owned(), text };
        // A file that is only renamed, or gets another mode, has no `+++ ` line.
        if patch.touched().is_empty() {
            return Err(ImageError::NotAPatch { path: path.to_owned() });
        }
        let is_below = |file: &Utf8PathBuf| file.components().all(|c| matches!(c, Utf8Component::Normal(_)));
        if let Some(file) = patch.touched().into_iter().find(|file| !is_below(file)) {
            return Err(ImageError::OutsideSource { path: path.to_owned(), file });
        }
        Ok(patch)
    }

    /// The file that it was read from.
    pub(crate) fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// The digest of its text.
    pub(crate) fn sha256(&self) -> String {
        bytes_digest(&self.text).as_str().to_owned()
    }

    /// The files that it touches, below the source's root.
    pub(crate) fn touched(&self) -> BTreeSet<Utf8PathBuf> {
        diff::parts(&self.text).into_iter().flat_map(|part| part.paths).collect()
    }

    /// The part that touches files which `wanted` accepts, by their paths below the source's root;
    /// `None` when there is no such part.
    pub(crate) fn part(&self, wanted: impl Fn(&Utf8Path) -> bool) -> Option<Patch> {
        let parts = diff::parts(&self.text);
        let parts = parts.iter().filter(|part| part.paths.iter().any(|path| wanted(path)));
        let text: Vec<u8> = parts.flat_map(|part| part.text).copied().collect();
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
                    details: details(
                        &tail,
                        &String::from_utf8_lossy(&fs::read(&rejects).unwrap_or_default()),
                    ),
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
    use crate::debian::Candidate;
    use crate::progress::Silent;
    use crate::store::Recipe;
    use crate::store::testing::store;

    #[test]
    fn part_of_a_directory_is_taken() {
        let part = |name: &str| format!("--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-a\n+b\n");
        let text = ["kernel/a.c", "tools/perf/b.c", "tools/perfection.c"].map(part).concat();
        let patch = Patch { path: "p".into(), text: text.into_bytes() };
        let perf = patch.part(|path| path.starts_with("tools/perf")).expect("one file");
        assert_eq!(perf.text, part("tools/perf/b.c").into_bytes());
        assert!(patch.part(|path| path.starts_with("mm")).is_none());
        assert_ne!(perf.sha256(), patch.sha256());
    }

    const RENAME: &str = "\
diff --git a/samples/a.c b/samples/b.c
similarity index 100%
rename from samples/a.c
rename to samples/b.c
";

    fn load(text: &[u8]) -> Result<Patch, ImageError> {
        let dir = tempfile::tempdir().expect("a directory");
        let path = Utf8Path::from_path(dir.path()).expect("UTF-8").join("a.patch");
        fs::write(&path, text).expect("written");
        Patch::load(&path)
    }

    #[test]
    fn rename_and_mode_alone_are_patches_and_words_are_not() {
        let touched = |text: &str| load(text.as_bytes()).map(|patch| Vec::from_iter(patch.touched()));
        assert_eq!(touched(RENAME).expect("a patch"), ["samples/a.c", "samples/b.c"]);
        let mode = "diff --git a/x/a.sh b/x/a.sh\nold mode 100644\nnew mode 100755\n";
        assert_eq!(touched(mode).expect("a patch"), ["x/a.sh"]);
        assert!(matches!(touched("words\n---\n+++ \n"), Err(ImageError::NotAPatch { .. })));
    }

    #[test]
    fn file_outside_of_the_source_is_refused() {
        for file in ["../x.c", "kernel/../../x.c", "/etc/x.c"] {
            let error = load(format!("--- a/{file}\n+++ b/{file}\n@@ -1 +1 @@\n-a\n+b\n").as_bytes());
            let error = error.expect_err("refused");
            assert!(
                matches!(&error, ImageError::OutsideSource { file: named, .. } if named == file),
                "{error}"
            );
        }
    }

    /// Apply it to a tree with these files; the files of the tree afterwards.
    fn applied(patch: &Patch, files: &[(&str, &str)]) -> Result<Vec<(String, String)>, ImageError> {
        let (_dir, store) = store();
        let tree = store.root().join("tree");
        for (name, text) in files {
            let path = tree.join(name);
            fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            fs::write(path, text).expect("written");
        }
        let recipe = Recipe::new("test", "patch");
        let candidate = Candidate::named("linux-source", "7.2");
        store.product(&recipe, &Silent, |build_dir| {
            let package = Package { suite: "test", archs: &[], candidate: &candidate };
            patch.apply(build_dir, &package, &tree)
        })?;
        let found =
            fs::read_dir(tree.join("samples")).expect("there").map(|entry| entry.expect("readable").path());
        let text =
            |path: &std::path::Path| String::from_utf8_lossy(&fs::read(path).expect("read")).into_owned();
        let name = |path: &std::path::Path| path.file_name().expect("a name").to_string_lossy().into_owned();
        Ok(found.map(|path| (name(&path), text(&path))).collect())
    }

    #[test]
    fn rename_is_applied() {
        let patch = load(RENAME.as_bytes()).expect("a patch");
        let after = applied(&patch, &[("samples/a.c", "int a;\n")]).expect("applies");
        assert_eq!(after, [("b.c".to_owned(), "int a;\n".to_owned())]);
        let error = applied(&patch, &[("samples/z.c", "")]).expect_err("no such file");
        assert!(matches!(error, ImageError::PatchDoesNotApply { .. }), "{error}");
    }

    #[test]
    fn mail_in_another_encoding_is_applied() {
        let hunk = b"--- a/samples/a.c\n+++ b/samples/a.c\n@@ -1 +1 @@\n-int a;\n+int b; /* \xe9 */\n";
        let mail = [b"From: Andr\xe9 <a@b>\nSubject: x\n\n---\n".as_slice(), hunk].concat();
        let after = applied(&load(&mail).expect("a patch"), &[("samples/a.c", "int a;\n")]).expect("applies");
        assert_eq!(after, [("a.c".to_owned(), "int b; /* \u{fffd} */\n".to_owned())]);
    }
}
