//! The folder tree that goldtrace works in.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};

/// A checkout of goldtrace: the folder that holds `guests/`, `cases/` and `images/`.
#[derive(Debug, Clone)]
pub struct Project {
    root: Utf8PathBuf,
}

/// The folder is no project.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NoProject(String);

const MARKS: [&str; 3] = ["guests", "cases", "images"];

impl Project {
    /// The project in `root`.
    ///
    /// # Errors
    /// When one of its folders is missing.
    pub fn at(root: &Utf8Path) -> Result<Project, NoProject> {
        let root = root
            .canonicalize_utf8()
            .map_err(|e| NoProject(format!("failed to open project `{root}`: {e}")))?;
        match MARKS.iter().find(|mark| !root.join(mark).is_dir()) {
            None => Ok(Project { root }),
            Some(mark) => Err(NoProject(format!(
                "`{root}` is no goldtrace project: it has no folder {mark}/ (a project has {})",
                MARKS.map(|m| format!("{m}/")).join(", ")
            ))),
        }
    }

    /// The project that the current folder is in.
    ///
    /// # Errors
    /// When neither it nor any folder above it is one.
    pub fn around_current_dir() -> Result<Project, NoProject> {
        let here =
            std::env::current_dir().ok().and_then(|dir| Utf8PathBuf::from_path_buf(dir).ok()).ok_or_else(
                || NoProject("the current folder cannot be told, or its name is not UTF-8".to_owned()),
            )?;
        here.ancestors().find_map(|dir| Project::at(dir).ok()).ok_or_else(|| {
            NoProject(format!(
                "no goldtrace project in `{here}` or above it: run inside a checkout, or give one with --project"
            ))
        })
    }

    /// The project's folder, absolute.
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// A path below the project's folder.
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

    /// Names of the files with `extension` in a folder of the project, without it, in order.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn stems(&self, folder: &str, extension: &str) -> std::io::Result<Vec<String>> {
        let mut stems = Vec::new();
        for entry in fs::read_dir(self.path(folder))? {
            let Ok(path) = Utf8PathBuf::from_path_buf(entry?.path()) else { continue };
            if path.extension() == Some(extension) {
                stems.extend(path.file_stem().map(str::to_owned));
            }
        }
        stems.sort();
        Ok(stems)
    }
}
