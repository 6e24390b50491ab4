//! perf, built from the same source as the guests' kernels.
//!
//! It is one static program for each machine, cross-compiled with libraries out of packages that
//! are unpacked and not installed. That for x86-64 serves the host too.
//!
//! This module does not know who runs perf.

mod features;
mod make;
mod manifest;
mod source;

use std::fs;
use std::time::Duration;

use camino::Utf8PathBuf;
use xshell::{Shell, cmd};

use crate::debian::apt::Deb;
use crate::error::ImageError;
use crate::progress::ProgressSink;
use crate::source::Patch;
use crate::store::{BuildDir, Product, Recipe, Store, make_dir};
use crate::toolchain;
use arch::Arch;
pub use features::Features;
use guest::Guest;
use source::PerfSource;
use vm::process::{LoggedCommand, run_logged};

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
const LIMIT: Duration = Duration::from_secs(40 * 60);

impl Perf {
    /// The program.
    pub fn program(&self) -> Utf8PathBuf {
        self.product.dir.join(PROGRAM)
    }

    /// The SHA-256 of the program.
    pub(super) fn sha256(&self) -> &str {
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
    /// Debian's name of its folders for libraries.
    multiarch: String,
}

/// Debian's name of the host's architecture: builds need an x86-64 host.
pub(super) const HOST_DEBIAN_ARCH: &str = "amd64";

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

    /// The machine that goldtrace runs on: the perf for it is that of x86-64 guests.
    ///
    /// # Errors
    /// When that is no x86-64, or there is no compiler for it.
    pub(super) fn host() -> Result<PerfTarget, ImageError> {
        let Some(host) = Arch::host().filter(|host| host.name == "x86_64") else {
            return Err(ImageError::Other(format!(
                "failed to build perf for the host: it is {}, and only x86-64 hosts are known; run goldtrace \
                 on one",
                std::env::consts::ARCH
            )));
        };
        Ok(PerfTarget {
            name: host.name,
            make_arch: "x86".to_owned(),
            cross: String::new(),
            debian_arch: HOST_DEBIAN_ARCH.to_owned(),
            multiarch: toolchain::multiarch("")?,
        })
    }
}

/// What perf is built from.
pub(super) struct PerfInputs<'p> {
    /// The package with the kernel's source.
    pub(super) source: Deb<'p>,
    /// The packages with libraries, for the target.
    pub(super) libraries: Vec<Deb<'p>>,
    /// Changes to the kernel's source.
    pub(super) patches: &'p [Patch],
}

/// Build perf for `target`, or take it from the cache. What patches do to files that perf is not
/// built from makes no difference.
///
/// # Errors
/// A patch that does not apply, a package that cannot be had, a build that fails (with the log's
/// last lines).
pub(super) fn build(
    store: &Store,
    target: &PerfTarget,
    parts: &PerfInputs<'_>,
    progress: &dyn ProgressSink,
) -> Result<Perf, ImageError> {
    let sh = Shell::new().map_err(|e| ImageError::Other(e.to_string()))?;
    let source = PerfSource::of(store, &parts.source, progress)?;
    let relevant = |patch: &Patch| patch.part(|path| source.manifest.covers(path));
    let patches: Vec<Patch> = parts.patches.iter().filter_map(relevant).collect();
    let recipe = Recipe::new("perf", target.name)
        .with("source", source.digest.as_str())
        .with("patches", patches.iter().map(|p| format!("{}\n", p.sha256())).collect::<String>())
        .with("libraries", parts.libraries.iter().map(|d| format!("{}\n", d.sha256())).collect::<String>())
        .with("compiler", toolchain::version(&sh, &target.cross)?)
        .with("make", shell_words::join(make::words(target, "sysroot".into(), true)))
        .with("layout", "1");
    let product = store.product(&recipe, progress, |build_dir| {
        let tree = source.unpack(&sh, build_dir)?;
        for patch in &patches {
            patch.apply(&sh, build_dir, &tree)?;
        }
        let build = PerfBuild { sh: &sh, build_dir, store, target, tree };
        build.make_sysroot(&parts.libraries)?;
        let features = build.look_for_features()?;
        build.compile(features)?;
        build.keep(features)
    })?;
    let path = product.dir.join(FEATURES);
    let text = fs::read_to_string(&path).map_err(|e| ImageError::file("read", &path, e))?;
    let features = Features::parse(&text)
        .ok_or_else(|| ImageError::Other(format!("`{path}` does not say what perf can do: {text}")))?;
    Ok(Perf { product, features })
}

struct PerfBuild<'b> {
    sh: &'b Shell,
    build_dir: &'b BuildDir<'b>,
    store: &'b Store,
    target: &'b PerfTarget,
    tree: Utf8PathBuf,
}

impl PerfBuild<'_> {
    fn sysroot(&self) -> Utf8PathBuf {
        self.build_dir.scratch.join("sysroot")
    }

    /// Where it is built.
    fn folder(&self) -> Utf8PathBuf {
        self.tree.join("tools/perf")
    }

    fn make_sysroot(&self, libraries: &[Deb<'_>]) -> Result<(), ImageError> {
        let (sysroot, log) = (self.sysroot(), &self.build_dir.log);
        make_dir(&sysroot)?;
        for deb in libraries {
            let file = deb.file()?;
            let command = cmd!(self.sh, "dpkg-deb -x {file} {sysroot}");
            run_logged(LoggedCommand { command, log, timeout: LIMIT }, |_| ())?;
        }
        Ok(())
    }

    /// Have perf's build look for what it can use. It looks for libtraceevent also when it is told
    /// to do without, and only then a missing one is no error.
    fn look_for_features(&self) -> Result<Features, ImageError> {
        self.make("PERF-VERSION-FILE", Features { libtraceevent: false })?;
        let path = self.folder().join("FEATURE-DUMP");
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
        let BuildDir { log, label, progress, .. } = self.build_dir;
        let (sysroot, folder, jobs) = (self.sysroot(), self.folder(), toolchain::jobs());
        let words = make::words(self.target, &sysroot, features.libtraceevent);
        let command = cmd!(self.sh, "make -C {folder} -f Makefile.perf {jobs} {words...} {file}")
            .env("PKG_CONFIG_LIBDIR", sysroot.join("usr/lib").join(&self.target.multiarch).join("pkgconfig"))
            .env("PKG_CONFIG_SYSROOT_DIR", &sysroot);
        let command = toolchain::with_cache(command, self.store, self.build_dir);
        run_logged(LoggedCommand { command, log, timeout: LIMIT }, |line| progress.line(label, line))?;
        Ok(())
    }

    fn keep(&self, features: Features) -> Result<(), ImageError> {
        let BuildDir { out: kept, log, .. } = self.build_dir;
        let (folder, strip) = (self.folder(), format!("{}strip", self.target.cross));
        let command = cmd!(self.sh, "{strip} -o {kept}/{PROGRAM} {folder}/{PROGRAM}");
        run_logged(LoggedCommand { command, log, timeout: LIMIT }, |_| ())?;
        let path = kept.join(FEATURES);
        fs::write(&path, features.to_text()).map_err(|e| ImageError::file("write", path, e))
    }
}
