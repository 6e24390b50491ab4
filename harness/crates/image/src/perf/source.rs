//! The part of the kernel's source that perf is built from.

use std::fs;
use std::time::Duration;

use camino::Utf8PathBuf;
use xshell::cmd;

use super::manifest::PerfManifest;
use crate::context::BuildContext;
use crate::debian::Package;
use crate::digest::Digest;
use crate::error::ImageError;
use crate::source::SourceArchive;
use crate::store::{BuildDir, Product, Recipe, make_dir};

/// The part of a kernel's source that perf is built from, without patches.
///
/// It is a product of its own, for all guests: which patches matter to perf has to be known before
/// anything is built, and the whole source takes long to unpack.
pub(super) struct PerfSource {
    product: Product,
    /// The digest of all that decides what it holds. The packed files themselves have other times
    /// each time they are packed.
    pub(super) digest: Digest,
    /// Which files belong to it.
    pub(super) manifest: PerfManifest,
}

const ARCHIVE: &str = "source.tar.gz";
const MANIFEST: &str = "manifest";
const TIMEOUT: Duration = Duration::from_secs(300);

impl PerfSource {
    /// Take it from the cache, or out of the package of the kernel's source.
    ///
    /// # Errors
    /// When the package cannot be had, or its source lists no files of perf.
    pub(super) fn of(context: &BuildContext<'_>) -> Result<PerfSource, ImageError> {
        let package = context.kernel_source();
        let version = package.upstream_version();
        let recipe = recipe(&package);
        let product = context.product(&recipe, |build_dir| {
            let BuildDir { out, sh, .. } = build_dir;
            let archive = SourceArchive::open(&package, context.store, build_dir)?;
            let tree = archive.unpack_only(&[PerfManifest::FILE])?;
            let list = tree.join(PerfManifest::FILE);
            let text = fs::read_to_string(&list).map_err(|e| ImageError::file("read", &list, e))?;
            archive.unpack_only(&PerfManifest::parse(&text).paths())?;
            // What perf's build looks for when there is neither a git tree nor the kernel's Makefile.
            let path = tree.join("PERF-VERSION-FILE");
            fs::write(&path, format!("#define PERF_VERSION \"{version}\"\n"))
                .map_err(|e| ImageError::file("write", path, e))?;
            let path = out.join(MANIFEST);
            fs::write(&path, text).map_err(|e| ImageError::file("write", path, e))?;
            build_dir
                .run(cmd!(sh, "tar --create --gzip --file {out}/{ARCHIVE} --directory {tree} ."), TIMEOUT)
        })?;
        let path = product.dir.join(MANIFEST);
        let text = fs::read_to_string(&path).map_err(|e| ImageError::file("read", path, e))?;
        Ok(PerfSource { product, digest: recipe.digest(), manifest: PerfManifest::parse(&text) })
    }

    /// Unpack it into the build_dir's scratch directory.
    pub(super) fn unpack(&self, build_dir: &BuildDir<'_>) -> Result<Utf8PathBuf, ImageError> {
        let BuildDir { scratch, sh, .. } = build_dir;
        let tree = scratch.join("linux");
        make_dir(&tree)?;
        let archive = self.product.dir.join(ARCHIVE);
        build_dir.run(cmd!(sh, "tar --extract --gzip --file {archive} --directory {tree}"), TIMEOUT)?;
        Ok(tree)
    }
}

fn recipe(package: &Package<'_>) -> Recipe {
    let version = package.upstream_version();
    Recipe::new("perf-source", version)
        .with("source", package.sha256())
        .with("version", version)
        .with("layout", "1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixture, assert_inputs_count};

    #[test]
    fn every_input_of_perfs_source_counts() {
        let with = |change: fn(&mut Fixture)| recipe(&Fixture::with(change).context().kernel_source());
        let changed = [
            ("source", with(|f| f.sources.kernel.sha256 = "another".to_owned())),
            ("version", with(|f| f.sources.kernel.version = "7.3-1".to_owned())),
        ];
        assert_inputs_count(&with(|_| ()), &["layout"], &changed);
    }
}
