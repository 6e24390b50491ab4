//! The command `goldtrace`.

use std::process::ExitCode;

use clap::Parser;
use goldtrace::cli::{Cli, Status};
use goldtrace::report::{ReportText, note};
use vm::process::interrupt;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(refuse(&error).code()),
    };
    if let Err(error) = interrupt::watch() {
        note(&ReportText::of(format_args!("error: failed to watch for interrupts: {error}\n")));
        return ExitCode::from(Status::Infrastructure.code());
    }
    ExitCode::from(cli.run().code())
}

/// Print the help that was asked for, or what is wrong with the command line.
fn refuse(error: &clap::Error) -> Status {
    match error.print() {
        Err(_) => Status::Infrastructure,
        Ok(()) if error.use_stderr() => Status::WrongInput,
        Ok(()) => Status::Success,
    }
}
