//! Building the modules of a folder.

use std::fs;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use xshell::{Shell, cmd};

use super::ModuleInputs;
use super::source_dir::SourceDir;
use crate::error::ImageError;
use crate::source::Patch;
use crate::store::{BuildDir, Store, make_dir};
use crate::toolchain;
use guest::Guest;
use vm::process::{LoggedCommand, run_logged};

/// What a source has that defines trace events, of its own or on tracepoints that are there
/// (include/trace/define_trace.h and define_custom_trace.h, Linux 7.2).
const CREATES_EVENTS: [&str; 2] = ["#define CREATE_TRACE_POINTS", "#define CREATE_CUSTOM_TRACE_EVENTS"];
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// The words after `make` that say for which machine and how to build.
pub(super) fn words(guest: &Guest) -> Vec<String> {
    toolchain::make_words(&guest.kernel.make_arch, &guest.kernel.cross)
}

/// A build.
pub(super) struct ModuleBuild<'b> {
    pub(super) sh: &'b Shell,
    pub(super) build_dir: &'b BuildDir<'b>,
    pub(super) store: &'b Store,
    pub(super) parts: &'b ModuleInputs<'b>,
    /// The folder's place in the tree.
    pub(super) at: &'b Utf8Path,
}

impl ModuleBuild<'_> {
    /// Build, and keep the modules and the preprocessed sources of their trace events.
    ///
    /// # Errors
    /// A patch that does not apply, a build that fails or makes no module.
    pub(super) fn run(&self, folder: &SourceDir, patches: &[Patch]) -> Result<(), ImageError> {
        let BuildDir { out, scratch, log, .. } = self.build_dir;
        let tree = scratch.join("kbuild");
        make_dir(&tree)?;
        self.parts.kernel.unpack_kbuild(self.sh, &tree, log)?;
        let source = tree.join(self.at);
        folder.copy(&source)?;
        for patch in patches {
            patch.apply(self.sh, self.build_dir, &tree)?;
        }
        self.make(&tree, &[toolchain::jobs(), "modules".to_owned()])?;
        let order = source.join("modules.order");
        let list = fs::read_to_string(&order).map_err(|e| ImageError::file("read", &order, e))?;
        if list.trim().is_empty() {
            return Err(ImageError::Other(format!(
                "`{}` builds no module: its Kbuild or Makefile adds nothing to obj-m for this kernel's configuration",
                folder.name()
            )));
        }
        for object in list.lines() {
            let module = source.join(object).with_extension("ko");
            let name = module.file_name().unwrap_or_default();
            fs::copy(&module, out.join(name)).map_err(|e| ImageError::file("copy", &module, e))?;
            self.keep_preprocessed(&tree, &module)?;
        }
        Ok(())
    }

    /// Keep the preprocessed sources in which the module defines its trace events.
    fn keep_preprocessed(&self, tree: &Utf8Path, module: &Utf8Path) -> Result<(), ImageError> {
        let mut text = String::new();
        for source in self.sources(tree, module)? {
            let code = fs::read_to_string(&source).map_err(|e| ImageError::file("read", &source, e))?;
            if !CREATES_EVENTS.iter().any(|define| code.contains(define)) {
                continue;
            }
            let preprocessed = source.with_extension("i");
            let target = preprocessed.strip_prefix(tree.join(self.at)).unwrap_or(&preprocessed);
            self.make(tree, &[target.to_string()])?;
            text +=
                &fs::read_to_string(&preprocessed).map_err(|e| ImageError::file("read", &preprocessed, e))?;
        }
        if text.is_empty() {
            return Ok(());
        }
        let name = module.with_extension("i");
        let path = self.build_dir.out.join(name.file_name().unwrap_or_default());
        fs::write(&path, text).map_err(|e| ImageError::file("write", path, e))
    }

    /// The C sources of a module: `NAME.mod` lists its objects. Paths in it, as in `modules.order`,
    /// start from the folder.
    fn sources(&self, tree: &Utf8Path, module: &Utf8Path) -> Result<Vec<Utf8PathBuf>, ImageError> {
        let list = module.with_extension("mod");
        let text = fs::read_to_string(&list).map_err(|e| ImageError::file("read", &list, e))?;
        let sources = text.lines().map(|object| tree.join(self.at).join(object).with_extension("c"));
        Ok(sources.filter(|source| source.is_file()).collect())
    }

    fn make(&self, tree: &Utf8Path, more: &[String]) -> Result<(), ImageError> {
        let BuildDir { log, label, progress, .. } = self.build_dir;
        let (words, at) = (words(self.parts.guest), format!("M={}", self.at));
        let command = cmd!(self.sh, "make -C {tree} {words...} {at} {more...}");
        let command = toolchain::with_cache(command, self.store, self.build_dir);
        run_logged(LoggedCommand { command, log, timeout: LIMIT }, |line| progress.line(label, line))?;
        Ok(())
    }
}
