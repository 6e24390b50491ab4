//! The kernel's source out of its package.

use std::fs;
use std::time::Duration;

use camino::Utf8PathBuf;
use xshell::cmd;

use crate::debian::Package;
use crate::error::ImageError;
use crate::store::{BuildDir, Store, make_dir};

/// The packed source in the build_dir's scratch directory. All that it holds is below one directory.
pub(crate) struct SourceArchive<'w> {
    path: Utf8PathBuf,
    build_dir: &'w BuildDir<'w>,
}

const TIMEOUT: Duration = Duration::from_secs(20 * 60);

impl<'w> SourceArchive<'w> {
    /// Take the archive out of the package `source`.
    ///
    /// # Errors
    /// When the package cannot be had, or holds no kernel source.
    pub(crate) fn open(
        source: &Package<'_>,
        store: &Store,
        build_dir: &'w BuildDir<'w>,
    ) -> Result<SourceArchive<'w>, ImageError> {
        let BuildDir { scratch, label, progress, sh, .. } = build_dir;
        let deb = source.file(store, *progress)?;
        progress.line(label, "unpacking the source");
        build_dir.run(cmd!(sh, "dpkg-deb -x {deb} {scratch}/deb"), TIMEOUT)?;
        let directory = scratch.join("deb/usr/src");
        let path = directory
            .read_dir_utf8()
            .map_err(|e| ImageError::file("list", &directory, e))?
            .filter_map(Result::ok)
            .find(|e| e.file_name().ends_with(".tar.xz") && e.file_name().starts_with("linux-source"))
            .ok_or_else(|| ImageError::Lacks {
                file: deb.clone(),
                what: "usr/src/linux-source-*.tar.xz".to_owned(),
            })?
            .into_path();
        Ok(SourceArchive { path, build_dir })
    }

    /// Unpack everything into the directory `linux` of the scratch directory.
    pub(crate) fn unpack(&self) -> Result<Utf8PathBuf, ImageError> {
        self.extract(&[])
    }

    /// Unpack what these paths below the source's root name, directories with all that is in them, into
    /// the directory `linux` of the scratch directory. `*` stands for any part of a name.
    pub(crate) fn unpack_only(&self, paths: &[&str]) -> Result<Utf8PathBuf, ImageError> {
        let mut words = vec!["--wildcards".to_owned(), "--no-wildcards-match-slash".to_owned()];
        words.extend(paths.iter().map(|path| format!("linux-source-*/{path}")));
        self.extract(&words)
    }

    /// Remove the archive, to have its room.
    pub(crate) fn remove(self) -> Result<(), ImageError> {
        fs::remove_file(&self.path).map_err(|e| ImageError::file("remove", &self.path, e))
    }

    fn extract(&self, more: &[String]) -> Result<Utf8PathBuf, ImageError> {
        let (path, sh) = (&self.path, &self.build_dir.sh);
        let tree = self.build_dir.scratch.join("linux");
        make_dir(&tree)?;
        // xz(1) on all CPUs: what tar itself calls uses one.
        let xz = "--use-compress-program=xz --threads=0";
        let command =
            cmd!(sh, "tar --extract {xz} --file {path} --directory {tree} --strip-components 1 {more...}");
        self.build_dir.run(command, TIMEOUT)?;
        Ok(tree)
    }
}
