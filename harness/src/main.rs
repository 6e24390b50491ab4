//! The command `goldtrace`.

use std::process::ExitCode;

use clap::Parser;
use goldtrace::cli::Cli;
use vm::process::interrupt;

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Err(error) = interrupt::watch() {
        anstream::eprintln!("error: failed to watch for interrupts: {error}");
        return ExitCode::from(3);
    }
    ExitCode::from(cli.run().code())
}
