//! Errors that end a command, each with the exit status that it gives.

use camino::{Utf8Path, Utf8PathBuf};

use super::plot_error::PlotError;
use super::status::Status;
use crate::report::{Colour, PrintError, note, render_diagnostics};
use diagnostic::Diagnostic;
use guest::NoProject;
use image::{ErrorKind, ImageError};
use trial::{NoTrial, PrepareError};
use vm::process::interrupt;

/// Why a command went no further.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommandError {
    /// Input files have errors; each is shown with its line.
    #[error("errors in input files")]
    Files(Vec<Diagnostic>),
    #[error("`{old}` is now called `{new}`")]
    RenamedOption { old: &'static str, new: &'static str },
    #[error(transparent)]
    NoProject(#[from] NoProject),
    #[error(transparent)]
    NoTrial(#[from] NoTrial),
    #[error("unknown guest `{name}` (known guests: {})", known.join(", "))]
    UnknownGuest { name: String, known: Vec<String> },
    #[error("a command or a shell runs in one guest\nhelp: choose it with --guest: {}", known.join(", "))]
    NoGuestChosen { known: Vec<String> },
    #[error("unknown case `{name}`\nhelp: {help}")]
    UnknownCase { name: String, help: String },
    #[error("no case matches `{}`\nhelp: {}", filters.join("`, `"), help_for_cases(filters))]
    NoCaseMatches { filters: Vec<String> },
    #[error(
        "goldens are written by people, not by CI (the variable CI is set)\nhelp: run it yourself, read the diff and \
         commit it; `CI=false goldtrace ...` writes them all the same"
    )]
    BlessInCi,
    #[error(
        "goldens are not written from another kernel than the project's own ({})\nhelp: run the cases without --bless, \
         and read the difference", changes.join(", ")
    )]
    BlessOtherKernel { changes: Vec<String> },
    #[error(
        "`{name}` cannot name a case\nhelp: use letters, digits, `.`, `_` and `-`, and `/` between directories"
    )]
    InvalidCaseName { name: String },
    #[error("{directory} exists already\nhelp: choose another name, or edit its case.yaml")]
    CaseExists { directory: Utf8PathBuf },
    #[error(
        "`{directory}` is not a directory of a module's source: it has no Kbuild and no Makefile\nhelp: give one with \
         --directory (a line `obj-m += NAME.o` in its Kbuild builds NAME.c)"
    )]
    NotAModuleDirectory { directory: Utf8PathBuf },
    #[error("failed to read module `{file}`: {source}")]
    InvalidModule { file: Utf8PathBuf, source: kmod::ModuleError },
    #[error(transparent)]
    Plot(#[from] PlotError),
    /// A file given with `--patch` or `--config` cannot be used.
    #[error(transparent)]
    Change(ImageError),
    #[error(transparent)]
    Image(#[from] ImageError),
    /// What a guest boots could not be made.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// A guest could not be started, or QEMU failed under a shell.
    #[error("{0}")]
    Guest(String),
    #[error("failed to {verb} `{path}`: {source}")]
    File { verb: &'static str, path: Utf8PathBuf, source: std::io::Error },
    /// What the command prints cannot be printed.
    #[error(transparent)]
    Print(#[from] PrintError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// What to try instead of filters that match no case.
fn help_for_cases(filters: &[String]) -> String {
    match filters.iter().find_map(|filter| filter.split_once('@')) {
        Some((case, _)) if !case.is_empty() => {
            format!("goldens belong to cases, which have no guest in their name: `goldtrace bless {case}`")
        }
        _ => "`goldtrace list` prints all cases".to_owned(),
    }
}

impl CommandError {
    /// A file or directory could not be used.
    pub(super) fn file(verb: &'static str, path: &Utf8Path, source: std::io::Error) -> CommandError {
        CommandError::File { verb, path: path.to_owned(), source }
    }

    /// The exit status that says what kind of error it is.
    pub(super) fn status(&self) -> Status {
        match self {
            CommandError::Files(_)
            | CommandError::RenamedOption { .. }
            | CommandError::NoProject(_)
            | CommandError::NoTrial(_)
            | CommandError::Change(_)
            | CommandError::UnknownGuest { .. }
            | CommandError::NoGuestChosen { .. }
            | CommandError::UnknownCase { .. }
            | CommandError::NoCaseMatches { .. }
            | CommandError::BlessInCi
            | CommandError::BlessOtherKernel { .. }
            | CommandError::InvalidCaseName { .. }
            | CommandError::CaseExists { .. }
            | CommandError::NotAModuleDirectory { .. }
            | CommandError::InvalidModule { .. } => Status::WrongInput,
            CommandError::Plot(PlotError::Write { .. })
            | CommandError::Guest(_)
            | CommandError::File { .. }
            | CommandError::Print(_)
            | CommandError::Io(_) => Status::Infrastructure,
            CommandError::Plot(_) => Status::WrongInput,
            CommandError::Image(error) => of_kind(error.kind()),
            CommandError::Prepare(error) => of_kind(error.kind()),
        }
    }

    /// Print it; its status.
    pub(super) fn report(&self) -> Status {
        let status = if interrupt::happened() { Status::Interrupted } else { self.status() };
        match self {
            _ if status == Status::Interrupted => note_line!("interrupted"),
            CommandError::Files(errors) => {
                note(&render_diagnostics(errors, Colour::of(&std::io::stderr())));
            }
            error => note_line!("error: {error}"),
        }
        status
    }
}

impl From<Vec<Diagnostic>> for CommandError {
    fn from(errors: Vec<Diagnostic>) -> CommandError {
        CommandError::Files(errors)
    }
}

/// The exit status for an error of a build.
fn of_kind(kind: ErrorKind) -> Status {
    match kind {
        ErrorKind::PatchDoesNotApply
        | ErrorKind::InvalidConfig
        | ErrorKind::InvalidInput
        | ErrorKind::IncompatibleModule => Status::WrongInput,
        ErrorKind::DoesNotCompile => Status::DoesNotCompile,
        ErrorKind::MissingProgram | ErrorKind::Download | ErrorKind::Io | ErrorKind::Host => {
            Status::Infrastructure
        }
        ErrorKind::Interrupted => Status::Interrupted,
    }
}
