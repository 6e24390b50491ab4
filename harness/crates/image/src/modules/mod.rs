//! BuiltKernel modules, built against a guest's kernel or taken as they are.
//!
//! Modules in the kernel's own source are built with the command that the kernel's documents give,
//! `make M=FOLDER`; so are those in any other directory. Beside a module that defines trace events
//! is kept the preprocessed source that defines them.
//!
//! This module does not know who loads a module.

mod make;
mod set;
mod source_dir;
mod tree;

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};

use crate::context::{BuildContext, PatchSet};
use crate::digest::file_digest;
use crate::error::{ImageError, LoadKey};
use crate::kernel::BuiltKernel;
use crate::store::Product;
use guest::{Guest, ModuleSource};
use kmod::Identity;
use make::ModuleBuild;
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
    /// Its place in the guest, below the kernel's directory of modules.
    pub(super) place: Utf8PathBuf,
    /// The names of the modules whose symbols it uses.
    pub(super) depends: Vec<String>,
}

/// Where modules stand in the guest that are no part of the kernel's source, as depmod(8) has it.
const OUTSIDE: &str = "updates";

/// Build the modules of `source`, or take them from the cache. Each is checked to fit the guest.
///
/// # Errors
/// A patch that does not apply, a build that fails (with the log's last lines), a directory that builds
/// no module, a module that the guest's kernel would not load.
pub(super) fn build(
    context: &BuildContext<'_>,
    guest: &Guest,
    kernel: &BuiltKernel,
    source: &ModuleSource,
) -> Result<Vec<BuiltModule>, ImageError> {
    let build = ModuleBuild { context, guest, kernel };
    let (files, place): (Vec<Utf8PathBuf>, Utf8PathBuf) = match source {
        ModuleSource::Tree(path) => {
            let source = tree::source_dir(context, path)?;
            let product = build.product(&source, path, &context.patches_to(|file| file.starts_with(path)))?;
            (modules_of(&product), Utf8Path::new("kernel").join(path))
        }
        ModuleSource::Folder(path) => {
            let source = SourceDir::read(path)?;
            let product = build.product(&source, Utf8Path::new("outside"), &PatchSet::default())?;
            (modules_of(&product), OUTSIDE.into())
        }
        ModuleSource::File(path) => (vec![path.clone()], OUTSIDE.into()),
    };
    let key = LoadKey { machine: guest.arch.elf_machine, vermagic: kernel.vermagic()? };
    files.into_iter().map(|file| check(guest, &key, file, &place)).collect()
}

fn modules_of(product: &Product) -> Vec<Utf8PathBuf> {
    product.files().filter(|file| file.extension() == Some("ko")).map(|file| product.dir.join(file)).collect()
}

/// Read a module's file, and check that the guest's kernel, which loads what has this `key`, would load it.
fn check(
    guest: &Guest,
    key: &LoadKey,
    file: Utf8PathBuf,
    place: &Utf8Path,
) -> Result<BuiltModule, ImageError> {
    let bytes = fs::read(&file).map_err(|e| ImageError::file("read module", &file, e))?;
    let module =
        Identity::parse(&bytes).map_err(|source| ImageError::InvalidModule { file: file.clone(), source })?;
    let own = LoadKey { machine: module.machine, vermagic: module.vermagic.clone() };
    if own != *key {
        return Err(ImageError::IncompatibleModule {
            file,
            guest: guest.name.to_string(),
            module: Box::new(own),
            kernel: Box::new(key.clone()),
        });
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
