//! A guest's kernel and its modules.

use std::fs;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use xshell::{Shell, cmd};

use super::apt::Deb;
use super::error::ImageError;
use super::kconfig::Wanted;
use super::linux_source::Archive;
use super::patch::Patch;
use super::store::{Product, Recipe, Store, Workshop, make_dir};
use super::toolchain;
use super::watch::Watch;
use crate::guest::Guest;
use crate::process::{Logged, run_logged};
use crate::project::Project;

/// A built kernel.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// The product: `kernel`, `System.map`, `config`, `release` and `modules/`.
    pub product: Product,
    /// What `uname -r` says in a guest that runs it. It carries the recipe's digest, so a guest
    /// that booted another kernel is noticed.
    pub release: String,
}

/// What is built, after the configuration.
const TARGETS: [&str; 2] = ["vmlinux", "modules"];

/// Files kept from the build folder, with the name that each gets.
const KEPT: [(&str, &str); 3] =
    [("System.map", "System.map"), (".config", "config"), ("include/config/kernel.release", "release")];

/// What stands here is no part of a kernel: a patch to perf alone leaves the kernel as it is.
const NOT_BUILT_FROM: &str = "tools/perf";

const LIMIT: Duration = Duration::from_secs(80 * 60);

impl Kernel {
    /// The image that QEMU boots.
    pub fn image(&self) -> Utf8PathBuf {
        self.product.dir.join("kernel")
    }

    /// The modules, relative to the product's folder.
    pub fn modules(&self) -> impl Iterator<Item = &Utf8Path> {
        self.product.files().filter(|file| file.extension() == Some("ko"))
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
pub(super) fn build(
    store: &Store,
    project: &Project,
    guest: &Guest,
    source: &Deb<'_>,
    patches: &[Patch],
    watch: &dyn Watch,
) -> Result<Kernel, ImageError> {
    let sh = Shell::new().map_err(|e| ImageError::Other(e.to_string()))?;
    let mut wanted = Wanted::default();
    for fragment in &guest.kernel.fragments {
        let file = format!("images/kernel/{fragment}");
        let text = fs::read_to_string(project.path(&file)).map_err(|e| ImageError::file("read", &file, e))?;
        wanted.add(&text).map_err(|fault| ImageError::Other(format!("{file}:{fault}")))?;
    }
    let relevant = |patch: &Patch| patch.part(|path| !path.starts_with(NOT_BUILT_FROM));
    let patches: Vec<Patch> = patches.iter().filter_map(relevant).collect();
    let make = Make::new(guest);
    let recipe = Recipe::new("kernel", guest.name.as_str())
        .with("source", source.sha256())
        .with("patches", patches.iter().map(|p| format!("{}\n", p.sha256())).collect::<String>())
        .with("config", wanted.to_text())
        .with("compiler", toolchain::version(&sh, &guest.kernel.cross)?)
        .with("make", shell_words::join(make.words("localversion")))
        .with("targets", TARGETS.join(" "))
        .with("kept", format!("{} {KEPT:?}", guest.kernel.image));
    let local_version = format!("-goldtrace-{}", &recipe.digest().as_str()[..12]);
    let product = store.product(&recipe, watch, |workshop| {
        let archive = Archive::open(&sh, workshop, source)?;
        let tree = archive.unpack()?;
        archive.remove()?;
        for patch in &patches {
            patch.apply(&sh, workshop, &tree)?;
        }
        let build = Build { sh: &sh, workshop, tree, words: make.words(&local_version), store };
        build.configure(&wanted)?;
        build.compile()?;
        build.keep(&guest.kernel.image)
    })?;
    let path = product.dir.join("release");
    let release = fs::read_to_string(&path).map_err(|e| ImageError::file("read", path, e))?.trim().to_owned();
    Ok(Kernel { product, release })
}

/// The words after `make` that say for which machine and how to build.
struct Make {
    arch: String,
    cross: String,
}

impl Make {
    fn new(guest: &Guest) -> Make {
        Make { arch: guest.kernel.make_arch.clone(), cross: guest.kernel.cross.clone() }
    }

    /// Names and times that would differ from build to build are fixed.
    fn words(&self, local_version: &str) -> Vec<String> {
        vec![
            format!("ARCH={}", self.arch),
            format!("CROSS_COMPILE={}", self.cross),
            toolchain::cached_compiler(&self.cross),
            format!("LOCALVERSION={local_version}"),
            "KBUILD_BUILD_USER=goldtrace".to_owned(),
            "KBUILD_BUILD_HOST=goldtrace".to_owned(),
            "KBUILD_BUILD_VERSION=1".to_owned(),
            "KBUILD_BUILD_TIMESTAMP=1970-01-01 00:00:00 UTC".to_owned(),
        ]
    }
}

struct Build<'b> {
    sh: &'b Shell,
    workshop: &'b Workshop<'b>,
    tree: Utf8PathBuf,
    words: Vec<String>,
    store: &'b Store,
}

impl Build<'_> {
    fn configure(&self, wanted: &Wanted) -> Result<(), ImageError> {
        let fragment = self.workshop.scratch.join("wanted.config");
        fs::write(&fragment, wanted.to_text()).map_err(|e| ImageError::file("write", &fragment, e))?;
        self.make(&["allnoconfig".to_owned(), format!("KCONFIG_ALLCONFIG={fragment}")])?;
        let path = self.tree.join(".config");
        let config = fs::read_to_string(&path).map_err(|e| ImageError::file("read", &path, e))?;
        let missing = wanted.missing_from(&config);
        if missing.is_empty() {
            return Ok(());
        }
        let list: String = missing.iter().map(|m| format!("\n    {m}")).collect();
        Err(ImageError::Other(format!(
            "{}: the kernel's configuration is not what images/kernel/ asks for:{list}",
            self.workshop.label
        )))
    }

    fn compile(&self) -> Result<(), ImageError> {
        let mut words = vec![toolchain::jobs()];
        words.extend(TARGETS.map(str::to_owned));
        self.make(&words)
    }

    fn make(&self, more: &[String]) -> Result<(), ImageError> {
        let Workshop { log, label, watch, .. } = self.workshop;
        let (tree, words) = (&self.tree, &self.words);
        let command = cmd!(self.sh, "make -C {tree} {words...} {more...}");
        let command = toolchain::with_cache(command, self.store, self.workshop);
        run_logged(Logged { command, log, limit: LIMIT }, |line| watch.line(label, line))?;
        Ok(())
    }

    fn keep(&self, image: &str) -> Result<(), ImageError> {
        let out = &self.workshop.out;
        let copy = |from: &Utf8Path, to: &Utf8Path| {
            fs::copy(from, to).map(drop).map_err(|e| ImageError::file("copy", from, e))
        };
        copy(&self.tree.join(image), &out.join("kernel"))?;
        for (from, to) in KEPT {
            copy(&self.tree.join(from), &out.join(to))?;
        }
        let order = self.tree.join("modules.order");
        let list = fs::read_to_string(&order).map_err(|e| ImageError::file("read", &order, e))?;
        for object in list.lines() {
            let module = Utf8Path::new(object).with_extension("ko");
            let to = out.join("modules").join(&module);
            make_dir(to.parent().expect("a module stands in a folder"))?;
            copy(&self.tree.join(&module), &to)?;
        }
        Ok(())
    }
}
