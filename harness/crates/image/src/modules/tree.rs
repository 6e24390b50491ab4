//! A folder of modules in the kernel's own source.

use camino::Utf8Path;
use xshell::Shell;

use super::source_dir::SourceDir;
use crate::debian::apt::Deb;
use crate::error::ImageError;
use crate::progress::ProgressSink;
use crate::source::SourceArchive;
use crate::store::{Recipe, Store};
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
    progress: &dyn ProgressSink,
) -> Result<SourceDir, ImageError> {
    let sh = Shell::new().map_err(|e| ImageError::Other(e.to_string()))?;
    let recipe = Recipe::new("modules-source", path.file_name().unwrap_or("linux"))
        .with("source", package.sha256())
        .with("path", path.as_str());
    let product = store.product(&recipe, progress, |build_dir| {
        let tree = SourceArchive::open(&sh, build_dir, package)?.unpack_only(&[path.as_str()]);
        let found = tree.as_ref().is_ok_and(|tree| is_folder_of_modules(&tree.join(path)));
        if !found {
            tree?;
            return Err(ImageError::Other(format!("`{path}` in the kernel's source builds nothing")));
        }
        SourceDir::read(&tree?.join(path))?.copy(&build_dir.out.join(path))
    })?;
    SourceDir::read(&product.dir.join(path))
}
