//! The versions of packages that are in use: found once, pinned, and kept for a week.

use std::fs;
use std::time::{Duration, SystemTime};

use camino::Utf8Path;
use serde::{Deserialize, Serialize};

use super::apt::{Apt, INDEX_LABEL};
use super::candidate::Candidate;
use super::mirror::Mirror;
use super::sources_file::{FILE, SourcesFile};
use super::version::major_minor;
use crate::digest::text_digest;
use crate::error::ImageError;
use crate::progress::ProgressSink;
use crate::store::{Store, write_whole};

/// How long found versions are used before the mirror is asked again.
const FRESH: Duration = Duration::from_secs(7 * 24 * 3600);

/// The packages that images are made from, each pinned to a version and a SHA-256.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    /// The suite that they come from.
    pub suite: String,
    /// The kernel's source.
    pub(crate) kernel: Candidate,
    /// The userland, one for each Debian architecture asked for.
    pub(crate) busybox: Vec<Candidate>,
    /// What perf is linked with.
    pub(crate) perf: Libraries,
}

/// Packages with libraries, from the suite that the compilers come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Libraries {
    /// The suite: the host's own.
    pub(crate) suite: String,
    /// The packages, for each Debian architecture asked for.
    pub(crate) packages: Vec<Candidate>,
}

/// Whether the mirror is asked for newer versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refresh {
    /// When the known versions are old, or none are known.
    WhenOld,
    /// Now.
    Now,
}

#[cfg(test)]
impl Sources {
    /// Packages of a test, for amd64 and ppc64el.
    pub(crate) fn named() -> Sources {
        let of = |package: &str, arch: &str| Candidate {
            arch: arch.to_owned(),
            sha256: format!("{package} {arch}"),
            ..Candidate::named(package, "7.2")
        };
        let both = |package: &str| ["amd64", "ppc64el"].map(|arch| of(package, arch)).to_vec();
        let suite = "test".to_owned();
        let perf = Libraries { suite: suite.clone(), packages: both("libelf-dev") };
        let (kernel, busybox) = (of("linux-source-7.2", "amd64"), both("busybox-static"));
        Sources { suite, kernel, busybox, perf }
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
    pub(crate) fn resolve(
        store: &Store,
        file: &SourcesFile,
        archs: &[String],
        refresh: Refresh,
        progress: &dyn ProgressSink,
    ) -> Result<Sources, ImageError> {
        Sources::resolve_at(Mirror::of_host, store, file, archs, refresh, progress)
    }

    /// As [`Sources::resolve`], at the mirror that `mirror` names when it must be asked.
    fn resolve_at(
        mirror: impl Fn() -> Result<Mirror, ImageError>,
        store: &Store,
        file: &SourcesFile,
        archs: &[String],
        refresh: Refresh,
        progress: &dyn ProgressSink,
    ) -> Result<Sources, ImageError> {
        let key = text_digest(&format!("{file:?} {archs:?}"));
        let path = store.root().join("sources").join(format!("{}.json", key.short()));
        let fresh = |known: &Option<(Sources, Duration)>| {
            let (sources, _) = known.as_ref().filter(|(_, age)| *age < FRESH)?;
            (refresh == Refresh::WhenOld).then(|| sources.clone())
        };
        if let Some(sources) = fresh(&Sources::known(&path)) {
            return Ok(sources);
        }
        let _lock = store.lock(&format!("sources-{}", key.short()), "with the package versions", progress)?;
        // Another process may have found them while this one waited for the lock.
        let known = Sources::known(&path);
        if let Some(sources) = fresh(&known) {
            return Ok(sources);
        }
        let step = INDEX_LABEL;
        let start = std::time::Instant::now();
        progress.begin(step);
        let found = mirror().and_then(|mirror| Sources::find(&mirror, store, file, archs, progress));
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
        mirror: &Mirror,
        store: &Store,
        file: &SourcesFile,
        archs: &[String],
        progress: &dyn ProgressSink,
    ) -> Result<Sources, ImageError> {
        let mut reasons = Vec::new();
        for suite in &file.suites {
            let apt = Apt::open(store, mirror, suite, archs, progress)?;
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
            // The libraries' suite may be the same one, whose state this would still hold.
            drop(apt);
            let perf = Libraries::find(mirror, store, file, archs, progress)?;
            return Ok(Sources { suite: suite.clone(), kernel, busybox, perf });
        }
        Err(ImageError::NoSuite { file: FILE, reasons })
    }

    fn known(path: &Utf8Path) -> Option<(Sources, Duration)> {
        let sources = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
        let written = fs::metadata(path).ok()?.modified().ok()?;
        // A file from the future is as good as a fresh one: clocks differ.
        Some((sources, SystemTime::now().duration_since(written).unwrap_or_default()))
    }

    fn keep(&self, path: &Utf8Path) -> Result<(), ImageError> {
        let text = serde_json::to_string_pretty(self).expect("versions have a JSON form");
        write_whole(path, &text)
    }
}

impl Libraries {
    fn find(
        mirror: &Mirror,
        store: &Store,
        file: &SourcesFile,
        archs: &[String],
        progress: &dyn ProgressSink,
    ) -> Result<Libraries, ImageError> {
        let suite = mirror.suite.clone();
        let apt = Apt::open(store, mirror, &suite, archs, progress)?;
        apt.update()?;
        let wanted: Vec<(&str, &str)> = archs
            .iter()
            .flat_map(|arch| file.perf_packages.iter().map(|package| (package.as_str(), arch.as_str())))
            .collect();
        let packages = apt.candidates(&wanted)?;
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

#[cfg(test)]
mod tests {
    use super::super::testing::{Heard, Repository};
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn newest_source_is_found_by_number() {
        let newest = newest_source("linux-source-7.2 (= 7.2.13-1), linux-source-7.10, other", "linux-source");
        assert_eq!(newest.as_deref(), Some("linux-source-7.10"));
        assert_eq!(newest_source("linux-sourcery-1.0", "linux-source"), None);
    }

    const PACKAGES: [(&str, &str, &str); 4] = [
        ("linux-source", "7.2.13-1", "linux-source-7.2 (= 7.2.13-1)"),
        ("linux-source-7.2", "7.2.13-1", ""),
        ("busybox-static", "1:1.37-1", ""),
        ("libelf-dev", "0.192-4", ""),
    ];

    fn file() -> SourcesFile {
        SourcesFile {
            suites: vec!["test".to_owned()],
            kernel_package: "linux-source".to_owned(),
            kernel_minimum: (6, 18),
            busybox_package: "busybox-static".to_owned(),
            perf_packages: vec!["libelf-dev".to_owned()],
        }
    }

    fn resolve(
        repository: &Repository,
        file: &SourcesFile,
        refresh: Refresh,
        heard: &Heard,
    ) -> Result<Sources, ImageError> {
        let mirror = || Ok(repository.mirror.clone());
        Sources::resolve_at(mirror, &repository.store, file, &["amd64".to_owned()], refresh, heard)
    }

    #[test]
    fn parallel_callers_ask_the_mirror_once() {
        let repository = Repository::serve(&PACKAGES);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let found =
                        resolve(&repository, &file(), Refresh::WhenOld, &Heard::default()).expect("found");
                    assert_eq!(found.kernel.upstream_version(), "7.2.13");
                });
            }
        });
        // Once for the kernel, and once for the libraries of the host's suite, which is the same.
        assert_eq!(repository.requests("InRelease").len(), 2);
    }

    #[test]
    fn old_versions_serve_when_the_mirror_cannot_be_asked() {
        let mut repository = Repository::serve(&PACKAGES);
        let first = resolve(&repository, &file(), Refresh::WhenOld, &Heard::default()).expect("found");
        let kept = repository.store.root().join("sources").read_dir_utf8().expect("there").next();
        let path = kept.expect("one").expect("readable").into_path();
        let long_ago = SystemTime::now() - Duration::from_secs(10 * 24 * 3600);
        fs::File::options().write(true).open(path).expect("opens").set_modified(long_ago).expect("set");
        repository.mirror.uri = "http://127.0.0.1:9/".to_owned();

        let heard = Heard::default();
        assert_eq!(resolve(&repository, &file(), Refresh::WhenOld, &heard).expect("the old"), first);
        let warning = "warning: using package versions found 10 days ago: failed to read the package index";
        assert!(heard.text().contains(warning), "{}", heard.text());
        let error = resolve(&repository, &file(), Refresh::Now, &Heard::default()).expect_err("asked now");
        assert_eq!(error.kind(), ErrorKind::Download);
    }

    #[test]
    fn too_old_kernel_names_suite_and_version() {
        let repository = Repository::serve(&PACKAGES);
        let file = SourcesFile { kernel_minimum: (7, 3), ..file() };
        let error = resolve(&repository, &file, Refresh::WhenOld, &Heard::default()).expect_err("too old");
        assert_eq!(
            error.to_string(),
            "no suite of images/sources.yaml has a usable kernel: test: kernel 7.2.13-1 is older than 7.3"
        );
    }
}
