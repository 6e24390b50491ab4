//! What every build is made with: the cache, the project, the packages, the user's patches, and who hears of
//! progress.
//!
//! Which of the user's patches matter to a product, and how they count in its key, is decided here and nowhere
//! else.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use camino::{Utf8Path, Utf8PathBuf};

use crate::config::ConfigFragment;
use crate::debian::{Package, Sources};
use crate::error::ImageError;
use crate::progress::ProgressSink;
use crate::source::Patch;
use crate::store::{BuildDir, Product, Recipe, Store};
use guest::Project;

/// What every build is made with.
#[derive(Clone, Copy)]
pub(crate) struct BuildContext<'c> {
    /// The cache.
    pub(crate) store: &'c Store,
    /// Whose fragments, applets and agent are used.
    pub(crate) project: &'c Project,
    /// The packages in use.
    pub(crate) sources: &'c Sources,
    /// The Debian architectures that packages are looked up for.
    pub(crate) archs: &'c [String],
    /// The user's changes to the kernel's source, in order.
    pub(crate) patches: &'c UserPatches,
    /// The user's additions to the kernels' configuration, in order.
    pub(crate) configs: &'c [ConfigFragment],
    /// Who hears of progress.
    pub(crate) progress: &'c dyn ProgressSink,
}

impl<'c> BuildContext<'c> {
    /// The product of `recipe`. See [`Store::product`].
    pub(crate) fn product(
        &self,
        recipe: &Recipe,
        make: impl FnOnce(&BuildDir<'_>) -> Result<(), ImageError>,
    ) -> Result<Product, ImageError> {
        self.store.product(recipe, self.progress, make)
    }

    /// The parts of the user's patches that touch files which `is_input` accepts, by their paths below the
    /// source's root.
    pub(crate) fn patches_to(&self, is_input: impl Fn(&Utf8Path) -> bool) -> PatchSet {
        PatchSet { patches: self.patches.patches.iter().filter_map(|known| known.part(&is_input)).collect() }
    }

    /// The package with the kernel's source.
    pub(crate) fn kernel_source(&self) -> Package<'c> {
        Package { suite: &self.sources.suite, archs: self.archs, candidate: &self.sources.kernel }
    }

    /// The package with busybox for a Debian architecture.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn busybox(&self, arch: &str) -> Result<Package<'c>, ImageError> {
        let suite = &self.sources.suite;
        let candidate = self.sources.busybox.iter().find(|candidate| candidate.arch == arch);
        let missing =
            || ImageError::UnknownPackage { suite: suite.clone(), packages: vec![format!("busybox:{arch}")] };
        Ok(Package { suite, archs: self.archs, candidate: candidate.ok_or_else(missing)? })
    }

    /// The packages with the libraries of perf for a Debian architecture.
    pub(crate) fn perf_libraries(&self, arch: &str) -> Vec<Package<'c>> {
        let libraries = &self.sources.perf;
        let of_arch = libraries.packages.iter().filter(|candidate| candidate.arch == arch);
        of_arch.map(|candidate| Package { suite: &libraries.suite, archs: self.archs, candidate }).collect()
    }
}

/// The user's changes to the kernel's source, in order, each with whether it changes something that was asked for.
#[derive(Debug, Default)]
pub(crate) struct UserPatches {
    patches: Vec<UserPatch>,
}

#[derive(Debug)]
struct UserPatch {
    patch: Patch,
    used: AtomicBool,
}

impl UserPatch {
    fn part(&self, is_input: impl Fn(&Utf8Path) -> bool) -> Option<Patch> {
        let part = self.patch.part(is_input);
        if part.is_some() {
            self.used.store(true, Ordering::Relaxed);
        }
        part
    }
}

impl UserPatches {
    pub(crate) fn new(patches: Vec<Patch>) -> UserPatches {
        let unused = |patch| UserPatch { patch, used: AtomicBool::new(false) };
        UserPatches { patches: patches.into_iter().map(unused).collect() }
    }

    /// The patches' files.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Utf8Path> {
        self.patches.iter().map(|known| known.patch.path())
    }

    /// Whether each patch changes something of what was asked for until now.
    ///
    /// # Errors
    /// [`ImageError::UnusedPatch`], the first one.
    pub(crate) fn check_used(&self) -> Result<(), ImageError> {
        match self.patches.iter().find(|known| !known.used.load(Ordering::Relaxed)) {
            None => Ok(()),
            Some(UserPatch { patch, .. }) => Err(ImageError::UnusedPatch {
                patch: patch.path().to_owned(),
                touched: patch.touched().into_iter().collect(),
            }),
        }
    }
}

/// The parts of the user's patches that matter to one product, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct PatchSet {
    patches: Vec<Patch>,
}

impl PatchSet {
    /// How they count in the product's key: the digest of each, one a line.
    pub(crate) fn key(&self) -> String {
        self.patches.iter().map(|patch| format!("{}\n", patch.sha256())).collect()
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.patches.is_empty()
    }

    /// The files that they touch, below the source's root.
    pub(crate) fn touched(&self) -> BTreeSet<Utf8PathBuf> {
        self.patches.iter().flat_map(Patch::touched).collect()
    }

    /// Apply all to `tree`, the kernel's source out of `package`.
    ///
    /// # Errors
    /// The first that does not apply.
    pub(crate) fn apply(
        &self,
        build_dir: &BuildDir<'_>,
        package: &Package<'_>,
        tree: &Utf8Path,
    ) -> Result<(), ImageError> {
        self.patches.iter().try_for_each(|patch| patch.apply(build_dir, package, tree))
    }
}
