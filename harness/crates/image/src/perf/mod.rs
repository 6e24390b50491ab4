//! perf, built from the same source as the guests' kernels.
//!
//! It is one static program for each machine, cross-compiled with libraries out of packages that
//! are unpacked and not installed.
//!
//! This module does not know who runs perf.

mod features;
mod make;
mod manifest;
mod source;

use std::fs;
use std::time::Duration;

use camino::Utf8PathBuf;
use xshell::cmd;

use crate::context::{BuildContext, PatchSet};
use crate::debian::Package;
use crate::digest::Digest;
use crate::error::ImageError;
use crate::store::{BuildDir, Product, Recipe, make_dir};
use crate::toolchain;
pub use features::Features;
use guest::Guest;
use source::PerfSource;

/// A built perf.
#[derive(Debug, Clone)]
pub struct Perf {
    /// The product: `perf` and `features`.
    pub product: Product,
    /// What it can do.
    pub features: Features,
}

const PROGRAM: &str = "perf";
const FEATURES: &str = "features";
const TIMEOUT: Duration = Duration::from_secs(40 * 60);

impl Perf {
    /// The program.
    pub fn program(&self) -> Utf8PathBuf {
        self.product.dir.join(PROGRAM)
    }

    /// The SHA-256 of the program.
    pub(crate) fn sha256(&self) -> Result<&str, ImageError> {
        self.product.sha256(PROGRAM)
    }
}

/// A machine that perf is built for.
#[derive(Debug)]
pub(super) struct PerfTarget {
    name: &'static str,
    make_arch: String,
    cross: String,
    /// Debian's name of its architecture.
    pub(super) debian_arch: String,
    /// Debian's name of its directories for libraries.
    multiarch: String,
}

impl PerfTarget {
    /// The machine that a guest is.
    ///
    /// # Errors
    /// When there is no compiler for it.
    pub(super) fn guest(guest: &Guest) -> Result<PerfTarget, ImageError> {
        Ok(PerfTarget {
            name: guest.arch.name,
            make_arch: guest.kernel.make_arch.clone(),
            cross: guest.kernel.cross.clone(),
            debian_arch: guest.debian_arch.clone(),
            multiarch: toolchain::multiarch(&guest.kernel.cross)?,
        })
    }
}

/// Build perf for `target`, or take it from the cache. What patches do to files that perf is not
/// built from makes no difference.
///
/// # Errors
/// A patch that does not apply, a package that cannot be had, a build that fails (with the log's
/// last lines).
pub(crate) fn build(context: &BuildContext<'_>, target: &PerfTarget) -> Result<Perf, ImageError> {
    let source = PerfSource::of(context)?;
    let patches = context.patches_to(|path| source.manifest.covers(path));
    let libraries = context.perf_libraries(&target.debian_arch);
    let recipe = recipe(target, &source.digest, &patches, &libraries)?;
    let product = context.product(&recipe, |build_dir| {
        toolchain::require_all(&target.cross)?;
        let tree = source.unpack(build_dir)?;
        patches.apply(build_dir, &context.kernel_source(), &tree)?;
        let build = PerfBuild { context, build_dir, target, tree };
        build.make_sysroot(&libraries)?;
        let features = build.look_for_features()?;
        build.compile(features)?;
        build.keep(features)
    })?;
    let path = product.dir.join(FEATURES);
    let text = fs::read_to_string(&path).map_err(|e| ImageError::file("read", &path, e))?;
    let lacks = || ImageError::Lacks { file: path, what: format!("line about libtraceevent: {text}") };
    let features = Features::parse(&text).ok_or_else(lacks)?;
    Ok(Perf { product, features })
}

fn recipe(
    target: &PerfTarget,
    source: &Digest,
    patches: &PatchSet,
    libraries: &[Package<'_>],
) -> Result<Recipe, ImageError> {
    let recipe = Recipe::new("perf", target.name)
        .with("source", source.as_str())
        .with("patches", patches.key())
        .with(
            "libraries",
            libraries.iter().map(|package| format!("{}\n", package.sha256())).collect::<String>(),
        )
        .with("toolchain", toolchain::identity(&target.cross)?)
        .with("make", shell_words::join(make::words(target, "sysroot".into(), true)))
        .with("layout", "1");
    Ok(recipe)
}

struct PerfBuild<'b> {
    context: &'b BuildContext<'b>,
    build_dir: &'b BuildDir<'b>,
    target: &'b PerfTarget,
    tree: Utf8PathBuf,
}

impl PerfBuild<'_> {
    fn sysroot(&self) -> Utf8PathBuf {
        self.build_dir.scratch.join("sysroot")
    }

    /// Where it is built.
    fn directory(&self) -> Utf8PathBuf {
        self.tree.join("tools/perf")
    }

    fn make_sysroot(&self, libraries: &[Package<'_>]) -> Result<(), ImageError> {
        let (sysroot, sh) = (self.sysroot(), &self.build_dir.sh);
        make_dir(&sysroot)?;
        for package in libraries {
            let file = package.file(self.context.store, self.context.progress)?;
            self.build_dir.run(cmd!(sh, "dpkg-deb -x {file} {sysroot}"), TIMEOUT)?;
        }
        Ok(())
    }

    /// Have perf's build look for what it can use. It looks for libtraceevent even when it must
    /// do without, and only then a missing one is not an error.
    fn look_for_features(&self) -> Result<Features, ImageError> {
        self.make("PERF-VERSION-FILE", Features { libtraceevent: false })?;
        let path = self.directory().join("FEATURE-DUMP");
        let dump = fs::read_to_string(&path).map_err(|e| ImageError::file("read", path, e))?;
        Ok(Features::of_build(&dump))
    }

    /// Make the program alone: the filters beside it are shared objects, which cannot be static.
    fn compile(&self, features: Features) -> Result<(), ImageError> {
        if !features.libtraceevent {
            let BuildDir { label, progress, .. } = self.build_dir;
            progress
                .notice(&format!("warning: {label} is built without libtraceevent: the build found none"));
        }
        self.make(PROGRAM, features)
    }

    fn make(&self, file: &str, features: Features) -> Result<(), ImageError> {
        let sh = &self.build_dir.sh;
        let (sysroot, directory, jobs) = (self.sysroot(), self.directory(), toolchain::jobs());
        let words = make::words(self.target, &sysroot, features.libtraceevent);
        let command = cmd!(sh, "make -C {directory} -f Makefile.perf {jobs} {words...} {file}")
            .env("PKG_CONFIG_LIBDIR", sysroot.join("usr/lib").join(&self.target.multiarch).join("pkgconfig"))
            .env("PKG_CONFIG_SYSROOT_DIR", &sysroot);
        let command = toolchain::with_cache(command, self.context.store.root(), &self.build_dir.scratch);
        self.build_dir.compile(command, TIMEOUT)
    }

    fn keep(&self, features: Features) -> Result<(), ImageError> {
        let BuildDir { out: kept, sh, .. } = self.build_dir;
        let (directory, strip) = (self.directory(), format!("{}strip", self.target.cross));
        self.build_dir.run(cmd!(sh, "{strip} -o {kept}/{PROGRAM} {directory}/{PROGRAM}"), TIMEOUT)?;
        let path = kept.join(FEATURES);
        fs::write(&path, features.to_text()).map_err(|e| ImageError::file("write", path, e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::text_digest;
    use crate::testing::{Fixture, assert_inputs_count};

    #[test]
    fn every_input_of_perf_counts() {
        let with = |source: &str, change: fn(&mut Fixture)| {
            let fixture = Fixture::with(change);
            let context = fixture.context();
            let target = PerfTarget::guest(&fixture.guest).expect("a compiler");
            let patches = context.patches_to(|path| path.starts_with("tools/perf"));
            recipe(&target, &text_digest(source), &patches, &context.perf_libraries("ppc64el"))
                .expect("a compiler")
        };
        let changed = [
            ("source", with("another", |_| ())),
            ("patches", with("source", |f| f.patch("tools/perf/perf.c"))),
            ("libraries", with("source", |f| f.sources.perf.packages[1].sha256 = "another".to_owned())),
            ("toolchain", with("source", |f| f.guest.kernel.cross = String::new())),
            ("make", with("source", |f| f.guest.kernel.make_arch = "x86".to_owned())),
        ];
        let base = with("source", |_| ());
        assert_inputs_count(&base, &["layout"], &changed);
        assert_eq!(with("source", |f| f.patch("kernel/fork.c")).digest(), base.digest());
    }
}
