//! A folder of modules in the kernel's own source.

use camino::Utf8Path;
use xshell::Shell;

use super::folder::Folder;
use crate::apt::Deb;
use crate::error::ImageError;
use crate::linux_source::Archive;
use crate::store::{Recipe, Store};
use crate::watch::Watch;
use guest::is_folder_of_modules;

/// The folder at `path` below the source's root, without patches: a product of its own for all
/// guests, as the whole source takes long to unpack.
///
/// # Errors
/// When the package cannot be had, or its source has no such folder.
pub(super) fn folder(
    store: &Store,
    package: &Deb<'_>,
    path: &Utf8Path,
    watch: &dyn Watch,
) -> Result<Folder, ImageError> {
    let sh = Shell::new().map_err(|e| ImageError::Other(e.to_string()))?;
    let recipe = Recipe::new("modules-source", path.file_name().unwrap_or("linux"))
        .with("source", package.sha256())
        .with("path", path.as_str());
    let product = store.product(&recipe, watch, |workshop| {
        let tree = Archive::open(&sh, workshop, package)?.unpack_only(&[path.as_str()]);
        let found = tree.as_ref().is_ok_and(|tree| is_folder_of_modules(&tree.join(path)));
        if !found {
            tree?;
            return Err(ImageError::Other(format!("`{path}` in the kernel's source builds nothing")));
        }
        Folder::read(&tree?.join(path))?.copy(&workshop.out.join(path))
    })?;
    Folder::read(&product.dir.join(path))
}
