//! `goldtrace bench`.

use std::time::{Duration, Instant};

use clap::Args;

use super::error::CommandError;
use super::options::{Guests, Images, Inputs, ProjectOption};
use super::status::Status;
use image::{Refresh, RootfsSpec};
use trial::{Isolation, PreparedGuest};
use vm::qemu::{Machine, MachineEvent, MachineLogs, Mode};
use vm::{Request, Session, StepEnd, Work};

/// How long QEMU may take to greet on its monitor.
const TIMEOUT: Duration = Duration::from_secs(90);
/// The command whose answer is waited for.
const COMMAND: &str = "uname -r";

/// Measure how long guests take to start, to be restored and to answer, beside the bare start of the same QEMU
///
/// All is measured by turns, one guest at a time, so that a change in the host's load meets every figure. Times are in
/// seconds from the start of QEMU: the median, the least and the greatest, and the median as a multiple of QEMU's own.
#[derive(Debug, Args)]
pub(super) struct Bench {
    #[command(flatten)]
    guests: Guests,
    #[command(flatten)]
    images: Images,
    /// Measure guests with perf, as trials of the vpa_dtl PMU have
    #[arg(long)]
    perf: bool,
    /// How many times each is measured
    #[arg(long, value_name = "N", default_value = "9", value_parser = clap::value_parser!(u32).range(1..=1000))]
    times: u32,
}

/// What is measured, in the order of [`Bench::measure`].
const FIGURES: [&str; 6] = [
    "QEMU alone, stopped",
    "boot to the agent's greeting",
    "restore to the agent's answer",
    "restore to a first command's answer",
    "one more command (from its request)",
    "power off (from its request)",
];

impl Bench {
    pub(super) fn run(&self, option: &ProjectOption) -> Result<Status, CommandError> {
        let project = option.project()?;
        let inputs = Inputs::without_cases(&project)?;
        let guests = self.images.guests(&project, &inputs, Refresh::WhenOld, Isolation::Snapshot)?;
        let spec = RootfsSpec { perf: self.perf, modules: Vec::new() };
        for guest in self.guests.choose(&inputs.guests)? {
            let prepared = guests.with_snapshot(guests.guest(guest, &spec)?, &spec)?;
            let booting = prepared.clone().booting();
            let mut times: [Vec<Duration>; FIGURES.len()] = Default::default();
            // The first round fills the host's page cache.
            for round in 0..=self.times {
                let figures = measure(&prepared, &booting)?;
                if round > 0 {
                    times.iter_mut().zip(figures).for_each(|(times, figure)| times.push(figure));
                }
            }
            print_line!("guest {}: {} times each, median (min, max) in seconds", guest.name, self.times)?;
            times.iter_mut().for_each(|times| times.sort_unstable());
            let bare = median(&times[0]).as_secs_f64();
            for (what, times) in FIGURES.iter().zip(&times) {
                let [middle, min, max] = [median(times), times[0], times[times.len() - 1]];
                let [middle, min, max] = [middle, min, max].map(|time| time.as_secs_f64());
                print_line!("  {what:36} {middle:.3} ({min:.3}, {max:.3})  {:5.1}x", middle / bare)?;
            }
        }
        guests.check_patches()?;
        Ok(Status::Success)
    }
}

fn median(sorted: &[Duration]) -> Duration {
    sorted[sorted.len() / 2]
}

/// All figures once.
fn measure(
    prepared: &PreparedGuest,
    booting: &PreparedGuest,
) -> Result<[Duration; FIGURES.len()], CommandError> {
    let bare = bare_start(prepared)?;
    let boot = booting.start_session().map_err(CommandError::Guest)?.boot_time();
    let mut session = prepared.start_session().map_err(CommandError::Guest)?;
    let restored = session.boot_time();
    answer(&mut session)?;
    let first = session.machine().started().elapsed();
    let begin = Instant::now();
    answer(&mut session)?;
    let more = begin.elapsed();
    let begin = Instant::now();
    let (_, ended) = session.end();
    ended.map_err(|error| CommandError::Guest(error.to_string()))?;
    Ok([bare, boot, restored, first, more, begin.elapsed()])
}

/// Have a command run.
fn answer(session: &mut Session) -> Result<(), CommandError> {
    let answer = session.request(&Request {
        work: Work::Run(COMMAND.to_owned()),
        cwd: "/".to_owned(),
        timeout: TIMEOUT,
        output_limit: 1 << 16,
    });
    match answer.map_err(|error| CommandError::Guest(error.to_string()))?.end {
        StepEnd::Exited(0) => Ok(()),
        end => Err(CommandError::Guest(format!("`{COMMAND}` in the guest: {end}"))),
    }
}

/// Until QEMU, stopped before the guest's first instruction, greets on its monitor.
fn bare_start(prepared: &PreparedGuest) -> Result<Duration, CommandError> {
    let logs = MachineLogs::unnamed()?;
    let started = prepared.start(Mode::Stopped, logs);
    let mut machine: Machine = started.map_err(|error| CommandError::Guest(error.to_string()))?;
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match machine.event(deadline) {
            Some(MachineEvent::MonitorGreeted) => return Ok(machine.started().elapsed()),
            Some(MachineEvent::Exited(_)) | None => {
                let said = machine.stderr().unwrap_or_default();
                return Err(CommandError::Guest(format!("no greeting of QEMU's monitor\n{said}")));
            }
            Some(_) => {}
        }
    }
}
