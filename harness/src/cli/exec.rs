//! `goldtrace exec`.

use std::io::{self, IsTerminal};
use std::time::Duration;

use clap::Args;

use super::error::CommandError;
use super::in_guest::{Connected, InGuest, Stdin};
use super::options::ProjectOption;
use super::status::Status;
use vm::Work;
use vm::process::shell_line;

const HELP: &str = "\
One word is a script for the guest's shell; several are a program and its arguments. The command starts in
/sys/kernel/tracing. Standard input is passed on to its end, unless it is a terminal (`goldtrace shell` is for those): give
it `< /dev/null` in a loop that reads its own.

Exit status: that of the command; 128 and the signal's number when a signal killed it; 124 when it ran into the timeout;
125 when goldtrace, a build or the guest failed; 130 when interrupted";

/// Run one command in a guest, with the image that trials boot, and perf
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct Exec {
    #[command(flatten)]
    guest: InGuest,
    /// How long the command may take
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = timeout)]
    timeout: Duration,
    /// The command
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

fn timeout(text: &str) -> Result<Duration, String> {
    formats::units::parse_duration(text).map(Duration::from_nanos).map_err(|error| error.to_string())
}

impl Exec {
    /// Run the command. The status is its own.
    pub(super) fn run(&self, option: &ProjectOption) -> Result<Status, CommandError> {
        Ok(self.guest.run(option, self.timeout, |running| {
            let script = self.script();
            let (work, stdin) = if io::stdin().is_terminal() {
                (Work::Run(script), None)
            } else {
                (Work::RunOpen(script), Some(Stdin::begin(false)))
            };
            running.run(work, self.timeout, Connected { stdin, ..Connected::default() })
        }))
    }

    /// The command as a script. Its exit status is that of the last command, as in any shell.
    fn script(&self) -> String {
        match self.command.as_slice() {
            [script] => format!("set +e +o pipefail\n{script}"),
            words => format!("exec {}", shell_line(words)),
        }
    }
}
