//! The compilers that kernels and perf are built with, and the compiler cache.

use xshell::{Cmd, Shell, cmd};

use crate::error::ImageError;
use crate::store::{BuildDir, Store};
use vm::process;

/// The compiler and the linker, by their own words.
pub(super) fn version(sh: &Shell, cross: &str) -> Result<String, ImageError> {
    let (gcc, ld) = (format!("{cross}gcc"), format!("{cross}ld"));
    let first = |text: String| text.lines().next().unwrap_or_default().to_owned();
    let gcc = ask(cmd!(sh, "{gcc} --version"))?;
    let ld = ask(cmd!(sh, "{ld} --version"))?;
    Ok(format!("{}\n{}", first(gcc), first(ld)))
}

/// Debian's name for the machine that the compiler's programs run on, such as `x86_64-linux-gnu`:
/// the folders of its libraries are named so.
pub(super) fn multiarch(cross: &str) -> Result<String, ImageError> {
    let sh = Shell::new().map_err(|e| ImageError::Other(e.to_string()))?;
    let gcc = format!("{cross}gcc");
    let name = ask(cmd!(sh, "{gcc} -print-multiarch"))?;
    if name.is_empty() {
        return Err(ImageError::Other(format!(
            "`{gcc}` names no multiarch folder: it is no compiler of Debian's; run `ci/bootstrap`"
        )));
    }
    Ok(name)
}

fn ask(command: Cmd<'_>) -> Result<String, ImageError> {
    process::read(command).map_err(|error| {
        ImageError::Other(format!("{error}\nno working compiler for this guest: run `ci/bootstrap`"))
    })
}

/// The words for make that say for which machine to build, and that have the compiler's objects cached.
pub(super) fn make_words(arch: &str, cross: &str) -> Vec<String> {
    vec![format!("ARCH={arch}"), format!("CROSS_COMPILE={cross}"), format!("CC=ccache {cross}gcc")]
}

/// `command`, a make, with the environment of every build. The objects of earlier builds with the
/// same compiler, flags and text are taken from ccache: a patched source costs the files that the
/// patch touches.
pub(super) fn with_cache<'c>(command: Cmd<'c>, store: &Store, build_dir: &BuildDir<'_>) -> Cmd<'c> {
    command
        .env("CCACHE_DIR", store.root().join("ccache"))
        .env("CCACHE_BASEDIR", &build_dir.scratch)
        .env("CCACHE_NOHASHDIR", "1")
        .env("CCACHE_MAXSIZE", "2G")
        .env("LC_ALL", "C")
}

/// The word for make that has it use all of the host's CPUs.
pub(super) fn jobs() -> String {
    format!("-j{}", std::thread::available_parallelism().map_or(1, usize::from))
}
