//! BuiltKernel modules, built against a guest's kernel or taken as they are.
//!
//! Modules in the kernel's own source are built with the command that the kernel's documents give,
//! `make M=FOLDER`; so are those in any other folder. Beside a module that defines trace events
//! stands the preprocessed source that they are defined in.
//!
//! This module does not know who loads a module.

mod fit;
mod make;
mod set;
mod source_dir;
mod tree;

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use xshell::Shell;

use crate::debian::apt::Deb;
use crate::digest::file_digest;
use crate::error::ImageError;
use crate::kernel::BuiltKernel;
use crate::progress::ProgressSink;
use crate::source::Patch;
use crate::store::{Product, Recipe, Store};
use crate::toolchain;
use guest::{Guest, ModuleSource};
use kmod::Identity;
pub(super) use set::{dependencies, union};
use source_dir::SourceDir;

/// A kernel module that a guest can load.
#[derive(Debug, Clone)]
pub struct BuiltModule {
    /// Its name, as lsmod(8) shows it: with `_` for `-`.
    pub name: String,
    /// Its file, `NAME.ko`.
    pub file: Utf8PathBuf,
    /// The preprocessed sources in which it defines its trace events, one after the other; `None`
    /// when it defines none, or was not built here.
    pub preprocessed: Option<Utf8PathBuf>,
    /// The SHA-256 of its file.
    pub(super) sha256: String,
    /// Its place in the guest, below the kernel's folder of modules.
    pub(super) place: Utf8PathBuf,
    /// The names of the modules whose symbols it uses.
    pub(super) depends: Vec<String>,
}

/// Where modules stand in the guest that are no part of the kernel's source, as depmod(8) has it.
const OUTSIDE: &str = "updates";

/// What modules are built from and against.
pub(super) struct ModuleInputs<'p> {
    /// The guest that loads them.
    pub(super) guest: &'p Guest,
    /// Its kernel.
    pub(super) kernel: &'p BuiltKernel,
    /// The package with the kernel's source.
    pub(super) source: &'p Deb<'p>,
    /// Changes to the kernel's source.
    pub(super) patches: &'p [Patch],
}

/// Build the modules of `source`, or take them from the cache. Each is checked to fit the guest.
///
/// # Errors
/// A patch that does not apply, a build that fails (with the log's last lines), a folder that builds
/// no module, a module that the guest's kernel would not load.
pub(super) fn build(
    store: &Store,
    source: &ModuleSource,
    parts: &ModuleInputs<'_>,
    progress: &dyn ProgressSink,
) -> Result<Vec<BuiltModule>, ImageError> {
    let (files, place): (Vec<Utf8PathBuf>, Utf8PathBuf) = match source {
        ModuleSource::Tree(path) => {
            let folder = tree::folder(store, parts.source, path, progress)?;
            let relevant = |patch: &Patch| patch.part(|file| file.starts_with(path));
            let patches: Vec<Patch> = parts.patches.iter().filter_map(relevant).collect();
            let product = make(store, parts, &folder, path, &patches, progress)?;
            (modules_of(&product), Utf8Path::new("kernel").join(path))
        }
        ModuleSource::Folder(path) => {
            let folder = SourceDir::read(path)?;
            let product = make(store, parts, &folder, Utf8Path::new("outside"), &[], progress)?;
            (modules_of(&product), OUTSIDE.into())
        }
        ModuleSource::File(path) => (vec![path.clone()], OUTSIDE.into()),
    };
    let vermagic = parts.kernel.vermagic()?;
    files.into_iter().map(|file| take(parts.guest, &vermagic, file, &place)).collect()
}

fn modules_of(product: &Product) -> Vec<Utf8PathBuf> {
    product.files().filter(|file| file.extension() == Some("ko")).map(|file| product.dir.join(file)).collect()
}

/// The modules of a folder, as a product: `NAME.ko` and, for those with trace events, `NAME.i`.
/// `at` is the folder's place in the tree that it is built in.
fn make(
    store: &Store,
    parts: &ModuleInputs<'_>,
    folder: &SourceDir,
    at: &Utf8Path,
    patches: &[Patch],
    progress: &dyn ProgressSink,
) -> Result<Product, ImageError> {
    let sh = Shell::new().map_err(|e| ImageError::Other(e.to_string()))?;
    let ModuleInputs { guest, kernel, .. } = parts;
    let recipe = Recipe::new("modules", &format!("{}-{}", folder.name(), guest.name))
        .with("kernel", kernel.product.id())
        .with("source", folder.digest().as_str())
        .with("at", at.as_str())
        .with("patches", patches.iter().map(|p| format!("{}\n", p.sha256())).collect::<String>())
        .with("compiler", toolchain::version(&sh, &guest.kernel.cross)?)
        .with("make", shell_words::join(make::words(guest)))
        .with("layout", "2");
    store.product(&recipe, progress, |build_dir| {
        make::ModuleBuild { sh: &sh, build_dir, store, parts, at }.run(folder, patches)
    })
}

/// Look at a module's file, and at whether the guest would load it.
fn take(
    guest: &Guest,
    vermagic: &str,
    file: Utf8PathBuf,
    place: &Utf8Path,
) -> Result<BuiltModule, ImageError> {
    let bytes = fs::read(&file).map_err(|e| ImageError::file("read module", &file, e))?;
    let module = Identity::parse(&bytes)
        .map_err(|e| ImageError::IncompatibleModule(format!("`{file}` cannot be loaded: {e}")))?;
    if let Some(why) = fit::misfit(&file, &module, guest, vermagic) {
        return Err(ImageError::IncompatibleModule(why));
    }
    let sha256 = file_digest(&file).map_err(|e| ImageError::file("read module", &file, e))?;
    let preprocessed = Some(file.with_extension("i")).filter(|path| path.is_file());
    Ok(BuiltModule {
        name: plain_name(&module.name),
        sha256: sha256.as_str().to_owned(),
        place: place.join(file.file_name().unwrap_or_default()),
        depends: module.depends.iter().map(|name| plain_name(name)).collect(),
        preprocessed,
        file,
    })
}

/// A module's name as the kernel has it: a file may be named with `-`.
pub fn plain_name(name: &str) -> String {
    name.replace('-', "_")
}
