//! Kernel modules, built against a guest's kernel or taken as they are.
//!
//! Modules in the kernel's own source are built with the command that the kernel's documents give,
//! `make M=DIRECTORY`; so are those in any other directory. Beside a module that defines trace events
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
use crate::digest::bytes_digest;
use crate::error::{ImageError, LoadKey};
use crate::kernel::BuiltKernel;
use crate::store::{Product, Recipe};
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
    let key = LoadKey { machine: guest.arch.elf_machine, vermagic: kernel.vermagic()? };
    let (product, place) = match source {
        ModuleSource::Tree(path) => {
            let work = context.store.work_dir("modules")?;
            let source = tree::source_dir(context, path, &work.dir.join("source"))?;
            let product = build.product(&source, path, &context.patches_to(|file| file.starts_with(path)))?;
            (product, Utf8Path::new("kernel").join(path))
        }
        ModuleSource::Folder(path) => {
            let work = context.store.work_dir("modules")?;
            let source = SourceDir::copy_of(path, &work.dir.join("source"))?;
            let product = build.product(&source, Utf8Path::new("outside"), &PatchSet::default())?;
            (product, OUTSIDE.into())
        }
        ModuleSource::File(path) => (taken(context, guest, &key, path)?, OUTSIDE.into()),
    };
    let modules = product.files().filter(|file| file.extension() == Some("ko"));
    modules.map(|file| built(guest, &key, &product, file, &place)).collect()
}

/// A module's file as it is now, as a product: the user may replace the file at any time.
fn taken(
    context: &BuildContext<'_>,
    guest: &Guest,
    key: &LoadKey,
    path: &Utf8Path,
) -> Result<Product, ImageError> {
    let bytes = fs::read(path).map_err(|e| ImageError::file("read module", path, e))?;
    // Errors name the user's file.
    check(guest, key, path, &bytes)?;
    let file = path.file_name().unwrap_or_default();
    context.product(&file_recipe(path, &bytes), |build_dir| {
        let to = build_dir.out.join(file);
        fs::write(&to, &bytes).map_err(|e| ImageError::file("write", to, e))
    })
}

fn file_recipe(path: &Utf8Path, bytes: &[u8]) -> Recipe {
    Recipe::new("module", path.file_stem().unwrap_or_default())
        .with("file", path.file_name().unwrap_or_default())
        .with("sha256", bytes_digest(bytes).as_str())
}

/// A module of a product.
fn built(
    guest: &Guest,
    key: &LoadKey,
    product: &Product,
    name: &Utf8Path,
    place: &Utf8Path,
) -> Result<BuiltModule, ImageError> {
    let file = product.dir.join(name);
    let bytes = fs::read(&file).map_err(|e| ImageError::file("read module", &file, e))?;
    let module = check(guest, key, &file, &bytes)?;
    let source = name.with_extension("i");
    Ok(BuiltModule {
        name: plain_name(&module.name),
        sha256: product.sha256(name.as_str())?.to_owned(),
        place: place.join(name.file_name().unwrap_or_default()),
        depends: module.depends.iter().map(|name| plain_name(name)).collect(),
        // Only what the manifest lists was built with the module.
        preprocessed: product.files().any(|known| *known == source).then(|| product.dir.join(&source)),
        file,
    })
}

/// What a module's file says of it, when the guest's kernel, which loads what has this `key`, would load it.
fn check(guest: &Guest, key: &LoadKey, file: &Utf8Path, bytes: &[u8]) -> Result<Identity, ImageError> {
    let invalid = |source| ImageError::InvalidModule { file: file.to_owned(), source };
    let module = Identity::parse(bytes).map_err(invalid)?;
    let own = LoadKey { machine: module.machine, vermagic: module.vermagic.clone() };
    if own != *key {
        return Err(ImageError::IncompatibleModule {
            file: file.to_owned(),
            guest: guest.name.to_string(),
            module: Box::new(own),
            kernel: Box::new(key.clone()),
        });
    }
    Ok(module)
}

/// A module's name as the kernel has it: a file may be named with `-`.
pub fn plain_name(name: &str) -> String {
    name.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_inputs_count;

    #[test]
    fn every_input_of_a_module_in_a_file_counts() {
        let recipe = |path: &str, bytes: &str| file_recipe(path.into(), bytes.as_bytes());
        let changed = [("file", recipe("/x/a.ko.signed", "1")), ("sha256", recipe("/x/a.ko", "2"))];
        let base = recipe("/x/a.ko", "1");
        assert_inputs_count(&base, &[], &changed);
        assert_eq!(recipe("/y/a.ko", "1").digest(), base.digest());
    }
}
