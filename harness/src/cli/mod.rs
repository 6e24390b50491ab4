//! The command line: one module a subcommand.

mod bless;
mod build;
mod doctor;
mod dtl_plot;
mod lint;
mod list;
mod new;
mod options;
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
    /// Boot the guests, run the cases and compare what they print with the goldens
    Run(run::Run),
    /// Show cases and guests, and why a trial would be skipped
    List(list::List),
    /// Write goldens from the last run's artefacts; boots nothing
    Bless(bless::Bless),
    /// Find goldens left behind, parts that no guest selects, holes that let much through
    Lint(lint::Lint),
    /// Write a new case, for a kernel module of yours
    New(new::New),
    /// Build kernels, modules, perf and initramfs without running anything
    Build(build::Build),
    /// A shell in a guest, with the same image that trials boot, and perf
    Shell(shell::Shell),
    /// What the host has, what is missing, which accelerator each guest gets and why
    Doctor(doctor::Doctor),
    /// Draw the dispatches and preempts that `perf script` shows of a recording
    DtlPlot(dtl_plot::DtlPlot),
}

impl Cli {
    /// Do what the command line says. Errors are printed; the status says what kind they were.
    pub fn run(&self) -> Status {
        let result = match &self.command {
            Command::Run(command) => command.run(&self.project),
            Command::List(command) => command.run(&self.project),
            Command::Bless(command) => command.run(&self.project),
            Command::Lint(command) => command.run(&self.project),
            Command::New(command) => command.run(&self.project),
            Command::Build(command) => command.run(&self.project),
            Command::Shell(command) => command.run(&self.project),
            Command::Doctor(command) => command.run(&self.project),
            Command::DtlPlot(command) => command.run(),
        };
        result.unwrap_or_else(|stop| stop.report())
    }
}
