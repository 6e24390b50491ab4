//! A package that is downloaded when something is made of it, and not before.

use std::fmt;

use camino::Utf8PathBuf;

use super::apt::Apt;
use super::candidate::Candidate;
use super::mirror::Mirror;
use crate::error::ImageError;
use crate::progress::ProgressSink;
use crate::store::{Recipe, Store};

/// A package that is downloaded when something is made of it, and not before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Package<'a> {
    /// The suite that has it.
    pub(crate) suite: &'a str,
    /// The Debian architectures that packages are looked up for.
    pub(crate) archs: &'a [String],
    /// Its name, version and digest.
    pub(crate) candidate: &'a Candidate,
}

impl fmt::Display for Package<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.candidate.package, self.candidate.version)
    }
}

impl Package<'_> {
    /// The SHA-256 of the .deb, for the recipe of what is made of it.
    pub(crate) fn sha256(&self) -> &str {
        &self.candidate.sha256
    }

    /// Its version without Debian's epoch and revision, such as `7.2.13`.
    pub(crate) fn upstream_version(&self) -> &str {
        self.candidate.upstream_version()
    }

    /// The .deb as a file of the cache.
    ///
    /// # Errors
    /// When it is not in the cache and cannot be downloaded.
    pub(crate) fn file(&self, store: &Store, progress: &dyn ProgressSink) -> Result<Utf8PathBuf, ImageError> {
        let Candidate { package, arch, version, sha256, .. } = self.candidate;
        let recipe = Recipe::new("package", &format!("{package}-{arch}"))
            .with("version", version)
            .with("sha256", sha256);
        let product = store.product(&recipe, progress, |build_dir| {
            let mirror = Mirror::of_host()?;
            let apt = Apt::open(store, &mirror, self.suite, self.archs, progress)?;
            if apt.candidate(package, arch).map(|now| now.version).ok().as_ref() != Some(version) {
                apt.update()?;
            }
            apt.download(self.candidate, &build_dir.out.join("package.deb"), &build_dir.label)
        })?;
        Ok(product.dir.join("package.deb"))
    }
}
