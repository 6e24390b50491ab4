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

    /// What decides what it is.
    pub(crate) fn recipe(&self) -> Recipe {
        let Candidate { package, arch, version, sha256, .. } = self.candidate;
        Recipe::new("package", &format!("{package}-{arch}")).with("version", version).with("sha256", sha256)
    }

    /// The .deb as a file of the cache.
    ///
    /// # Errors
    /// When it is not in the cache and cannot be downloaded.
    pub(crate) fn file(&self, store: &Store, progress: &dyn ProgressSink) -> Result<Utf8PathBuf, ImageError> {
        let Candidate { package, arch, version, .. } = self.candidate;
        let product = store.product(&self.recipe(), progress, |build_dir| {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_inputs_count;

    #[test]
    fn every_input_of_a_package_counts() {
        let recipe = |version: &str, sha256: &str| {
            let candidate =
                Candidate { sha256: sha256.to_owned(), ..Candidate::named("linux-source", version) };
            Package { suite: "test", archs: &[], candidate: &candidate }.recipe()
        };
        let changed = [("version", recipe("7.3", "0")), ("sha256", recipe("7.2", "1"))];
        assert_inputs_count(&recipe("7.2", "0"), &[], &changed);
    }
}
