//! Which packages the images are made from: `images/sources.yaml`, and the versions found for it.

use std::fs;
use std::time::{Duration, SystemTime};

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use crate::debian::apt::{self, Apt, Candidate};
use crate::digest::text_digest;
use crate::error::ImageError;
use crate::progress::ProgressSink;
use crate::store::Store;
use diagnostic::Diagnostic;
use guest::Project;
use yaml::{Document, Reader};

const FILE: &str = "images/sources.yaml";

/// How long found versions are used before the mirror is asked again.
const FRESH: Duration = Duration::from_secs(7 * 24 * 3600);

/// `images/sources.yaml` as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcesFile {
    /// Debian suites, the preferred one first.
    pub suites: Vec<String>,
    /// The metapackage that depends on the newest kernel source.
    pub kernel_package: String,
    /// The oldest kernel that will do, as `MAJOR.MINOR`.
    pub kernel_minimum: (u32, u32),
    /// The package with the guests' userland.
    pub busybox_package: String,
    /// The packages with the libraries that perf is linked with.
    pub perf_packages: Vec<String>,
}

/// The packages that images are made from, each pinned to a version and a SHA-256.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    /// The suite that they come from.
    pub suite: String,
    /// The kernel's source.
    pub kernel: Candidate,
    /// The userland, one for each Debian architecture asked for.
    pub busybox: Vec<Candidate>,
    /// What perf is linked with.
    pub perf: Libraries,
}

/// Packages with libraries, from the suite that the compilers come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Libraries {
    /// The suite: the host's own.
    pub suite: String,
    /// The packages, for each Debian architecture asked for.
    pub packages: Vec<Candidate>,
}

/// Whether the mirror is asked for newer versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refresh {
    /// When the known versions are old, or none are known.
    WhenOld,
    /// Now.
    Now,
}

impl SourcesFile {
    /// Read the project's file.
    ///
    /// # Errors
    /// Every fault of the file.
    pub fn load(project: &Project) -> Result<SourcesFile, Vec<Diagnostic>> {
        let text = fs::read_to_string(project.path(FILE))
            .map_err(|e| vec![Diagnostic::whole_file(FILE, format!("failed to read the sources: {e}"))])?;
        let document = Document::parse(FILE, text).map_err(|fault| vec![fault])?;
        let mut reader = Reader::new();
        let file = SourcesFile::read(&mut reader, &document);
        let faults = reader.into_errors();
        match file {
            Some(file) if faults.is_empty() => Ok(file),
            _ => Err(faults),
        }
    }

    fn read(r: &mut Reader, document: &Document) -> Option<SourcesFile> {
        let f = r.fields(document.root(), &["suites", "kernel", "busybox", "perf"])?;
        let suites = f.need(r, "suites").and_then(|node| {
            let suites = r.lines(&node)?;
            if suites.is_empty() {
                r.report(node.error("at least one suite is needed"));
            }
            Some(suites)
        });
        let kernel = f.need(r, "kernel").and_then(|node| {
            let f = r.fields(node, &["package", "minimum"])?;
            let package = f.need(r, "package").and_then(|node| r.line(&node));
            let minimum = f.need(r, "minimum").and_then(|node| {
                let text = r.line(&node)?;
                let version = major_minor(&text);
                if version.is_none() {
                    r.report(node.error(format!("`{text}` is no version")).with_help("write it as \"6.18\""));
                }
                version
            });
            Some((package?, minimum?))
        });
        let busybox = f.need(r, "busybox").and_then(|node| {
            let f = r.fields(node, &["package"])?;
            f.need(r, "package").and_then(|node| r.line(&node))
        });
        let perf = f.need(r, "perf").and_then(|node| {
            let f = r.fields(node, &["packages"])?;
            f.need(r, "packages").and_then(|node| r.lines(&node))
        });
        let (kernel_package, kernel_minimum) = kernel?;
        Some(SourcesFile {
            suites: suites?,
            kernel_package,
            kernel_minimum,
            busybox_package: busybox?,
            perf_packages: perf?,
        })
    }
}

impl Sources {
    /// The pinned packages for `file`, for the Debian architectures in `archs`.
    ///
    /// What was found is kept in the cache for seven days, so that a run needs no network and does
    /// not change under its user. When the mirror cannot be asked, older findings serve, with a notice.
    ///
    /// # Errors
    /// When nothing is known and the mirror cannot be asked, or has no kernel that is new enough.
    pub fn resolve(
        store: &Store,
        file: &SourcesFile,
        archs: &[String],
        refresh: Refresh,
        progress: &dyn ProgressSink,
    ) -> Result<Sources, ImageError> {
        let key = text_digest(&format!("{file:?} {archs:?}"));
        let path = store.root().join("sources").join(format!("{}.json", key.short()));
        let known = Sources::known(&path);
        if let Some((sources, age)) = &known {
            if refresh == Refresh::WhenOld && *age < FRESH {
                return Ok(sources.clone());
            }
        }
        let step = "package versions";
        let start = std::time::Instant::now();
        progress.begin(step);
        let found = Sources::find(store, file, archs, progress);
        progress.end(step, found.is_ok(), start.elapsed());
        match (found, known) {
            (Ok(sources), _) => {
                sources.keep(&path)?;
                Ok(sources)
            }
            (Err(error), Some((sources, age))) if refresh == Refresh::WhenOld && !error.is_interrupt() => {
                progress.notice(&format!(
                    "warning: using package versions found {} days ago: {error}",
                    age.as_secs() / (24 * 3600)
                ));
                Ok(sources)
            }
            (Err(error), _) => Err(error),
        }
    }

    fn find(
        store: &Store,
        file: &SourcesFile,
        archs: &[String],
        progress: &dyn ProgressSink,
    ) -> Result<Sources, ImageError> {
        let mut reasons = Vec::new();
        for suite in &file.suites {
            let apt = Apt::open(store, suite, archs, progress)?;
            apt.update()?;
            let meta = apt.candidate(&file.kernel_package, "amd64")?;
            let Some(package) = newest_source(&meta.depends, &file.kernel_package) else {
                reasons.push(format!("{suite}: {} depends on no versioned source", file.kernel_package));
                continue;
            };
            let kernel = apt.candidate(&package, "amd64")?;
            let (major, minor) = file.kernel_minimum;
            match major_minor(&kernel.version) {
                Some(version) if version >= file.kernel_minimum => {}
                _ => {
                    reasons.push(format!("{suite}: kernel {} is older than {major}.{minor}", kernel.version));
                    continue;
                }
            }
            let busybox: Vec<(&str, &str)> =
                archs.iter().map(|arch| (file.busybox_package.as_str(), arch.as_str())).collect();
            let busybox = apt.candidates(&busybox)?;
            let perf = Libraries::find(store, file, archs, progress)?;
            return Ok(Sources { suite: suite.clone(), kernel, busybox, perf });
        }
        Err(ImageError::Other(format!("no suite of {FILE} will do: {}", reasons.join("; "))))
    }

    fn known(path: &Utf8PathBuf) -> Option<(Sources, Duration)> {
        let sources = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
        let written = fs::metadata(path).ok()?.modified().ok()?;
        // A file from the future is as good as a fresh one: clocks differ.
        Some((sources, SystemTime::now().duration_since(written).unwrap_or_default()))
    }

    fn keep(&self, path: &Utf8PathBuf) -> Result<(), ImageError> {
        let fail = |e| ImageError::file("write", path.clone(), e);
        let folder = path.parent().expect("a file stands in a folder");
        fs::create_dir_all(folder).map_err(fail)?;
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(fail)?;
        serde_json::to_writer_pretty(&mut file, self).map_err(|e| fail(e.into()))?;
        file.persist(path).map_err(|e| fail(e.error))?;
        Ok(())
    }
}

impl Libraries {
    fn find(
        store: &Store,
        file: &SourcesFile,
        archs: &[String],
        progress: &dyn ProgressSink,
    ) -> Result<Libraries, ImageError> {
        let suite = apt::host_suite()?;
        let apt = Apt::open(store, &suite, archs, progress)?;
        apt.update()?;
        let wanted: Vec<(&str, &str)> = archs
            .iter()
            .flat_map(|arch| file.perf_packages.iter().map(|package| (package.as_str(), arch.as_str())))
            .collect();
        let packages = apt.candidates(&wanted).map_err(|error| {
            ImageError::Other(format!("{error}, which `perf:` in {FILE} names for building perf"))
        })?;
        Ok(Libraries { suite, packages })
    }
}

/// `linux-source-7.2` out of a metapackage's dependencies.
fn newest_source(depends: &str, meta: &str) -> Option<String> {
    depends
        .split([',', '|'])
        .filter_map(|one| one.split_whitespace().next())
        .filter(|name| name.strip_prefix(meta).is_some_and(|rest| rest.starts_with('-')))
        .max_by_key(|name| major_minor(&name[meta.len() + 1..]))
        .map(str::to_owned)
}

fn major_minor(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_source_is_found_by_number() {
        let newest = newest_source("linux-source-7.2 (= 7.2.13-1), linux-source-7.10, other", "linux-source");
        assert_eq!(newest.as_deref(), Some("linux-source-7.10"));
        assert_eq!(newest_source("linux-sourcery-1.0", "linux-source"), None);
    }

    #[test]
    fn versions() {
        assert_eq!(major_minor("7.2.13-1"), Some((7, 2)));
        assert_eq!(major_minor("6.18~rc1"), Some((6, 18)));
        assert_eq!(major_minor("7"), None);
    }
}
