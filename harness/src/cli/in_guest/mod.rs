//! One command in a guest that nothing else has touched, with our standard streams: what `exec` and `shell` share.

mod files;
mod kernel_lines;
mod running;
mod stdin;
mod terminal;

use std::time::Duration;

use clap::Args;

use self::files::Copied;
pub(super) use self::kernel_lines::KernelLines;
pub(super) use self::running::{Connected, Running};
pub(super) use self::stdin::Stdin;
pub(super) use self::terminal::Terminal;
use super::error::CommandError;
use super::options::{CaseModules, Guests, Images, IsolateOption, ProjectOption};
use super::status::Status;
use image::{Refresh, RootfsSpec};
use vm::StepEnd;

/// The exit statuses that are not the command's own, as timeout(1) has them.
const TIMED_OUT: u8 = 124;
const FAILED: u8 = 125;
/// What is added to the number of the signal that killed the command, as sh(1) does.
const SIGNAL: u32 = 128;

/// Which guest, what it has, and which files go in and out.
#[derive(Debug, Args)]
pub(super) struct InGuest {
    #[command(flatten)]
    guests: Guests,
    #[command(flatten)]
    images: Images,
    #[command(flatten)]
    modules: CaseModules,
    /// Copy this file into the guest first (repeatable) [default PATH: /tmp and the file's name]
    #[arg(long, value_name = "FILE[:PATH]")]
    put: Vec<Copied>,
    /// Copy this file of the guest out at the end (repeatable) [default FILE: the path's last part]
    #[arg(long, value_name = "PATH[:FILE]")]
    get: Vec<Copied>,
    /// How the guest is had that nothing else has touched
    #[arg(long, value_enum, default_value = "snapshot")]
    isolate: IsolateOption,
}

impl InGuest {
    /// Start the guest, have `run` run a command of this timeout in it, and end it. The status is that of the command.
    pub(super) fn run(
        &self,
        option: &ProjectOption,
        timeout: Duration,
        run: impl FnOnce(&mut Running) -> Result<Option<StepEnd>, CommandError>,
    ) -> Status {
        match self.execute(option, timeout, run) {
            Ok(status) => Status::OfCommand(status),
            Err(error) => match error.report() {
                Status::Interrupted => Status::Interrupted,
                _ => Status::OfCommand(FAILED),
            },
        }
    }

    fn execute(
        &self,
        option: &ProjectOption,
        timeout: Duration,
        run: impl FnOnce(&mut Running) -> Result<Option<StepEnd>, CommandError>,
    ) -> Result<u8, CommandError> {
        let project = option.project()?;
        let inputs = self.modules.inputs(&project)?;
        let guest = self.guests.choose_one(&inputs.guests)?;
        let files = self.put.iter().map(Copied::read).collect::<Result<Vec<_>, _>>()?;
        let spec = RootfsSpec { perf: true, modules: self.modules.choose(&inputs.cases)? };
        let guests = self.images.guests(&project, &inputs, Refresh::WhenOld, self.isolate.into())?;
        let prepared = guests.with_snapshot(guests.guest(guest, &spec)?, &spec)?;
        guests.check_patches()?;
        let mut running = Running::start(&prepared)?;
        for file in &files {
            running.write(file)?;
        }
        let end = run(&mut running)?;
        for copied in &self.get {
            running.read(copied)?;
        }
        running.end();
        Ok(end.map_or(0, |end| status_of(&end, timeout)))
    }
}

/// The exit status for how a command ended. What is not its own is said.
fn status_of(end: &StepEnd, timeout: Duration) -> u8 {
    match end {
        StepEnd::Exited(status) => u8::try_from(*status).unwrap_or(FAILED),
        StepEnd::Signalled(signal) => u8::try_from(SIGNAL + signal).unwrap_or(FAILED),
        StepEnd::TimedOut => {
            note_line!("error: the command was killed: it took longer than {timeout:?}");
            TIMED_OUT
        }
        StepEnd::Flooded | StepEnd::Errno(_) => {
            note_line!("error: the command could not be run to its end: {end}");
            FAILED
        }
    }
}
