//! Unified diffs, taken apart file by file.
//!
//! What the hunks mean is patch(1)'s matter; this module only finds where each file's part begins
//! and which paths it names. A mail's head, and the lines of a hunk, may be in any encoding: they are bytes here.

use camino::{Utf8Path, Utf8PathBuf};

/// A diff's part for one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilePart<'d> {
    /// The file's paths without their first component (`a/`, `b/`): two when it is renamed.
    pub(crate) paths: Vec<Utf8PathBuf>,
    /// Its lines, with the text before them.
    pub(crate) text: &'d [u8],
}

/// All parts, in order. Together they are the whole text.
pub(crate) fn parts(diff: &[u8]) -> Vec<FilePart<'_>> {
    let mut parts: Vec<FilePart<'_>> = Vec::new();
    let mut start = 0;
    let mut paths: Vec<Utf8PathBuf> = Vec::new();
    // Lines of the old and of the new file that the hunk has still to come: in a hunk, a removed
    // line `-- x` looks like the head of another file.
    let mut hunk = (0_usize, 0_usize);
    let mut hunks_seen = false;
    let mut at = 0;
    for line in diff.split_inclusive(|byte| *byte == b'\n') {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches(['\n', '\r']);
        if hunk != (0, 0) {
            match text.as_bytes().first() {
                Some(b'-') => hunk.0 = hunk.0.saturating_sub(1),
                Some(b'+') => hunk.1 = hunk.1.saturating_sub(1),
                Some(b'\\') => {}
                _ => hunk = (hunk.0.saturating_sub(1), hunk.1.saturating_sub(1)),
            }
        } else {
            let git = text.strip_prefix("diff --git ");
            if (git.is_some() && !paths.is_empty()) || (text.starts_with("--- ") && hunks_seen) {
                parts.push(FilePart { paths: std::mem::take(&mut paths), text: &diff[start..at] });
                (start, hunks_seen) = (at, false);
            }
            if let Some(lengths) = text.strip_prefix("@@ -").and_then(hunk_lengths) {
                (hunk, hunks_seen) = (lengths, true);
            } else if let Some((old, new)) = git.and_then(|names| names.split_once(" b/")) {
                add(&mut paths, Some(old));
                add(&mut paths, Some(&format!("b/{new}")));
            } else {
                add(&mut paths, text.strip_prefix("--- ").or_else(|| text.strip_prefix("+++ ")));
            }
        }
        at += line.len();
    }
    if start < at {
        parts.push(FilePart { paths, text: &diff[start..] });
    }
    parts
}

/// `a/dir/file<TAB>time` as `dir/file`. `/dev/null` names no file.
fn add(paths: &mut Vec<Utf8PathBuf>, name: Option<&str>) {
    let Some(name) = name.map(|name| name.split('\t').next().unwrap_or(name)) else { return };
    if name == "/dev/null" {
        return;
    }
    if let Some((_, path)) = name.split_once('/') {
        if !paths.iter().any(|known| known == Utf8Path::new(path)) {
            paths.push(path.into());
        }
    }
}

/// `3,7 +3,8 @@` as (7, 8).
fn hunk_lengths(text: &str) -> Option<(usize, usize)> {
    let (old, rest) = text.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let length = |range: &str| range.split_once(',').map_or(Some(1), |(_, length)| length.parse().ok());
    Some((length(old)?, length(new)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(diff: &str) -> Vec<String> {
        let parts = parts(diff.as_bytes());
        assert_eq!(parts.iter().flat_map(|part| part.text).copied().collect::<Vec<u8>>(), diff.as_bytes());
        parts.iter().map(|part| part.paths.iter().map(|p| p.as_str()).collect::<Vec<_>>().join(" ")).collect()
    }

    const GIT: &str = "\
From 0123 Mon Sep 17 00:00:00 2001
Subject: two files
---
 a.c | 2 +-

diff --git a/kernel/a.c b/kernel/a.c
index 1..2 100644
--- a/kernel/a.c
+++ b/kernel/a.c
@@ -1,3 +1,3 @@ f()
 one
--- x
+++ y
 three
@@ -9 +9 @@
-a
+b
diff --git a/tools/perf/old.c b/tools/perf/new.c
similarity index 100%
rename from tools/perf/old.c
rename to tools/perf/new.c
diff --git a/tools/perf/b.c b/tools/perf/b.c
new file mode 100644
--- /dev/null
+++ b/tools/perf/b.c
@@ -0,0 +1 @@
+int b;
\\ No newline at end of file
--\u{20}
2.39
";

    #[test]
    fn files_of_a_git_diff() {
        assert_eq!(paths(GIT), ["kernel/a.c", "tools/perf/old.c tools/perf/new.c", "tools/perf/b.c"]);
    }

    #[test]
    fn files_of_a_plain_diff() {
        let diff = "\
diff -u -r linux/a.c linux.new/a.c
--- linux/a.c\t2026-01-01 00:00:00
+++ linux.new/a.c\t2026-01-02 00:00:00
@@ -1 +1 @@
--- a/b
+x
--- linux/b.c\t2026-01-01 00:00:00
+++ linux.new/b.c\t2026-01-02 00:00:00
@@ -1,2 +1 @@
 y
-x
";
        assert_eq!(paths(diff), ["a.c", "b.c"]);
    }

    #[test]
    fn mail_in_another_encoding_is_a_diff() {
        let mail = [b"From: Andr\xe9\n".as_slice(), GIT.as_bytes()].concat();
        let parts = parts(&mail);
        assert_eq!(parts.len(), 3);
        assert!(parts[0].text.starts_with(b"From: Andr\xe9\n"));
    }

    #[test]
    fn text_without_a_file_has_no_paths() {
        assert_eq!(paths("words\n--- \n"), [""]);
        assert_eq!(paths(""), [""; 0]);
    }
}
