//! A guest's kernel and its modules.

use std::fs;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use xshell::cmd;

use crate::config::Fragments;
use crate::context::{BuildContext, PatchSet};
use crate::error::ImageError;
use crate::kept_tree::KeptTree;
use crate::source::SourceArchive;
use crate::store::{BuildDir, Product, Recipe};
use crate::toolchain;
use guest::Guest;

/// A built kernel.
#[derive(Debug, Clone)]
pub struct BuiltKernel {
    /// The product: `kernel`, `System.map`, `config`, `release` and `kbuild.tar.gz`.
    pub product: Product,
    /// What `uname -r` says in a guest that runs it. It carries the recipe's digest, so a guest
    /// that booted another kernel is noticed.
    pub release: String,
}

/// What is built, after the configuration. The modules themselves are not kept; with them comes
/// `Module.symvers`, which every later build of a module reads.
const TARGETS: [&str; 2] = ["vmlinux", "modules"];

/// What modules are built against, packed: headers, makefiles and programs of the build.
const KBUILD: &str = "kbuild.tar.gz";

/// What collects them from a built tree: the script with which the kernel makes distributions'
/// packages of headers.
const COLLECT_KBUILD: &str = "scripts/package/install-extmod-build";

/// Files kept from the build directory, with the name that each gets.
const KEPT: [(&str, &str); 3] =
    [("System.map", "System.map"), (".config", "config"), ("include/config/kernel.release", "release")];

const TIMEOUT: Duration = Duration::from_secs(80 * 60);

impl BuiltKernel {
    /// The image that QEMU boots.
    pub fn image(&self) -> Utf8PathBuf {
        self.product.dir.join("kernel")
    }

    /// Unpack what modules are built against into `to`, a directory that exists.
    ///
    /// # Errors
    /// When it cannot be unpacked.
    pub(crate) fn unpack_kbuild(&self, build_dir: &BuildDir<'_>, to: &Utf8Path) -> Result<(), ImageError> {
        let archive = self.product.dir.join(KBUILD);
        let sh = &build_dir.sh;
        build_dir.run(cmd!(sh, "tar --extract --gzip --file {archive} --directory {to}"), TIMEOUT)
    }

    /// What the kernel compares a module's `vermagic` with before it loads it: its release and the
    /// options that change the layout of its data (include/linux/vermagic.h, Linux 7.2). Without the
    /// space at its end.
    ///
    /// # Errors
    /// When the image cannot be read or holds no such text.
    pub fn vermagic(&self) -> Result<String, ImageError> {
        let path = self.image();
        let image = fs::read(&path).map_err(|e| ImageError::file("read", &path, e))?;
        vermagic(&image, &self.release)
            .ok_or_else(|| ImageError::Lacks { file: path, what: format!("vermagic of {}", self.release) })
    }

    /// The final configuration.
    ///
    /// # Errors
    /// When the cache cannot be read.
    pub fn config(&self) -> Result<String, ImageError> {
        let path = self.product.dir.join("config");
        fs::read_to_string(&path).map_err(|e| ImageError::file("read", path, e))
    }
}

/// Build the guest's kernel, or take it from the cache.
///
/// # Errors
/// A patch that does not apply, a config symbol that is not honoured (each is named), a build that
/// fails (with the log's last lines).
pub(crate) fn build(context: &BuildContext<'_>, guest: &Guest) -> Result<BuiltKernel, ImageError> {
    let wanted = wanted(context, guest)?;
    let (source, make) = (context.kernel_source(), KernelMake::new(guest));
    let patches = context.patches_to(|path| built_from(path, &guest.kernel.make_arch));
    let recipe = recipe(context, guest, &wanted, &patches)?;
    let unpatched = self::recipe(context, guest, &wanted, &PatchSet::default())?.digest();
    let local_version = format!("-goldtrace-{}", &recipe.digest().as_str()[..12]);
    let product = context.product(&recipe, |build_dir| {
        toolchain::require_all(&guest.kernel.cross)?;
        let unpack = || {
            let archive = SourceArchive::open(&source, context.store, build_dir)?;
            let tree = archive.unpack()?;
            archive.remove().map(|()| tree)
        };
        let build_in = |tree| {
            let words = make.words(&local_version);
            let build = KernelBuild { context, build_dir, tree, make: &make, words };
            build.configure(&wanted)?;
            build.compile()?;
            build.keep(&guest.kernel.image)?;
            build.keep_kbuild()
        };
        if patches.is_empty() {
            return build_in(unpack()?);
        }
        // The next patch is for the same kernel, most of the time.
        let mut kept = KeptTree::open(context.store, &unpatched, build_dir, unpack)?;
        kept.patch(build_dir, &source, &patches)?;
        let tree = kept.linux();
        kept.build(|| build_in(tree))
    })?;
    let path = product.dir.join("release");
    let release = fs::read_to_string(&path).map_err(|e| ImageError::file("read", path, e))?.trim().to_owned();
    Ok(BuiltKernel { product, release })
}

/// What the fragments of the guest and of the user ask for.
fn wanted(context: &BuildContext<'_>, guest: &Guest) -> Result<Fragments, ImageError> {
    let mut wanted = Fragments::default();
    for fragment in &guest.kernel.fragments {
        let file = format!("images/kernel/{fragment}");
        let text = fs::read_to_string(context.project.path(&file))
            .map_err(|e| ImageError::file("read config fragment", &file, e))?;
        wanted.add(&file, &text)?;
    }
    context.configs.iter().try_for_each(|fragment| wanted.add_users(fragment))?;
    Ok(wanted)
}

fn recipe(
    context: &BuildContext<'_>,
    guest: &Guest,
    wanted: &Fragments,
    patches: &PatchSet,
) -> Result<Recipe, ImageError> {
    let recipe = Recipe::new("kernel", guest.arch.name)
        .with("source", context.kernel_source().sha256())
        .with("patches", patches.key())
        .with("config", wanted.to_text())
        .with("toolchain", toolchain::identity(&guest.kernel.cross)?)
        .with("make", shell_words::join(KernelMake::new(guest).words("localversion")))
        .with("targets", TARGETS.join(" "))
        .with("kept", format!("{} {KEPT:?} {KBUILD} {COLLECT_KBUILD}", guest.kernel.image));
    Ok(recipe)
}

/// The words after `make` that say for which machine and how to build.
struct KernelMake {
    arch: String,
    cross: String,
}

impl KernelMake {
    fn new(guest: &Guest) -> KernelMake {
        KernelMake { arch: guest.kernel.make_arch.clone(), cross: guest.kernel.cross.clone() }
    }

    /// Names and times that would differ from build to build are fixed.
    fn words(&self, local_version: &str) -> Vec<String> {
        let mut words = toolchain::make_words(&self.arch, &self.cross);
        words.extend([
            format!("LOCALVERSION={local_version}"),
            "KBUILD_BUILD_USER=goldtrace".to_owned(),
            "KBUILD_BUILD_HOST=goldtrace".to_owned(),
            "KBUILD_BUILD_VERSION=1".to_owned(),
            "KBUILD_BUILD_TIMESTAMP=1970-01-01 00:00:00 UTC".to_owned(),
            // Kconfig puts the versions of these into the configuration, and nothing here is built with them.
            "RUSTC=absent".to_owned(),
            "BINDGEN=absent".to_owned(),
            "PAHOLE=absent".to_owned(),
        ]);
        words
    }
}

struct KernelBuild<'b> {
    context: &'b BuildContext<'b>,
    build_dir: &'b BuildDir<'b>,
    tree: Utf8PathBuf,
    make: &'b KernelMake,
    words: Vec<String>,
}

impl KernelBuild<'_> {
    fn configure(&self, wanted: &Fragments) -> Result<(), ImageError> {
        let fragment = self.build_dir.scratch.join("wanted.config");
        fs::write(&fragment, wanted.to_text()).map_err(|e| ImageError::file("write", &fragment, e))?;
        self.make(&["allnoconfig".to_owned(), format!("KCONFIG_ALLCONFIG={fragment}")])?;
        let path = self.tree.join(".config");
        let config = fs::read_to_string(&path).map_err(|e| ImageError::file("read", &path, e))?;
        let mut wrong = wanted.missing_from(&config);
        wrong.extend(built_in_samples(&config));
        if wrong.is_empty() {
            return Ok(());
        }
        Err(ImageError::ConfigNotHonoured { label: self.build_dir.label.clone(), symbols: wrong })
    }

    fn compile(&self) -> Result<(), ImageError> {
        let mut words = vec![toolchain::jobs()];
        words.extend(TARGETS.map(str::to_owned));
        self.make(&words)
    }

    fn make(&self, more: &[String]) -> Result<(), ImageError> {
        let (tree, words, sh) = (&self.tree, &self.words, &self.build_dir.sh);
        let command = cmd!(sh, "make -C {tree} {words...} {more...}");
        let above = tree.parent().unwrap_or(tree);
        let command = toolchain::with_cache(command, self.context.store.root(), above);
        self.build_dir.compile(command, TIMEOUT)
    }

    fn keep(&self, image: &str) -> Result<(), ImageError> {
        let out = &self.build_dir.out;
        let copy = |from: &Utf8Path, to: &Utf8Path| {
            fs::copy(from, to).map(drop).map_err(|e| ImageError::file("copy", from, e))
        };
        copy(&self.tree.join(image), &out.join("kernel"))?;
        for (from, to) in KEPT {
            copy(&self.tree.join(from), &out.join(to))?;
        }
        Ok(())
    }

    fn keep_kbuild(&self) -> Result<(), ImageError> {
        let BuildDir { out, scratch, .. } = self.build_dir;
        let directory = scratch.join("kbuild");
        let sh = self.build_dir.sh.clone();
        sh.change_dir(&self.tree);
        // The script builds the host's programs again where the two compilers differ: it is meant for
        // a package that is used on the target.
        let command = cmd!(sh, "sh {COLLECT_KBUILD} {directory}")
            .env("srctree", ".")
            .env("SRCARCH", &self.make.arch)
            .env("CC", "cc")
            .env("HOSTCC", "cc");
        self.build_dir.run(command, TIMEOUT)?;
        // It is unpacked soon, and once for each directory of modules.
        let gzip = "--use-compress-program=gzip -1";
        self.build_dir
            .run(cmd!(sh, "tar --create {gzip} --file {out}/{KBUILD} --directory {directory} ."), TIMEOUT)
    }
}

/// Whether a kernel for `make_arch` is built from the file at `path`. A patch to other files alone leaves the kernel as
/// it is.
fn built_from(path: &Utf8Path, make_arch: &str) -> bool {
    let in_directory =
        |above: &str| path.strip_prefix(above).is_ok_and(|below| below.components().count() > 1);
    // samples/Kconfig and samples/Makefile, arch/Kconfig and Documentation/Kconfig are part of the configuration.
    let sample = in_directory("samples");
    let other_arch = in_directory("arch") && !path.starts_with(format!("arch/{make_arch}"));
    let documentation =
        path.starts_with("Documentation") && !matches!(path.file_name(), Some("Kconfig" | "Makefile"));
    let user_program = ["tools/perf", "tools/testing"].iter().any(|tool| path.starts_with(tool));
    !sample && !other_arch && !documentation && !user_program
}

/// Sample modules that `config` has built into the kernel: a patch to one would not change it.
fn built_in_samples(config: &str) -> Vec<String> {
    let built_in = |line: &&str| line.starts_with("CONFIG_SAMPLE_") && line.ends_with("=y");
    let sentence = |line: &str| format!("{line}: samples are built as modules, never into the kernel");
    config.lines().filter(built_in).map(sentence).collect()
}

/// The NUL-terminated text in `image` that begins with the release and a space.
fn vermagic(image: &[u8], release: &str) -> Option<String> {
    let start = format!("\0{release} ");
    let at = memchr::memmem::find(image, start.as_bytes())? + 1;
    let length = memchr::memchr(0, &image[at..])?;
    let text = std::str::from_utf8(&image[at..at + length]).ok()?;
    Some(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigFragment;
    use crate::testing::{Fixture, assert_inputs_count};

    fn recipe_with(change: impl FnOnce(&mut Fixture)) -> Recipe {
        let fixture = Fixture::with(change);
        let context = fixture.context();
        let wanted = wanted(&context, &fixture.guest).expect("readable");
        let patches = context.patches_to(|path| built_from(path, &fixture.guest.kernel.make_arch));
        recipe(&context, &fixture.guest, &wanted, &patches).expect("a compiler")
    }

    #[test]
    fn every_input_of_a_kernel_counts() {
        let fragment = |fixture: &mut Fixture, text: &str| {
            let path = fixture.root.join("my.config");
            fs::write(&path, text).expect("written");
            fixture.configs.push(ConfigFragment::load(&path).expect("valid"));
        };
        let base = recipe_with(|_| ());
        let changed = [
            ("source", recipe_with(|f| f.sources.kernel.sha256 = "another".to_owned())),
            ("patches", recipe_with(|f| f.patch("kernel/sched/core.c"))),
            ("config", recipe_with(|f| fragment(f, "CONFIG_KASAN=y\n"))),
            ("toolchain", recipe_with(|f| f.guest.kernel.cross = String::new())),
            ("make", recipe_with(|f| f.guest.kernel.make_arch = "x86".to_owned())),
            ("kept", recipe_with(|f| f.guest.kernel.image = "bzImage".to_owned())),
        ];
        assert_inputs_count(&base, &["targets"], &changed);
        let project = |f: &mut Fixture| {
            fs::write(f.root.join("images/kernel/common.config"), "CONFIG_SMP=n\n").expect("written");
        };
        assert_ne!(recipe_with(project).digest(), base.digest());
        // What changes no kernel does not count.
        assert_eq!(recipe_with(|f| f.patch("tools/perf/perf.c")).digest(), base.digest());
        assert_eq!(recipe_with(|f| fragment(f, "CONFIG_IKCONFIG=y\n")).digest(), base.digest());
    }

    #[test]
    fn image_without_a_vermagic_lacks_it() {
        let fixture = Fixture::new();
        let product =
            fixture.store.product(&Recipe::new("kernel", "x"), &crate::progress::Silent, |build_dir| {
                fs::write(build_dir.out.join("kernel"), "no kernel").map_err(ImageError::from)
            });
        let kernel = BuiltKernel { product: product.expect("made"), release: "7.2-x".to_owned() };
        let error = kernel.vermagic().expect_err("none");
        assert!(matches!(error, ImageError::Lacks { .. }), "{error}");
        assert!(error.to_string().ends_with("/kernel` holds no vermagic of 7.2-x"), "{error}");
    }

    #[test]
    fn vermagic_is_not_the_banner() {
        let image = b"..\0Linux version 7.2-x (goldtrace)\0\x007.2-x\0\x007.2-x SMP preempt mod_unload \0..";
        assert_eq!(vermagic(image, "7.2-x").as_deref(), Some("7.2-x SMP preempt mod_unload"));
        assert_eq!(vermagic(image, "7.2"), None);
        assert_eq!(vermagic(b"\x007.2 SMP", "7.2"), None);
    }

    #[test]
    fn what_no_kernel_is_built_from() {
        let from = |path: &str| built_from(path.into(), "powerpc");
        for path in [
            "kernel/trace/trace.c",
            "samples/Kconfig",
            "tools/objtool/check.c",
            "arch/powerpc/perf/vpa-dtl.c",
            "arch/Kconfig",
            "Documentation/Kconfig",
            "Makefile",
        ] {
            assert!(from(path), "{path}");
        }
        for path in [
            "samples/trace_events/Makefile",
            "tools/perf/perf.c",
            "tools/testing/selftests/ftrace/ftracetest",
            "Documentation/trace/histogram-design.rst",
            "arch/x86/kernel/traps.c",
            "arch/powerpc64/a.c",
        ] {
            assert!(!from(path), "{path}");
        }
        assert!(built_from("arch/x86/kernel/traps.c".into(), "x86"));
    }

    #[test]
    fn built_in_sample_is_named() {
        let found = built_in_samples("CONFIG_SAMPLES=y\nCONFIG_SAMPLE_KOBJECT=y\nCONFIG_SAMPLE_X=m\n");
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("CONFIG_SAMPLE_KOBJECT=y"), "{found:?}");
    }
}
