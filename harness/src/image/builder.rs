//! Everything that one guest boots, made in the right order.

use camino::Utf8PathBuf;

use super::apt::Deb;
use super::error::ImageError;
use super::kernel::{self, Kernel};
use super::patch::Patch;
use super::sources::{Refresh, Sources, SourcesFile};
use super::store::{Product, Store};
use super::watch::Watch;
use super::{initramfs, userland};
use crate::guest::Guest;
use crate::project::Project;

/// A bootable guest.
#[derive(Debug, Clone)]
pub struct GuestImage {
    /// The kernel.
    pub kernel: Kernel,
    /// The initramfs as a file.
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
        archs.sort();
        archs.dedup();
        let sources = Sources::resolve(store, file, &archs, refresh, watch)?;
        Ok(Builder { store, project, watch, sources, archs, patches })
    }

    /// The packages in use.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The image of a guest, from the cache or built.
    ///
    /// # Errors
    /// What went wrong, with the end of the log.
    pub fn image(&self, guest: &Guest) -> Result<GuestImage, ImageError> {
        let deb = |candidate| Deb {
            store: self.store,
            suite: &self.sources.suite,
            archs: &self.archs,
            candidate,
            watch: self.watch,
        };
        let source = deb(&self.sources.kernel);
        let kernel = kernel::build(self.store, self.project, guest, &source, &self.patches, self.watch)?;
        let package =
            self.sources.busybox.iter().find(|c| c.arch == guest.debian_arch).ok_or_else(|| {
                ImageError::Other(format!("no busybox was found for {}", guest.debian_arch))
            })?;
        let busybox = userland::busybox(self.store, guest, &deb(package), self.watch)?;
        let agent = userland::agent(self.store, self.project, guest, self.watch)?;
        let archive: Product =
            initramfs::build(self.store, self.project, guest, &kernel, &busybox, &agent, self.watch)?;
        Ok(GuestImage { kernel, initramfs: archive.dir.join("initramfs.cpio") })
    }
}
