//! Why a kernel, a module, perf or an initramfs cannot be had.
//!
//! Every error names what was attempted and on what; its [`ErrorKind`] decides goldtrace's exit status.

use std::io;

use arch::Arch;
use camino::Utf8PathBuf;
use vm::process::LoggedError;

/// What an error says about its cause, for the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// A patch of the user's does not apply to the kernel's source.
    PatchDoesNotApply,
    /// A config fragment has a line that sets nothing, or asks for what the kernel does not honour.
    InvalidConfig,
    /// Another file of the user's cannot be used: not a patch, not a module, no source of a module.
    InvalidInput,
    /// A module that the guest's kernel would not load.
    IncompatibleModule,
    /// The kernel, a module or perf does not compile.
    DoesNotCompile,
    /// A program that builds need is not installed.
    MissingProgram,
    /// A package cannot be found or downloaded.
    Download,
    /// The cache or another file cannot be read or written.
    Io,
    /// The host or a command of a build did not do its part in another way.
    Host,
    /// The user has interrupted.
    Interrupted,
}

/// Why an image cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The file given as a patch holds no diff.
    #[error(
        "`{path}` is not a patch: it has no line that begins with `+++ ` or `diff --git `\n\
         help: make one with `git diff` or `diff -u`"
    )]
    NotAPatch {
        /// The file.
        path: Utf8PathBuf,
    },
    /// A patch names a file that is not below the source's root.
    #[error("patch `{path}` names the file `{file}`, which is outside of the kernel's source")]
    OutsideSource {
        /// The patch.
        path: Utf8PathBuf,
        /// The file, without its first component.
        file: Utf8PathBuf,
    },
    /// A patch does not apply.
    #[error(
        "failed to apply patch `{patch}` to {source_package}:\n{}\nhelp: a patch must apply without fuzz, with `patch -p1`",
        crate::error::indented(details)
    )]
    PatchDoesNotApply {
        /// The patch's file.
        patch: Utf8PathBuf,
        /// What it was applied to.
        source_package: String,
        /// What patch(1) printed of its failure, and the hunks that do not apply.
        details: String,
    },
    /// A patch touches nothing of what was built.
    #[error(
        "patch `{patch}` changes nothing of what these trials boot: it touches only {}\nhelp: give a patch to the kernel, to \
         a directory of modules that a guest or case names, or to perf with a case that requires it",
        listed(touched)
    )]
    UnusedPatch {
        /// The patch's file.
        patch: Utf8PathBuf,
        /// The files that it touches, below the source's root.
        touched: Vec<Utf8PathBuf>,
    },
    /// A line of a config fragment sets nothing.
    #[error("{file}:{line}: neither CONFIG_NAME=value nor a comment: `{text}`")]
    InvalidFragment {
        /// The fragment's file, relative to the project.
        file: String,
        /// The line's number, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// A config fragment of the user's sets nothing.
    #[error("config fragment `{file}` sets nothing: it has no line `CONFIG_NAME=value`")]
    EmptyFragment {
        /// The fragment's file.
        file: Utf8PathBuf,
    },
    /// The kernel's configuration is not what the fragments ask for.
    #[error("{label}: the kernel's configuration is not what was asked for:\n{}", crate::error::indented(&symbols.join("\n")))]
    ConfigNotHonoured {
        /// The kernel.
        label: String,
        /// A sentence for each symbol.
        symbols: Vec<String>,
    },
    /// A build failed in the compiler, the linker or make.
    #[error(
        "failed to compile {label}: {status}\n{}\nthe whole output: {log}",
        crate::error::indented(&errors.join("\n"))
    )]
    DoesNotCompile {
        /// What was built.
        label: String,
        /// make's exit status.
        status: std::process::ExitStatus,
        /// The lines of the compiler's and make's errors, the last of many.
        errors: Vec<String>,
        /// The whole log.
        log: Utf8PathBuf,
    },
    /// A directory's Kbuild adds no module.
    #[error(
        "`{directory}` builds no module: its Kbuild or Makefile adds nothing to obj-m for this kernel's configuration"
    )]
    NoModules {
        /// The directory's name.
        directory: String,
    },
    /// A path in the kernel's source is not a directory of modules.
    #[error("`{path}` in the kernel's source is not a directory with a Kbuild or Makefile")]
    NotInSource {
        /// The path, from the source's root.
        path: Utf8PathBuf,
    },
    /// A directory of a module's source that is suspiciously large.
    #[error("`{directory}` has more than {limit} files: name the module's own directory")]
    TooManyFiles {
        /// The directory.
        directory: Utf8PathBuf,
        /// How many files there may be.
        limit: usize,
    },
    /// A file is not a kernel module.
    #[error("failed to read module `{file}`: {source}")]
    InvalidModule {
        /// The file.
        file: Utf8PathBuf,
        /// Why.
        source: kmod::ModuleError,
    },
    /// A guest would not load a module.
    #[error(
        "module `{file}` does not fit guest {guest}:\n    the module is for {}, vermagic `{}`\n    the guest's \
         kernel is for {}, vermagic `{}`\nhelp: give its source's directory (`directory:`) and it is built for each guest, \
         or name the guests that it is for (`guests:` of the case)",
        machine(module.machine), module.vermagic, machine(kernel.machine), kernel.vermagic
    )]
    IncompatibleModule {
        /// The module's file.
        file: Utf8PathBuf,
        /// The guest.
        guest: String,
        /// What the module was built for.
        module: Box<LoadKey>,
        /// What the guest's kernel loads.
        kernel: Box<LoadKey>,
    },
    /// A module uses symbols of one that the guest does not have.
    #[error("module {module} needs module {needs}, which the guest does not have: add it to `modules:`")]
    MissingDependency {
        /// The module.
        module: String,
        /// What it needs.
        needs: String,
    },
    /// Another input is wrong; the text says which and why.
    #[error("{0}")]
    InvalidInput(String),
    /// The list of applets names what busybox does not have.
    #[error("{file}: this busybox has no applet {}", names.join(", "))]
    MissingApplets {
        /// The list.
        file: &'static str,
        /// The names.
        names: Vec<String>,
    },
    /// A program that builds need is not installed.
    #[error("program `{program}` is missing\nhelp: install package {package}, or run `ci/bootstrap`")]
    MissingProgram {
        /// The program.
        program: String,
        /// The Debian package that has it.
        package: String,
    },
    /// The suite has no such package.
    #[error("Debian {suite} has no usable package {} (named in images/sources.yaml)", packages.join(", "))]
    UnknownPackage {
        /// The suite.
        suite: String,
        /// Each package with its architecture.
        packages: Vec<String>,
    },
    /// No suite has a kernel that will do.
    #[error("no suite of {file} has a usable kernel: {}", reasons.join("; "))]
    NoSuite {
        /// The file that names the suites.
        file: &'static str,
        /// Why each of them has none.
        reasons: Vec<String>,
    },
    /// A package could not be downloaded.
    #[error(
        "failed to download {package} {version}: {reason}\nhelp: run the command again, and what has arrived is kept; if \
         the mirror no longer has that version, ask for the newest with `goldtrace build --refresh`"
    )]
    Download {
        /// The package with its architecture.
        package: String,
        /// The version.
        version: String,
        /// What apt says.
        reason: String,
    },
    /// The index of a suite could not be read.
    #[error(
        "failed to read the package index of Debian {suite}: {reason}\nhelp: check the network and the mirror in the host's apt sources"
    )]
    Index {
        /// The suite.
        suite: String,
        /// What apt says.
        reason: String,
    },
    /// A package, or a file in the cache, lacks what it should hold.
    #[error("`{file}` holds no {what}")]
    Lacks {
        /// The file.
        file: Utf8PathBuf,
        /// What it should hold.
        what: String,
    },
    /// The host cannot build: the text says why.
    #[error("{0}")]
    Host(String),
    /// No environment variable says where the cache is.
    #[error("failed to choose a cache directory: none of GOLDTRACE_CACHE, XDG_CACHE_HOME and HOME is set")]
    NoCacheDirectory,
    /// Builds cannot work below the cache's path.
    #[error(
        "failed to use the cache directory `{root}`: {character:?} in its path would end a word for make, and the \
         kernel's make refuses it\nhelp: set GOLDTRACE_CACHE to a directory of letters, digits, `/`, `.`, `_` and `-`"
    )]
    CachePath {
        /// The cache's directory.
        root: Utf8PathBuf,
        /// The first such character.
        character: char,
    },
    /// Another process holds a lock for too long.
    #[error(
        "gave up after {seconds} s: another goldtrace holds {path}\nhelp: end it, or set GOLDTRACE_CACHE to another directory"
    )]
    LockTimeout {
        /// The lock's file.
        path: Utf8PathBuf,
        /// How long was waited.
        seconds: u64,
    },
    /// A build failed, and the file system is full.
    #[error(
        "no space to make {label}: {free_mib} MiB are free in {root}\nhelp: free some, or set GOLDTRACE_CACHE to a \
         directory on another disk (a build needs about 3 GiB)\n{source}"
    )]
    NoSpace {
        /// What was to be made.
        label: String,
        /// What is free, in MiB.
        free_mib: u64,
        /// The cache's directory.
        root: Utf8PathBuf,
        /// How the build failed.
        source: Box<ImageError>,
    },
    /// A command of a build failed.
    #[error(transparent)]
    Command(#[from] LoggedError),
    /// A file or directory could not be used.
    #[error("failed to {verb} `{path}`: {source}")]
    File {
        /// What was attempted.
        verb: &'static str,
        /// On what.
        path: Utf8PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// A short command failed, or the user has interrupted.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What a kernel compares before it loads a module (kernel/module/main.c, `elf_validity_check` and
/// `check_modinfo`, Linux 7.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadKey {
    /// `e_machine` of the ELF header.
    pub machine: u16,
    /// Release and options that change the layout of data, without the space at its end.
    pub vermagic: String,
}

impl ImageError {
    /// A file or directory could not be used.
    pub(crate) fn file(verb: &'static str, path: impl Into<Utf8PathBuf>, source: io::Error) -> ImageError {
        ImageError::File { verb, path: path.into(), source }
    }

    /// What the error says about its cause.
    pub fn kind(&self) -> ErrorKind {
        if self.is_interrupt() {
            return ErrorKind::Interrupted;
        }
        match self {
            ImageError::PatchDoesNotApply { .. } => ErrorKind::PatchDoesNotApply,
            ImageError::InvalidFragment { .. }
            | ImageError::EmptyFragment { .. }
            | ImageError::ConfigNotHonoured { .. } => ErrorKind::InvalidConfig,
            ImageError::DoesNotCompile { .. } => ErrorKind::DoesNotCompile,
            ImageError::NotAPatch { .. }
            | ImageError::OutsideSource { .. }
            | ImageError::UnusedPatch { .. }
            | ImageError::NoModules { .. }
            | ImageError::NotInSource { .. }
            | ImageError::TooManyFiles { .. }
            | ImageError::InvalidModule { .. }
            | ImageError::MissingApplets { .. }
            | ImageError::InvalidInput(_) => ErrorKind::InvalidInput,
            ImageError::IncompatibleModule { .. } | ImageError::MissingDependency { .. } => {
                ErrorKind::IncompatibleModule
            }
            ImageError::MissingProgram { .. } => ErrorKind::MissingProgram,
            ImageError::UnknownPackage { .. }
            | ImageError::NoSuite { .. }
            | ImageError::Download { .. }
            | ImageError::Index { .. } => ErrorKind::Download,
            ImageError::NoCacheDirectory
            | ImageError::LockTimeout { .. }
            | ImageError::NoSpace { .. }
            | ImageError::File { .. } => ErrorKind::Io,
            ImageError::CachePath { .. }
            | ImageError::Lacks { .. }
            | ImageError::Host(_)
            | ImageError::Command(_)
            | ImageError::Io(_) => ErrorKind::Host,
        }
    }

    /// Whether the cause is the user's interrupt.
    pub fn is_interrupt(&self) -> bool {
        match self {
            ImageError::Io(error)
            | ImageError::File { source: error, .. }
            | ImageError::Command(LoggedError::Io { error, .. }) => {
                error.kind() == io::ErrorKind::Interrupted
            }
            _ => false,
        }
    }
}

/// A machine's name, for people.
fn machine(number: u16) -> String {
    Arch::of_elf_machine(number).map_or_else(|| format!("ELF machine {number}"), |arch| arch.name.to_owned())
}

/// The first few paths.
fn listed(paths: &[Utf8PathBuf]) -> String {
    const SHOWN: usize = 3;
    let first = paths.iter().take(SHOWN).map(|path| path.as_str()).collect::<Vec<_>>().join(", ");
    match paths.len().saturating_sub(SHOWN) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Each line with four spaces before it.
pub(crate) fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
