//! The part of the kernel's source that perf is built from.

use std::fs;
use std::time::Duration;

use camino::Utf8PathBuf;
use xshell::{Shell, cmd};

use super::manifest::PerfManifest;
use crate::debian::apt::Deb;
use crate::digest::Digest;
use crate::error::ImageError;
use crate::progress::ProgressSink;
use crate::source::SourceArchive;
use crate::store::{BuildDir, Product, Recipe, Store, make_dir};
use vm::process::{LoggedCommand, run_logged};

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
const LIMIT: Duration = Duration::from_secs(300);

impl PerfSource {
    /// Take it from the cache, or out of the package of the kernel's source.
    ///
    /// # Errors
    /// When the package cannot be had, or its source lists no files of perf.
    pub(super) fn of(
        store: &Store,
        package: &Deb<'_>,
        progress: &dyn ProgressSink,
    ) -> Result<PerfSource, ImageError> {
        let sh = Shell::new().map_err(|e| ImageError::Other(e.to_string()))?;
        let version = package.upstream_version();
        let recipe = Recipe::new("perf-source", version)
            .with("source", package.sha256())
            .with("version", version)
            .with("layout", "1");
        let product = store.product(&recipe, progress, |build_dir| {
            let BuildDir { out, log, .. } = build_dir;
            let archive = SourceArchive::open(&sh, build_dir, package)?;
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
            let command = cmd!(sh, "tar --create --gzip --file {out}/{ARCHIVE} --directory {tree} .");
            run_logged(LoggedCommand { command, log, timeout: LIMIT }, |_| ())?;
            Ok(())
        })?;
        let path = product.dir.join(MANIFEST);
        let text = fs::read_to_string(&path).map_err(|e| ImageError::file("read", path, e))?;
        Ok(PerfSource { product, digest: recipe.digest(), manifest: PerfManifest::parse(&text) })
    }

    /// Unpack it into the build_dir's scratch folder.
    pub(super) fn unpack(&self, sh: &Shell, build_dir: &BuildDir<'_>) -> Result<Utf8PathBuf, ImageError> {
        let BuildDir { scratch, log, .. } = build_dir;
        let tree = scratch.join("linux");
        make_dir(&tree)?;
        let archive = self.product.dir.join(ARCHIVE);
        let command = cmd!(sh, "tar --extract --gzip --file {archive} --directory {tree}");
        run_logged(LoggedCommand { command, log, timeout: LIMIT }, |_| ())?;
        Ok(tree)
    }
}
