//! `goldtrace shell`.

use std::io::{self, IsTerminal};
use std::time::Duration;

use clap::Args;

use super::error::CommandError;
use super::in_guest::{Connected, InGuest, KernelLines, Stdin, Terminal};
use super::options::ProjectOption;
use super::status::Status;
use vm::Work;
use vm::process::shell_line;

/// A person may take this long: a year.
const TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);

const HELP: &str = "\
The shell starts in /sys/kernel/tracing, on a terminal of its own where standard input is a terminal; otherwise it reads its
commands from standard input. What the kernel prints comes on standard error, in lines that begin with `kernel: `.
`exit`, the input's end or, on a terminal, Ctrl-] ends the guest.

Exit status: that of the shell, 0 after Ctrl-]; 128 and the signal's number when a signal killed it; 125 when goldtrace, a build or
the guest failed; 130 when interrupted";

/// Open a shell in a guest, with the image that trials boot, and perf
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct Shell {
    #[command(flatten)]
    guest: InGuest,
}

impl Shell {
    pub(super) fn run(&self, option: &ProjectOption) -> Result<Status, CommandError> {
        Ok(self.guest.run(option, TIMEOUT, |running| {
            let is_terminal = io::stdin().is_terminal();
            let kernel = Some(KernelLines::begin(running.machine(), is_terminal)?);
            if !is_terminal {
                let connected = Connected { stdin: Some(Stdin::begin(false)), kernel, terminal: None };
                return running.run(Work::RunOpen("exec sh".to_owned()), TIMEOUT, connected);
            }
            let name = running.guest().clone();
            note_line!("guest {name}: `exit` or Ctrl-] ends it");
            let terminal = Terminal::take()?;
            let work = Work::Terminal { script: script(name.as_str()), size: terminal.size() };
            let connected = Connected { stdin: Some(Stdin::begin(true)), kernel, terminal: Some(terminal) };
            running.run(work, TIMEOUT, connected)
        }))
    }
}

/// A shell whose prompt names the guest, on our kind of terminal.
fn script(guest: &str) -> String {
    let terminal = std::env::var("TERM").unwrap_or_else(|_| "vt100".to_owned());
    let settings = [format!("TERM={terminal}"), format!("PS1={guest}:\\w\\$ ")];
    format!("export {}\nexec sh -i", shell_line(settings))
}
