//! A directory of modules in the kernel's own source.

use camino::Utf8Path;

use super::source_dir::SourceDir;
use crate::context::BuildContext;
use crate::error::ImageError;
use crate::source::SourceArchive;
use crate::store::Recipe;
use guest::is_directory_of_modules;
use vm::process::LoggedError;

/// The directory at `path` below the source's root, without patches, copied into `copy`. It is a product of its own
/// for all guests, as the whole source takes long to unpack.
///
/// # Errors
/// When the package cannot be had, or its source has no such directory.
pub(super) fn source_dir(
    context: &BuildContext<'_>,
    path: &Utf8Path,
    copy: &Utf8Path,
) -> Result<SourceDir, ImageError> {
    let product = context.product(&recipe(context, path), |build_dir| {
        let unpacked = SourceArchive::open(&context.kernel_source(), context.store, build_dir)?
            .unpack_only(&[path.as_str()]);
        let tree = match unpacked {
            // tar(1) fails when the archive has no such member.
            Err(ImageError::Command(LoggedError::Failed { tail, .. }))
                if tail.contains("Not found in archive") =>
            {
                return Err(ImageError::NotInSource { path: path.to_owned() });
            }
            other => other?,
        };
        if !is_directory_of_modules(&tree.join(path)) {
            return Err(ImageError::NotInSource { path: path.to_owned() });
        }
        SourceDir::copy_of(&tree.join(path), &build_dir.out.join(path)).map(drop)
    })?;
    SourceDir::copy_of(&product.dir.join(path), copy)
}

fn recipe(context: &BuildContext<'_>, path: &Utf8Path) -> Recipe {
    Recipe::new("modules-source", path.file_name().unwrap_or("linux"))
        .with("source", context.kernel_source().sha256())
        .with("path", path.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixture, assert_inputs_count};

    #[test]
    fn every_input_of_a_directory_of_the_kernels_source_counts() {
        let with = |path: &str, change: fn(&mut Fixture)| {
            let fixture = Fixture::with(change);
            recipe(&fixture.context(), path.into())
        };
        let changed = [
            ("source", with("samples/a", |f| f.sources.kernel.sha256 = "another".to_owned())),
            ("path", with("samples/b/a", |_| ())),
        ];
        assert_inputs_count(&with("samples/a", |_| ()), &[], &changed);
    }
}
