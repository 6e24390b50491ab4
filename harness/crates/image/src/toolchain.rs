//! The programs that kernels, modules and perf are built with, and the compiler cache.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use camino::Utf8Path;
use vm::process;
use xshell::{Cmd, Shell, cmd};

use crate::digest::file_digest;
use crate::environment::{Network, clean};
use crate::error::ImageError;

/// Programs that builds need, each with the Debian package that has it. The host's own compiler is
/// among them; those for other machines follow from the guests' files.
pub const PROGRAMS: [(&str, &str); 14] = [
    ("apt-get", "apt"),
    ("bc", "bc"),
    ("bison", "bison"),
    ("ccache", "ccache"),
    ("dpkg-deb", "dpkg"),
    ("flex", "flex"),
    ("gcc", "gcc"),
    ("ld", "binutils"),
    ("make", "make"),
    ("patch", "patch"),
    ("perl", "perl"),
    ("pkg-config", "pkgconf"),
    ("tar", "tar"),
    ("xz", "xz-utils"),
];

/// What has the compiler and the linker for another machine, by the prefix of their names, such as
/// `powerpc64le-linux-gnu-`: each program with its package.
pub fn cross_programs(cross: &str) -> Vec<(String, String)> {
    if cross.is_empty() {
        return Vec::new();
    }
    let machine = cross.trim_end_matches('-');
    vec![
        (format!("{cross}gcc"), format!("gcc-{machine}")),
        (format!("{cross}ld"), format!("binutils-{machine}")),
    ]
}

/// The Debian package that has `program`, as far as builds need it.
fn package_of(program: &str) -> String {
    if let Some((_, package)) = PROGRAMS.iter().find(|(known, _)| *known == program) {
        return (*package).to_owned();
    }
    match program.rsplit_once('-') {
        Some((machine, "gcc")) => format!("gcc-{machine}"),
        Some((machine, "ld" | "strip")) => format!("binutils-{machine}"),
        _ => program.to_owned(),
    }
}

/// Whether `program` is installed.
///
/// # Errors
/// [`ImageError::MissingProgram`].
pub(crate) fn require(program: &str) -> Result<(), ImageError> {
    match which::which(program) {
        Ok(_) => Ok(()),
        Err(_) => {
            Err(ImageError::MissingProgram { program: program.to_owned(), package: package_of(program) })
        }
    }
}

/// Whether everything that builds for one machine need is installed.
///
/// # Errors
/// [`ImageError::MissingProgram`], the first one.
pub(crate) fn require_all(cross: &str) -> Result<(), ImageError> {
    for (program, _) in PROGRAMS {
        require(program)?;
    }
    cross_programs(cross).iter().try_for_each(|(program, _)| require(program))
}

/// What builds for one machine are made with, as it counts in the key of a product: compiler, linker and the libc that
/// programs are linked with; and those of the host, as a kernel's build compiles programs for itself.
///
/// # Errors
/// A missing compiler, or no libc for it.
pub(crate) fn identity(cross: &str) -> Result<String, ImageError> {
    // Products ask for it often, and it does not change while this runs: an upgrade meanwhile would fail builds anyway.
    static KNOWN: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(identity) = known.get(cross) {
        return Ok(identity.clone());
    }
    let target = identity_of(cross)?;
    let identity = if cross.is_empty() { target } else { format!("{target}host {}", identity_of("")?) };
    known.insert(cross.to_owned(), identity.clone());
    Ok(identity)
}

fn identity_of(cross: &str) -> Result<String, ImageError> {
    let sh = shell()?;
    let (gcc, ld) = (format!("{cross}gcc"), format!("{cross}ld"));
    let first = |text: String| text.lines().next().unwrap_or_default().to_owned();
    let compiler = first(ask(&gcc, cmd!(sh, "{gcc} --version"))?);
    let linker = first(ask(&ld, cmd!(sh, "{ld} --version"))?);
    // gcc prints the bare name of a file that it does not find.
    let libc = ask(&gcc, cmd!(sh, "{gcc} -print-file-name=libc.a"))?;
    let libc = file_digest(Utf8Path::new(&libc)).map_err(|error| {
        let package = if cross.is_empty() { "libc6-dev".to_owned() } else { format!("the libc6-dev of {cross}gcc") };
        ImageError::Host(format!(
            "failed to read the libc of `{gcc}`, `{libc}`: {error}\nhelp: install {package}, or run `ci/bootstrap`"
        ))
    })?;
    Ok(format!("{compiler}\n{linker}\nlibc {}\n", libc.as_str()))
}

/// Debian's name for the machine that the compiler's programs run on, such as `x86_64-linux-gnu`:
/// the directories of its libraries are named so.
pub(crate) fn multiarch(cross: &str) -> Result<String, ImageError> {
    let sh = shell()?;
    let gcc = format!("{cross}gcc");
    let name = ask(&gcc, cmd!(sh, "{gcc} -print-multiarch"))?;
    if name.is_empty() {
        return Err(ImageError::Host(format!(
            "`{gcc} -print-multiarch` prints nothing: it is not one of Debian's compilers\nhelp: run `ci/bootstrap`"
        )));
    }
    Ok(name)
}

/// What a program prints, in a clean environment.
pub(crate) fn ask(program: &str, command: Cmd<'_>) -> Result<String, ImageError> {
    require(program)?;
    let sh = shell()?;
    Ok(process::read(clean(command, &sh, Network::Unused))?)
}

/// A shell to make commands with.
pub(crate) fn shell() -> Result<Shell, ImageError> {
    Shell::new().map_err(|e| ImageError::Host(e.to_string()))
}

/// The words for make that say for which machine to build, and that have the compiler's objects cached.
pub(crate) fn make_words(arch: &str, cross: &str) -> Vec<String> {
    vec![format!("ARCH={arch}"), format!("CROSS_COMPILE={cross}"), format!("CC=ccache {cross}gcc")]
}

/// `command`, a make below the directory `scratch`, with the compiler's cache. The objects of
/// earlier builds with the same compiler, flags and text are taken from ccache, which keeps them below
/// `cache`: a patched source costs the files that the patch touches.
pub(crate) fn with_cache<'c>(command: Cmd<'c>, cache: &Utf8Path, scratch: &Utf8Path) -> Cmd<'c> {
    command
        .env("CCACHE_DIR", cache.join("ccache"))
        .env("CCACHE_BASEDIR", scratch)
        .env("CCACHE_NOHASHDIR", "1")
        .env("CCACHE_MAXSIZE", "2G")
        // Neither the host's settings nor any in the cache's directory (ccache(1), CONFIGURATION).
        .env("CCACHE_CONFIGPATH", "/dev/null")
}

/// The word for make that has it use all of the host's CPUs.
pub(crate) fn jobs() -> String {
    format!("-j{}", std::thread::available_parallelism().map_or(1, usize::from))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn missing_program_names_its_package() {
        assert_eq!(package_of("pkg-config"), "pkgconf");
        assert_eq!(package_of("powerpc64le-linux-gnu-strip"), "binutils-powerpc64le-linux-gnu");
        assert_eq!(
            cross_programs("powerpc64le-linux-gnu-")[0],
            ("powerpc64le-linux-gnu-gcc".to_owned(), "gcc-powerpc64le-linux-gnu".to_owned())
        );
        let error = identity("no-such-machine-").expect_err("no compiler");
        assert_eq!(
            error.to_string(),
            "program `no-such-machine-gcc` is missing\n\
             help: install package gcc-no-such-machine, or run `ci/bootstrap`"
        );
    }

    /// A compiler and a linker of this name, whose libc has this text.
    fn fake(dir: &Utf8Path, cross: &str, version: &str, libc: Option<&str>) {
        let write = |name: &str, script: &str| {
            let path = dir.join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("executable");
        };
        let path = dir.join("libc.a");
        let found = if libc.is_some() { path.as_str() } else { "libc.a" };
        let print = format!("case $1 in --version) echo '{version}';; *) echo {found};; esac");
        write(&format!("{cross}gcc"), &print);
        write(&format!("{cross}ld"), "echo ld 1");
        if let Some(text) = libc {
            std::fs::write(path, text).expect("written");
        }
    }

    #[test]
    fn compiler_linker_and_libc_count_and_those_of_the_host_too() {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = Utf8Path::from_path(dir.path()).expect("UTF-8");
        let cross = format!("{dir}/x-");
        let identity = |version: &str, libc: &str| {
            fake(dir, "x-", version, Some(libc));
            identity_of(&cross).expect("there")
        };
        let first = identity("gcc 12", "a");
        assert!(first.starts_with("gcc 12\nld 1\nlibc ca978112ca1b"), "{first}");
        assert_ne!(identity("gcc 13", "a"), first);
        assert_ne!(identity("gcc 12", "b"), first);
        let whole = super::identity(&cross).expect("there");
        assert!(whole.ends_with(&format!("host {}", super::identity("").expect("there"))), "{whole}");
    }

    #[test]
    fn compiler_without_a_libc_is_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = Utf8Path::from_path(dir.path()).expect("UTF-8");
        fake(dir, "x-", "gcc 12", None);
        let text = identity_of(&format!("{dir}/x-")).expect_err("no libc").to_string();
        assert!(text.starts_with(&format!("failed to read the libc of `{dir}/x-gcc`, `libc.a`: ")), "{text}");
        assert!(text.contains("help: install the libc6-dev of "), "{text}");
    }
}
