//! Everything that one guest boots, made in the right order.

use camino::Utf8PathBuf;

use super::apt::{Candidate, Deb};
use super::error::ImageError;
use super::initramfs::{self, Contents};
use super::kernel::{self, Kernel};
use super::patch::Patch;
use super::perf::{self, Perf, Target};
use super::sources::{Refresh, Sources, SourcesFile};
use super::store::{Product, Store};
use super::userland;
use super::watch::Watch;
use crate::guest::Guest;
use crate::project::Project;

/// A bootable guest.
#[derive(Debug, Clone)]
pub struct GuestImage {
    /// The kernel.
    pub kernel: Kernel,
    /// The initramfs as a file.
    pub initramfs: Utf8PathBuf,
    /// perf, when it was asked for.
    pub perf: Option<PerfImage>,
}

/// What a guest boots for trials that need perf.
#[derive(Debug, Clone)]
pub struct PerfImage {
    /// perf itself.
    pub perf: Perf,
    /// The initramfs with perf in it, as a file.
    pub initramfs: Utf8PathBuf,
}

/// Makes images.
pub struct Builder<'a> {
    store: &'a Store,
    project: &'a Project,
    watch: &'a dyn Watch,
    sources: Sources,
    archs: Vec<String>,
    patches: Vec<Patch>,
}

impl<'a> Builder<'a> {
    /// A builder for `guests`, all of the project's: the package versions are found for all of
    /// them together, so that they never run different kernels.
    ///
    /// # Errors
    /// When the package versions cannot be found.
    pub fn new(
        store: &'a Store,
        project: &'a Project,
        guests: &[Guest],
        file: &SourcesFile,
        refresh: Refresh,
        patches: Vec<Patch>,
        watch: &'a dyn Watch,
    ) -> Result<Builder<'a>, ImageError> {
        let mut archs: Vec<String> = guests.iter().map(|guest| guest.debian_arch.clone()).collect();
        archs.push(perf::HOST_DEBIAN_ARCH.to_owned());
        archs.sort();
        archs.dedup();
        let sources = Sources::resolve(store, file, &archs, refresh, watch)?;
        Ok(Builder { store, project, watch, sources, archs, patches })
    }

    /// The packages in use.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The image of a guest, from the cache or built; without perf.
    ///
    /// # Errors
    /// What went wrong, with the end of the log.
    pub fn image(&self, guest: &Guest) -> Result<GuestImage, ImageError> {
        let source = self.deb(&self.sources.suite, &self.sources.kernel);
        let kernel = kernel::build(self.store, self.project, guest, &source, &self.patches, self.watch)?;
        let initramfs = self.initramfs(guest, &kernel, None)?;
        Ok(GuestImage { kernel, initramfs, perf: None })
    }

    /// The same image with perf, from the cache or built.
    ///
    /// # Errors
    /// What went wrong, with the end of the log.
    pub fn with_perf(&self, guest: &Guest, image: GuestImage) -> Result<GuestImage, ImageError> {
        let perf = self.perf(&Target::guest(guest)?)?;
        let initramfs = self.initramfs(guest, &image.kernel, Some(&perf))?;
        Ok(GuestImage { perf: Some(PerfImage { perf, initramfs }), ..image })
    }

    /// The perf that runs on the host, from the cache or built, whichever guests there are.
    ///
    /// # Errors
    /// When the host is no x86-64; what went wrong, with the end of the log.
    pub fn host_perf(&self) -> Result<Utf8PathBuf, ImageError> {
        Ok(self.perf(&Target::host()?)?.program())
    }

    fn perf(&self, target: &Target) -> Result<Perf, ImageError> {
        let libraries = &self.sources.perf;
        let of_target = libraries.packages.iter().filter(|package| package.arch == target.debian_arch);
        let parts = perf::Parts {
            source: self.deb(&self.sources.suite, &self.sources.kernel),
            libraries: of_target.map(|package| self.deb(&libraries.suite, package)).collect(),
            patches: &self.patches,
        };
        perf::build(self.store, target, &parts, self.watch)
    }

    fn initramfs(
        &self,
        guest: &Guest,
        kernel: &Kernel,
        perf: Option<&Perf>,
    ) -> Result<Utf8PathBuf, ImageError> {
        let package =
            self.sources.busybox.iter().find(|c| c.arch == guest.debian_arch).ok_or_else(|| {
                ImageError::Other(format!("no busybox was found for {}", guest.debian_arch))
            })?;
        let package = self.deb(&self.sources.suite, package);
        let busybox = userland::busybox(self.store, guest, &package, self.watch)?;
        let agent = userland::agent(self.store, self.project, guest, self.watch)?;
        let contents = Contents { kernel, busybox: &busybox, agent: &agent, perf };
        let archive: Product = initramfs::build(self.store, self.project, guest, &contents, self.watch)?;
        Ok(archive.dir.join("initramfs.cpio"))
    }

    fn deb<'s>(&'s self, suite: &'s str, candidate: &'s Candidate) -> Deb<'s> {
        Deb { store: self.store, suite, archs: &self.archs, candidate, watch: self.watch }
    }
}
