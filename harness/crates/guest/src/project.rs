//! The directory tree that goldtrace works in.

use std::ffi::OsStr;
use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};

/// A checkout of goldtrace: the directory that holds `guests/`, `cases/` and `images/`.
#[derive(Debug, Clone)]
pub struct Project {
    root: Utf8PathBuf,
}

/// The directory is not a project.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NoProject(String);

const MARKS: [&str; 3] = ["guests", "cases", "images"];

impl Project {
    /// The project in `root`.
    ///
    /// # Errors
    /// When one of its directories is missing.
    pub fn at(root: &Utf8Path) -> Result<Project, NoProject> {
        let root = root
            .canonicalize_utf8()
            .map_err(|e| NoProject(format!("failed to open project `{root}`: {e}")))?;
        match MARKS.iter().find(|mark| !root.join(mark).is_dir()) {
            None => Ok(Project { root }),
            Some(mark) => Err(NoProject(format!(
                "`{root}` is not a goldtrace project: it has no directory {mark}/ (a project has {})",
                MARKS.map(|m| format!("{m}/")).join(", ")
            ))),
        }
    }

    /// The project that the current directory is in.
    ///
    /// # Errors
    /// When neither it nor any directory above it is one.
    pub fn around_current_dir() -> Result<Project, NoProject> {
        let here = std::env::current_dir()
            .ok()
            .and_then(|dir| Utf8PathBuf::from_path_buf(dir).ok())
            .ok_or_else(|| {
                NoProject("failed to determine the current directory, or its name is not UTF-8".to_owned())
            })?;
        here.ancestors().find_map(|dir| Project::at(dir).ok()).ok_or_else(|| {
            NoProject(format!(
                "no goldtrace project in `{here}` or above it: run inside a checkout, or give one with --project"
            ))
        })
    }

    /// The project's directory, absolute.
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// A path below the project's directory.
    pub fn path(&self, relative: impl AsRef<Utf8Path>) -> Utf8PathBuf {
        self.root.join(relative)
    }

    /// `path` as it is shown: relative to the project where it lies inside.
    pub fn shown<'p>(&self, path: &'p Utf8Path) -> &'p Utf8Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }

    /// Where results of runs are kept.
    pub fn results(&self) -> Utf8PathBuf {
        self.root.join("target/goldtrace")
    }

    /// Names of the files with `extension` in a directory of the project, without it, in order.
    ///
    /// # Errors
    /// When the directory cannot be read, or such a file's name is not UTF-8.
    pub fn stems(&self, directory: &str, extension: &str) -> io::Result<Vec<String>> {
        let mut stems = Vec::new();
        for entry in fs::read_dir(self.path(directory))? {
            let path = entry?.path();
            if path.extension() == Some(OsStr::new(extension)) {
                let stem = path.file_stem().and_then(OsStr::to_str);
                let not_utf8 = || io::Error::other(format!("the name {path:?} is not UTF-8"));
                stems.push(stem.ok_or_else(not_utf8)?.to_owned());
            }
        }
        stems.sort();
        Ok(stems)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn guest_file_whose_name_is_not_utf8_is_an_error() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = Utf8Path::from_path(dir.path()).expect("UTF-8");
        for mark in MARKS {
            fs::create_dir(root.join(mark)).expect("made");
        }
        let project = Project::at(root).expect("a project");
        fs::write(root.join("guests/a.yaml"), "").expect("written");
        fs::write(dir.path().join("guests").join(OsStr::from_bytes(b"\xff.txt")), "").expect("written");
        assert_eq!(project.stems("guests", "yaml").expect("listed"), ["a"]);
        fs::write(dir.path().join("guests").join(OsStr::from_bytes(b"\xff.yaml")), "").expect("written");
        let errors = crate::load_all(&project).expect_err("an odd name");
        assert!(errors[0].message.starts_with("failed to list guests: the name "), "{:?}", errors[0]);
        assert!(errors[0].message.ends_with(" is not UTF-8"), "{:?}", errors[0]);
    }

    #[test]
    fn directory_without_cases_is_not_a_project() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = Utf8Path::from_path(dir.path()).expect("UTF-8");
        fs::create_dir(root.join("guests")).expect("made");
        let error = Project::at(root).expect_err("no cases").to_string();
        assert!(error.ends_with("is not a goldtrace project: it has no directory cases/ (a project has guests/, cases/, images/)"), "{error}");
    }
}
