//! Everything that guests boot, made when it is first asked for.
//!
//! One thing is made at a time, as each make uses all CPUs; what has been made stays in the cache.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use guest::{Guest, ModuleSource, Project};

use crate::config::ConfigFragment;
use crate::context::{BuildContext, UserPatches};
use crate::debian::{Refresh, Sources, SourcesFile};
use crate::error::ImageError;
use crate::kernel::{self, BuiltKernel};
use crate::modules::{self, BuiltModule};
use crate::perf::{self, Perf, PerfTarget};
use crate::progress::ProgressSink;
use crate::rootfs::initramfs::{self, Contents};
use crate::rootfs::programs;
use crate::snapshot::{self, SnapshotInputs};
use crate::source::Patch;
use crate::store::{Product, Store};

/// What a user can choose about builds.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// Whether the mirror is asked for newer packages.
    pub refresh: Refresh,
    /// Changes to the kernel's source, in order.
    pub patches: Vec<Patch>,
    /// Additions to the kernels' configuration, after the project's, in order.
    pub configs: Vec<ConfigFragment>,
}

impl Default for BuildOptions {
    fn default() -> BuildOptions {
        BuildOptions { refresh: Refresh::WhenOld, patches: Vec::new(), configs: Vec::new() }
    }
}

/// What a guest's initramfs has besides the agent, busybox and the guest's own modules.
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
    /// The identity of the product that it is.
    pub id: String,
    /// The modules in it.
    pub modules: Vec<BuiltModule>,
    /// The perf in it.
    pub perf: Option<Perf>,
}

/// Makes kernels, perf and root file systems, each when it is first asked for.
pub struct Builder {
    store: Store,
    project: Project,
    archs: Vec<String>,
    file: SourcesFile,
    refresh: Refresh,
    patches: UserPatches,
    configs: Vec<ConfigFragment>,
    progress: Arc<dyn ProgressSink>,
    sources: OnceLock<Sources>,
    /// Held while something is made.
    making: Mutex<()>,
}

impl Builder {
    /// A builder for `guests`, all of the project's: the package versions are found for all of
    /// them together, so that they never run different kernels.
    pub fn new(
        store: Store,
        project: &Project,
        guests: &[Guest],
        file: &SourcesFile,
        options: BuildOptions,
        progress: Arc<dyn ProgressSink>,
    ) -> Builder {
        let mut archs: Vec<String> = guests.iter().map(|guest| guest.debian_arch.clone()).collect();
        archs.sort();
        archs.dedup();
        Builder {
            store,
            project: project.clone(),
            archs,
            file: file.clone(),
            refresh: options.refresh,
            patches: UserPatches::new(options.patches),
            configs: options.configs,
            progress,
            sources: OnceLock::new(),
            making: Mutex::new(()),
        }
    }

    /// The kernel of a guest, from the cache or built.
    ///
    /// # Errors
    /// See [`ImageError`]: packages, patches, the configuration, the compiler.
    pub fn kernel(&self, guest: &Guest) -> Result<BuiltKernel, ImageError> {
        self.with_context(|context| kernel::build(context, guest))
    }

    /// The root file system that a guest boots with this kernel, from the cache or built.
    ///
    /// # Errors
    /// As [`Builder::kernel`], and a module that the kernel would not load.
    pub fn rootfs(
        &self,
        guest: &Guest,
        kernel: &BuiltKernel,
        spec: &RootfsSpec,
    ) -> Result<Rootfs, ImageError> {
        self.with_context(|context| {
            let modules = |sources: &[ModuleSource]| -> Result<Vec<BuiltModule>, ImageError> {
                let built = sources.iter().map(|source| modules::build(context, guest, kernel, source));
                Ok(built.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
            };
            let modules = modules::union(modules(&guest.modules)?, modules(&spec.modules)?);
            let perf = match spec.perf {
                true => Some(perf::build(context, &PerfTarget::guest(guest)?)?),
                false => None,
            };
            let (busybox, agent) = (programs::busybox(context, guest)?, programs::agent(context, guest)?);
            let contents =
                Contents { kernel, modules: &modules, busybox: &busybox, agent: &agent, perf: perf.as_ref() };
            let archive = initramfs::build(context, guest, &contents)?;
            let (initramfs, id) = (archive.dir.join("initramfs.cpio"), archive.id().to_owned());
            Ok(Rootfs { initramfs, id, modules, perf })
        })
    }

    /// A guest that was saved when it was ready, from the cache or made by `make` in a directory of its own.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn snapshot(
        &self,
        inputs: &SnapshotInputs<'_>,
        make: impl FnOnce(&Utf8Path) -> Result<(), ImageError>,
    ) -> Result<Product, ImageError> {
        self.with_context(|context| snapshot::snapshot(context, inputs, make))
    }

    /// Remove a product that is whole and cannot be used. See [`Store::discard`].
    ///
    /// # Errors
    /// When it cannot be moved away.
    pub fn discard(&self, product: &Product) -> Result<(), ImageError> {
        self.store.discard(product)
    }

    /// Say something that the user should know.
    pub fn notice(&self, text: &str) {
        self.progress.notice(text);
    }

    /// How what is built differs from what the project describes, one line each: the user's patches and config fragments.
    pub fn changes(&self) -> Vec<String> {
        let patches = self.patches.paths().map(|path| format!("patch {path}"));
        patches.chain(self.configs.iter().map(|fragment| format!("config {}", fragment.path()))).collect()
    }

    /// Whether each of the user's patches changes something of what was asked for until now. One that does not would
    /// leave its author to believe that it was tested.
    ///
    /// # Errors
    /// [`ImageError::UnusedPatch`].
    pub fn check_patches(&self) -> Result<(), ImageError> {
        self.patches.check_used()
    }

    /// Find or make something, while nothing else is made.
    fn with_context<T>(
        &self,
        make: impl FnOnce(&BuildContext<'_>) -> Result<T, ImageError>,
    ) -> Result<T, ImageError> {
        // A panic while something was made leaves the cache whole.
        let _one = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let Builder { store, project, archs, file, refresh, patches, configs, progress, sources, .. } = self;
        let progress = progress.as_ref();
        let sources = match sources.get() {
            Some(sources) => sources,
            None => {
                let found = Sources::resolve(store, file, archs, *refresh, progress)?;
                sources.get_or_init(|| found)
            }
        };
        make(&BuildContext { store, project, sources, archs, patches, configs, progress })
    }
}
