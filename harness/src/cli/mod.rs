//! The command line: one module a subcommand.

/// A line of text, with every character visible.
macro_rules! line {
    ($($arguments:tt)*) => {
        crate::report::ReportText::of(format_args!("{}\n", format_args!($($arguments)*)))
    };
}

/// Print a line on standard output, with every character visible.
macro_rules! print_line {
    ($($arguments:tt)*) => {
        crate::report::print(&line!($($arguments)*))
    };
}

/// Print a line on standard error, with every character visible.
macro_rules! note_line {
    ($($arguments:tt)*) => {
        crate::report::note(&line!($($arguments)*))
    };
}

mod bench;
mod bless;
mod build;
mod ci;
mod doctor;
mod dtl_plot;
mod error;
mod exec;
mod in_guest;
mod lint;
mod list;
mod new;
mod options;
mod plot_error;
mod run;
mod shell;
mod status;

use clap::{Parser, Subcommand};

pub use status::Status;

/// Golden tests of the Linux kernel's tracing, in x86-64 and ppc64le guests.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true)]
pub struct Cli {
    #[command(flatten)]
    project: options::ProjectOption,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Run),
    List(list::List),
    Bless(bless::Bless),
    Lint(lint::Lint),
    New(new::New),
    Build(build::Build),
    Exec(exec::Exec),
    Shell(shell::Shell),
    Bench(bench::Bench),
    Doctor(doctor::Doctor),
    DtlPlot(dtl_plot::DtlPlot),
}

impl Cli {
    /// Run the command. An error is printed, and the status is that of its kind.
    pub fn run(&self) -> Status {
        let result = match &self.command {
            Command::Run(command) => command.run(&self.project),
            Command::List(command) => command.run(&self.project),
            Command::Bless(command) => command.run(&self.project),
            Command::Lint(command) => command.run(&self.project),
            Command::New(command) => command.run(&self.project),
            Command::Build(command) => command.run(&self.project),
            Command::Exec(command) => command.run(&self.project),
            Command::Shell(command) => command.run(&self.project),
            Command::Bench(command) => command.run(&self.project),
            Command::Doctor(command) => command.run(&self.project),
            Command::DtlPlot(command) => command.run(),
        };
        result.unwrap_or_else(|error| error.report())
    }
}
