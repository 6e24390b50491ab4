//! The guest's root file system: an uncompressed cpio archive, the same bytes for the same inputs.

use std::fs;
use std::io::Write;

use camino::Utf8Path;
use cpio::newc::{Builder, trailer};

use super::applets;
use crate::context::BuildContext;
use crate::error::ImageError;
use crate::kernel::BuiltKernel;
use crate::modules::{BuiltModule, dependencies};
use crate::perf::Perf;
use crate::store::{Product, Recipe};
use guest::Guest;

/// What modprobe(8) reads in the kernel's directory of modules.
const DEPENDENCIES: &str = "modules.dep";

/// perf's configuration, in the home directory of the agent's commands.
const PERF_CONFIG: &str = ".perfconfig";
/// perf gives up a process's memory map after 500 ms, and reports say so from then on (tools/perf/util/synthetic-events.c):
/// a guest on a busy host needs longer. Nor does it need a copy of the kernel's symbols, which perf makes at the end of
/// the first recording (tools/perf/util/build-id.c): the guest decodes with its own /proc/kallsyms.
const PERF_CONFIG_TEXT: &str = "[core]\n\tproc-map-timeout = 60000\n[record]\n\tbuild-id = no-cache\n";

/// Directories that exist before `init` runs. The kernel makes /dev/console itself.
const DIRECTORIES: [&str; 6] = ["bin", "dev", "proc", "sys", "tmp", "lib"];

/// What an archive is made of.
pub(crate) struct Contents<'c> {
    /// The kernel that it is for.
    pub(crate) kernel: &'c BuiltKernel,
    /// The kernel's modules.
    pub(crate) modules: &'c [BuiltModule],
    /// The userland.
    pub(crate) busybox: &'c Product,
    /// The agent.
    pub(crate) agent: &'c Product,
    /// perf, for the archive of trials that need it: others boot faster without.
    pub(crate) perf: Option<&'c Perf>,
}

/// The archive as a product whose only file is `initramfs.cpio`.
///
/// # Errors
/// An applet that busybox lacks, a module that needs one that is not there, a file that cannot be read.
pub(crate) fn build(
    context: &BuildContext<'_>,
    guest: &Guest,
    contents: &Contents<'_>,
) -> Result<Product, ImageError> {
    let Contents { kernel, modules, busybox, agent, perf } = contents;
    let applets = applets::listed(context.project)?;
    let dependencies = dependencies(modules)?;
    let recipe = recipe(guest, contents, &applets, &dependencies)?;
    context.product(&recipe, |build_dir| {
        let mut archive = CpioArchive::new();
        for directory in DIRECTORIES {
            archive.directory(directory)?;
        }
        let program = read(&busybox.dir.join("busybox"))?;
        applets::check(&applets, &program)?;
        archive.file("bin/busybox", 0o755, &program)?;
        for applet in &applets {
            archive.link(&format!("bin/{applet}"), "busybox")?;
        }
        if let Some(perf) = perf {
            archive.file("bin/perf", 0o755, &read(&perf.program())?)?;
            archive.file(PERF_CONFIG, 0o644, PERF_CONFIG_TEXT.as_bytes())?;
        }
        archive.file("init", 0o755, &read(&agent.dir.join("init"))?)?;
        let directory = Utf8Path::new("lib/modules").join(&kernel.release);
        for module in *modules {
            let path = directory.join(&module.place);
            archive.directories_above(&path)?;
            archive.file(path.as_str(), 0o644, &read(&module.file)?)?;
        }
        let path = directory.join(DEPENDENCIES);
        archive.directories_above(&path)?;
        archive.file(path.as_str(), 0o644, dependencies.as_bytes())?;
        let path = build_dir.out.join("initramfs.cpio");
        fs::write(&path, archive.finish()?).map_err(|e| ImageError::file("write", path, e))
    })
}

fn recipe(
    guest: &Guest,
    contents: &Contents<'_>,
    applets: &[String],
    dependencies: &str,
) -> Result<Recipe, ImageError> {
    let Contents { kernel, modules, busybox, agent, perf } = contents;
    let list: String = modules.iter().map(|m| format!("{} {}\n", m.place, m.sha256)).collect();
    let name = format!("{}{}", guest.arch.name, if perf.is_some() { "-perf" } else { "" });
    let recipe = Recipe::new("initramfs", &name)
        .with("busybox", busybox.sha256("busybox")?)
        .with("agent", agent.sha256("init")?)
        .with("applets", applets.join(" "))
        .with("release", &kernel.release)
        .with("modules", list)
        .with("dependencies", dependencies)
        .with("layout", format!("3 {DIRECTORIES:?}"));
    match perf {
        Some(perf) => Ok(recipe.with("perf", perf.sha256()?).with("perf configuration", PERF_CONFIG_TEXT)),
        None => Ok(recipe),
    }
}

fn read(path: &Utf8Path) -> Result<Vec<u8>, ImageError> {
    fs::read(path).map_err(|e| ImageError::file("read", path, e))
}

/// A cpio archive in the making. Numbers of inodes follow the order of entries, and all times are 0.
struct CpioArchive {
    bytes: Vec<u8>,
    next_inode: u32,
    directories: Vec<String>,
}

impl CpioArchive {
    fn new() -> CpioArchive {
        CpioArchive { bytes: Vec::new(), next_inode: 1, directories: Vec::new() }
    }

    fn entry(&mut self, name: &str, mode: u32, links: u32, data: &[u8]) -> Result<(), ImageError> {
        let size = u32::try_from(data.len()).map_err(|_| {
            ImageError::InvalidInput(format!("`{name}` is too large for an initramfs: {} bytes", data.len()))
        })?;
        let builder = Builder::new(name).ino(self.next_inode).mode(mode).nlink(links).mtime(0);
        self.next_inode += 1;
        let fail = |e| ImageError::file("archive", name, e);
        let mut writer = builder.write(std::mem::take(&mut self.bytes), size);
        writer.write_all(data).map_err(fail)?;
        self.bytes = writer.finish().map_err(fail)?;
        Ok(())
    }

    fn directory(&mut self, name: &str) -> Result<(), ImageError> {
        self.directories.push(name.to_owned());
        self.entry(name, 0o040_755, 2, &[])
    }

    fn directories_above(&mut self, path: &Utf8Path) -> Result<(), ImageError> {
        let mut above: Vec<&Utf8Path> = path.ancestors().skip(1).filter(|p| !p.as_str().is_empty()).collect();
        above.reverse();
        for directory in above {
            if !self.directories.iter().any(|known| known == directory.as_str()) {
                self.directory(directory.as_str())?;
            }
        }
        Ok(())
    }

    fn file(&mut self, name: &str, permissions: u32, data: &[u8]) -> Result<(), ImageError> {
        self.entry(name, 0o100_000 | permissions, 1, data)
    }

    fn link(&mut self, name: &str, target: &str) -> Result<(), ImageError> {
        self.entry(name, 0o120_777, 1, target.as_bytes())
    }

    fn finish(self) -> Result<Vec<u8>, ImageError> {
        trailer(self.bytes).map_err(|e| ImageError::file("archive", "the trailer", e))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read};

    use super::*;
    use crate::perf::Features;
    use crate::progress::Silent;
    use crate::testing::{Fixture, assert_inputs_count};

    /// The texts of what an archive is made of.
    #[derive(Clone, Copy)]
    struct Parts {
        busybox: &'static str,
        agent: &'static str,
        perf: &'static str,
        applets: &'static str,
        release: &'static str,
        module: &'static str,
        dependencies: &'static str,
    }

    fn recipe_of(parts: Parts) -> Recipe {
        let fixture = Fixture::new();
        let product = |file: &'static str, text: &str| {
            fixture
                .store
                .product(&Recipe::new("part", file), &Silent, |dir| Ok(fs::write(dir.out.join(file), text)?))
        };
        let product = |file, text| product(file, text).expect("made");
        let kernel = BuiltKernel { product: product("kernel", "k"), release: parts.release.to_owned() };
        let module = BuiltModule {
            name: "a".to_owned(),
            file: "/a.ko".into(),
            preprocessed: None,
            sha256: parts.module.to_owned(),
            place: "updates/a.ko".into(),
            depends: Vec::new(),
        };
        let perf = Perf { product: product("perf", parts.perf), features: Features { libtraceevent: true } };
        let contents = Contents {
            kernel: &kernel,
            modules: &[module],
            busybox: &product("busybox", parts.busybox),
            agent: &product("init", parts.agent),
            perf: Some(&perf),
        };
        recipe(&fixture.guest, &contents, &[parts.applets.to_owned()], parts.dependencies).expect("whole")
    }

    #[test]
    fn every_input_of_an_initramfs_counts() {
        let base = Parts {
            busybox: "1",
            agent: "1",
            perf: "1",
            applets: "sh",
            release: "7.2-x",
            module: "1",
            dependencies: "a.ko:",
        };
        let changed = [
            ("busybox", Parts { busybox: "2", ..base }),
            ("agent", Parts { agent: "2", ..base }),
            ("perf", Parts { perf: "2", ..base }),
            ("applets", Parts { applets: "ls", ..base }),
            ("release", Parts { release: "7.2-y", ..base }),
            ("modules", Parts { module: "2", ..base }),
            ("dependencies", Parts { dependencies: "a.ko: b.ko", ..base }),
        ];
        let changed = changed.map(|(input, parts)| (input, recipe_of(parts)));
        assert_inputs_count(&recipe_of(base), &["layout", "perf configuration"], &changed);
    }

    #[test]
    fn archive_reads_back() {
        let mut archive = CpioArchive::new();
        archive.directory("bin").expect("added");
        archive.directories_above(Utf8Path::new("bin/a/b/file")).expect("added");
        archive.file("bin/a/b/file", 0o755, b"text").expect("added");
        archive.link("bin/sh", "a/b/file").expect("added");
        let mut rest = Cursor::new(archive.finish().expect("finished"));
        let mut found = Vec::new();
        loop {
            let mut reader = cpio::newc::Reader::new(rest).expect("an entry");
            if reader.entry().is_trailer() {
                break;
            }
            let mut data = String::new();
            let head = (reader.entry().name().to_owned(), reader.entry().mode(), reader.entry().mtime());
            reader.read_to_string(&mut data).expect("readable");
            found.push((head.0, head.1, head.2, data));
            rest = reader.finish().expect("the next");
        }
        let line = |name: &str, mode, data: &str| (name.to_owned(), mode, 0, data.to_owned());
        assert_eq!(
            found,
            [
                line("bin", 0o040_755, ""),
                line("bin/a", 0o040_755, ""),
                line("bin/a/b", 0o040_755, ""),
                line("bin/a/b/file", 0o100_755, "text"),
                line("bin/sh", 0o120_777, "a/b/file"),
            ]
        );
    }

    #[test]
    fn same_entries_are_the_same_bytes() {
        let make = || {
            let mut archive = CpioArchive::new();
            archive.directory("bin").expect("added");
            archive.file("bin/a", 0o755, b"text").expect("added");
            archive.finish().expect("finished")
        };
        // Times are the usual way for an archive to differ: `archive_reads_back` checks that they are 0.
        assert_eq!(make(), make());
    }
}
