//! Everything that one guest boots, made in the right order.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;

use crate::debian::apt::{Candidate, Deb};
use crate::debian::sources::{Refresh, Sources, SourcesFile};
use crate::error::ImageError;
use crate::kernel::{self, BuiltKernel};
use crate::modules::{self, BuiltModule};
use crate::perf::{self, Perf, PerfTarget};
use crate::progress::ProgressSink;
use crate::rootfs::initramfs::{self, Contents};
use crate::rootfs::programs;
use crate::source::Patch;
use crate::store::{Product, Store};
use guest::Project;
use guest::{Guest, ModuleSource};

/// A bootable guest.
#[derive(Debug, Clone)]
pub struct GuestImage {
    /// The kernel.
    pub kernel: BuiltKernel,
    /// perf, when something that boots needs it.
    pub perf: Option<Perf>,
    /// What it boots with the kernel.
    all_rootfs: BTreeMap<RootfsSpec, Rootfs>,
}

/// What a guest has besides its kernel, the agent, busybox and its own modules.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RootfsSpec {
    /// perf, which costs a little at each boot.
    pub perf: bool,
    /// Further modules.
    pub modules: Vec<ModuleSource>,
}

/// A guest's root file system.
#[derive(Debug, Clone)]
pub struct Rootfs {
    /// The initramfs as a file.
    pub initramfs: Utf8PathBuf,
    /// The modules in it.
    pub modules: Vec<BuiltModule>,
}

impl GuestImage {
    /// The root file system with this content.
    ///
    /// # Panics
    /// When the image was not made with it: planning and preparing disagree.
    pub fn rootfs(&self, spec: &RootfsSpec) -> &Rootfs {
        self.all_rootfs.get(spec).unwrap_or_else(|| panic!("the image was not made for {spec:?}"))
    }

    /// All of them.
    pub fn all_rootfs(&self) -> impl Iterator<Item = (&RootfsSpec, &Rootfs)> {
        self.all_rootfs.iter()
    }
}

/// Makes images.
pub struct Builder<'a> {
    store: &'a Store,
    project: &'a Project,
    progress: &'a dyn ProgressSink,
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
        progress: &'a dyn ProgressSink,
    ) -> Result<Builder<'a>, ImageError> {
        let mut archs: Vec<String> = guests.iter().map(|guest| guest.debian_arch.clone()).collect();
        archs.push(perf::HOST_DEBIAN_ARCH.to_owned());
        archs.sort();
        archs.dedup();
        let sources = Sources::resolve(store, file, &archs, refresh, progress)?;
        Ok(Builder { store, project, progress, sources, archs, patches })
    }

    /// The packages in use.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The image of a guest, from the cache or built, with nothing in it but its own modules.
    ///
    /// # Errors
    /// What went wrong, with the end of the log.
    pub fn image(&self, guest: &Guest) -> Result<GuestImage, ImageError> {
        let source = self.deb(&self.sources.suite, &self.sources.kernel);
        let kernel = kernel::build(self.store, self.project, guest, &source, &self.patches, self.progress)?;
        let mut image = GuestImage { kernel, perf: None, all_rootfs: BTreeMap::new() };
        self.add_rootfs(guest, &mut image, RootfsSpec::default())?;
        Ok(image)
    }

    /// Make the image bootable with this content, from the cache or built.
    ///
    /// # Errors
    /// What went wrong, with the end of the log.
    pub fn add_rootfs(
        &self,
        guest: &Guest,
        image: &mut GuestImage,
        spec: RootfsSpec,
    ) -> Result<(), ImageError> {
        if image.all_rootfs.contains_key(&spec) {
            return Ok(());
        }
        if spec.perf && image.perf.is_none() {
            image.perf = Some(self.perf(&PerfTarget::guest(guest)?)?);
        }
        let own = self.modules(guest, &image.kernel, &guest.modules)?;
        let further = self.modules(guest, &image.kernel, &spec.modules)?;
        let modules = modules::union(own, further);
        let perf = image.perf.as_ref().filter(|_| spec.perf);
        let initramfs = self.initramfs(guest, &image.kernel, &modules, perf)?;
        image.all_rootfs.insert(spec, Rootfs { initramfs, modules });
        Ok(())
    }

    fn modules(
        &self,
        guest: &Guest,
        kernel: &BuiltKernel,
        sources: &[ModuleSource],
    ) -> Result<Vec<BuiltModule>, ImageError> {
        let source = &self.deb(&self.sources.suite, &self.sources.kernel);
        let parts = modules::ModuleInputs { guest, kernel, source, patches: &self.patches };
        let built = sources.iter().map(|source| modules::build(self.store, source, &parts, self.progress));
        Ok(built.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// The perf that runs on the host, from the cache or built, whichever guests there are.
    ///
    /// # Errors
    /// When the host is no x86-64; what went wrong, with the end of the log.
    pub fn host_perf(&self) -> Result<Utf8PathBuf, ImageError> {
        Ok(self.perf(&PerfTarget::host()?)?.program())
    }

    fn perf(&self, target: &PerfTarget) -> Result<Perf, ImageError> {
        let libraries = &self.sources.perf;
        let of_target = libraries.packages.iter().filter(|package| package.arch == target.debian_arch);
        let parts = perf::PerfInputs {
            source: self.deb(&self.sources.suite, &self.sources.kernel),
            libraries: of_target.map(|package| self.deb(&libraries.suite, package)).collect(),
            patches: &self.patches,
        };
        perf::build(self.store, target, &parts, self.progress)
    }

    fn initramfs(
        &self,
        guest: &Guest,
        kernel: &BuiltKernel,
        modules: &[BuiltModule],
        perf: Option<&Perf>,
    ) -> Result<Utf8PathBuf, ImageError> {
        let package =
            self.sources.busybox.iter().find(|c| c.arch == guest.debian_arch).ok_or_else(|| {
                ImageError::Other(format!("no busybox was found for {}", guest.debian_arch))
            })?;
        let package = self.deb(&self.sources.suite, package);
        let busybox = programs::busybox(self.store, guest, &package, self.progress)?;
        let agent = programs::agent(self.store, self.project, guest, self.progress)?;
        let contents = Contents { kernel, modules, busybox: &busybox, agent: &agent, perf };
        let archive: Product = initramfs::build(self.store, self.project, guest, &contents, self.progress)?;
        Ok(archive.dir.join("initramfs.cpio"))
    }

    fn deb<'s>(&'s self, suite: &'s str, candidate: &'s Candidate) -> Deb<'s> {
        Deb { store: self.store, suite, archs: &self.archs, candidate, progress: self.progress }
    }
}
