//! Building the modules of a directory.

use std::fs;
use std::time::Duration;

use camino::Utf8Path;
use guest::Guest;
use xshell::cmd;

use super::source_dir::SourceDir;
use crate::context::{BuildContext, PatchSet};
use crate::error::ImageError;
use crate::kernel::BuiltKernel;
use crate::store::{BuildDir, Product, Recipe, make_dir};
use crate::toolchain;

/// The section that an object with trace events has, of its own or on tracepoints that are there
/// (include/trace/trace_events.h:463 and trace_custom_events.h, Linux 7.2). How its source came to define them, by a line of
/// its own, of a header or by a flag of the compiler, does not matter.
const EVENTS: &[u8] = b"_ftrace_events";
const TIMEOUT: Duration = Duration::from_secs(20 * 60);

/// What builds modules against a guest's kernel.
pub(super) struct ModuleBuild<'b> {
    pub(super) context: &'b BuildContext<'b>,
    pub(super) guest: &'b Guest,
    pub(super) kernel: &'b BuiltKernel,
}

impl ModuleBuild<'_> {
    /// The modules of a directory, as a product: `NAME.ko` and, for those with trace events, `NAME.i`.
    /// `at` is the directory's place in the tree that it is built in.
    ///
    /// # Errors
    /// A patch that does not apply, a build that fails or makes no module.
    pub(super) fn product(
        &self,
        source: &SourceDir,
        at: &Utf8Path,
        patches: &PatchSet,
    ) -> Result<Product, ImageError> {
        let cross = &self.guest.kernel.cross;
        let recipe = self.recipe(source, at, patches)?;
        self.context.product(&recipe, |build_dir| {
            toolchain::require_all(cross)?;
            let tree = build_dir.scratch.join("kbuild");
            make_dir(&tree)?;
            self.kernel.unpack_kbuild(build_dir, &tree)?;
            source.copy_to(&tree.join(at))?;
            patches.apply(build_dir, &self.context.kernel_source(), &tree)?;
            Tree { build: self, build_dir, tree: &tree, at }.make_modules(source.name())
        })
    }

    fn recipe(&self, source: &SourceDir, at: &Utf8Path, patches: &PatchSet) -> Result<Recipe, ImageError> {
        let recipe = Recipe::new("modules", &format!("{}-{}", source.name(), self.guest.arch.name))
            .with("kernel", self.kernel.product.id())
            .with("source", source.digest().as_str())
            .with("at", at.as_str())
            .with("patches", patches.key())
            .with("toolchain", toolchain::identity(&self.guest.kernel.cross)?)
            .with("make", shell_words::join(self.words()))
            .with("layout", "3");
        Ok(recipe)
    }

    /// The words after `make` that say for which machine and how to build.
    fn words(&self) -> Vec<String> {
        toolchain::make_words(&self.guest.kernel.make_arch, &self.guest.kernel.cross)
    }
}

/// The tree in which modules are built, with their source in its directory `at`.
struct Tree<'t> {
    build: &'t ModuleBuild<'t>,
    build_dir: &'t BuildDir<'t>,
    tree: &'t Utf8Path,
    at: &'t Utf8Path,
}

impl Tree<'_> {
    /// Build, and keep the modules and the preprocessed sources of their trace events.
    fn make_modules(&self, name: &str) -> Result<(), ImageError> {
        let source = self.tree.join(self.at);
        self.make(&[toolchain::jobs(), "modules".to_owned()])?;
        let order = source.join("modules.order");
        let list = fs::read_to_string(&order).map_err(|e| ImageError::file("read", &order, e))?;
        if list.trim().is_empty() {
            return Err(ImageError::NoModules { directory: name.to_owned() });
        }
        for object in list.lines() {
            let module = source.join(object).with_extension("ko");
            let kept = self.build_dir.out.join(module.file_name().unwrap_or_default());
            fs::copy(&module, kept).map_err(|e| ImageError::file("copy", &module, e))?;
            self.keep_preprocessed(&module)?;
        }
        Ok(())
    }

    /// Keep the preprocessed sources in which the module defines its trace events.
    fn keep_preprocessed(&self, module: &Utf8Path) -> Result<(), ImageError> {
        let mut text = Vec::new();
        let list = module.with_extension("mod");
        let objects = fs::read_to_string(&list).map_err(|e| ImageError::file("read", &list, e))?;
        // Paths in it, as in `modules.order`, start from the module's directory.
        for object in objects.lines().map(|object| self.tree.join(self.at).join(object)) {
            let code = fs::read(&object).map_err(|e| ImageError::file("read", &object, e))?;
            if memchr::memmem::find(&code, EVENTS).is_none() {
                continue;
            }
            if !object.with_extension("c").is_file() {
                self.build_dir.progress.notice(&format!(
                    "warning: {}: {} has trace events and no C source: they are not compared with one",
                    self.build_dir.label,
                    object.file_name().unwrap_or_default()
                ));
                continue;
            }
            let preprocessed = object.with_extension("i");
            let target = preprocessed.strip_prefix(self.tree.join(self.at)).unwrap_or(&preprocessed);
            self.make(&[target.to_string()])?;
            text.extend(fs::read(&preprocessed).map_err(|e| ImageError::file("read", &preprocessed, e))?);
        }
        if text.is_empty() {
            return Ok(());
        }
        let name = module.with_extension("i");
        let path = self.build_dir.out.join(name.file_name().unwrap_or_default());
        fs::write(&path, text).map_err(|e| ImageError::file("write", path, e))
    }

    fn make(&self, more: &[String]) -> Result<(), ImageError> {
        let (words, at) = (self.build.words(), format!("M={}", self.at));
        let (sh, tree) = (self.build_dir.sh.clone(), self.tree);
        // Where the module's author runs make: many a makefile names its directory $(PWD).
        sh.change_dir(tree.join(self.at));
        let command = cmd!(sh, "make -C {tree} {words...} {at} {more...}");
        let command =
            toolchain::with_cache(command, self.build.context.store.root(), &self.build_dir.scratch);
        self.build_dir.compile(command, TIMEOUT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixture, assert_inputs_count};

    /// The recipe of a module with this source, built against a kernel with this text.
    fn recipe_with(kernel: &str, source: &str, at: &str, change: impl FnOnce(&mut Fixture)) -> Recipe {
        let fixture = Fixture::with(change);
        let context = fixture.context();
        let product = context.product(&Recipe::new("kernel", "x").with("text", kernel), |_| Ok(()));
        let kernel = BuiltKernel { product: product.expect("made"), release: "7.2-x".to_owned() };
        let dir = fixture.root.join("module");
        make_dir(&dir).expect("made");
        fs::write(dir.join("a.c"), source).expect("written");
        let source = SourceDir::copy_of(&dir, &fixture.root.join("copy")).expect("copied");
        let build = ModuleBuild { context: &context, guest: &fixture.guest, kernel: &kernel };
        let patches = context.patches_to(|file| file.starts_with("samples/a"));
        build.recipe(&source, at.into(), &patches).expect("a compiler")
    }

    #[test]
    fn every_input_of_modules_counts() {
        let base = recipe_with("kernel", "source", "outside", |_| ());
        let changed = [
            ("kernel", recipe_with("another", "source", "outside", |_| ())),
            ("source", recipe_with("kernel", "another", "outside", |_| ())),
            ("at", recipe_with("kernel", "source", "samples/a", |_| ())),
            ("patches", recipe_with("kernel", "source", "outside", |f| f.patch("samples/a/a.c"))),
            (
                "toolchain",
                recipe_with("kernel", "source", "outside", |f| f.guest.kernel.cross = String::new()),
            ),
            (
                "make",
                recipe_with("kernel", "source", "outside", |f| f.guest.kernel.make_arch = "x86".to_owned()),
            ),
        ];
        assert_inputs_count(&base, &["layout"], &changed);
        let other = recipe_with("kernel", "source", "outside", |f| f.patch("samples/b/b.c"));
        assert_eq!(other.digest(), base.digest());
    }
}
