//! `goldtrace bench boot`.

use std::time::{Duration, Instant};

use clap::Args;

use super::super::options::{Guests, Images, Inputs, Place};
use super::super::status::{ExitStatus, Stop};
use super::{median, spread};
use vm::Session;
use image::{Refresh, RootfsSpec};
use vm::qemu::{Console, MachineEvent, Mode};
use trial::{self, PreparedGuests, Needs};

#[derive(Debug, Args)]
pub(super) struct BootBench {
    #[command(flatten)]
    guests: Guests,
    #[command(flatten)]
    images: Images,
    /// How many boots are measured, after one that is not
    #[arg(long, default_value = "9", value_parser = clap::value_parser!(u16).range(7..=1000))]
    boots: u16,
    /// Boot what trials that require perf boot
    #[arg(long)]
    perf: bool,
}

const LIMIT: Duration = Duration::from_secs(90);

impl BootBench {
    pub(super) fn run(&self, place: &Place) -> Result<ExitStatus, Stop> {
        let project = place.project()?;
        let inputs = Inputs::without_cases(&project)?;
        let guests = self.guests.choose(&inputs.guests)?;
        let spec = RootfsSpec { perf: self.perf, modules: Vec::new() };
        let needs = if self.perf { Needs::perf() } else { Needs::nothing() };
        let lab = self.images.prepare(&project, &inputs, &guests, Refresh::WhenOld, needs)?;
        anstream::println!(
            "{} boots each, one at a time; seconds from QEMU's start: median (min, max)",
            self.boots
        );
        for guest in guests {
            let (mut ready, mut bare) = (Vec::new(), Vec::new());
            // The two alternate, so that a change in the host's load meets both. The first of each
            // fills the host's page cache and does not count.
            for round in 0..=self.boots {
                let boot = boot(&lab, guest, &spec)?;
                let start = bare_start(&lab, guest)?;
                if round > 0 {
                    ready.push(boot);
                    bare.push(start);
                }
            }
            let ratio = median(&mut ready).as_secs_f64() / median(&mut bare).as_secs_f64();
            anstream::println!("{:10} agent ready      {}", guest.name, spread(&mut ready));
            anstream::println!("{:10} QEMU alone (-S)  {}   ratio {ratio:.1}", "", spread(&mut bare));
        }
        Ok(ExitStatus::Success)
    }
}

fn bench<'l>(lab: &'l PreparedGuests, guest: &guest::Guest) -> &'l trial::PreparedGuest {
    lab.guest(&guest.name)
}

fn boot(lab: &PreparedGuests, guest: &guest::Guest, spec: &RootfsSpec) -> Result<Duration, Stop> {
    let bench = bench(lab, guest);
    let logs = Logs::new()?;
    let machine = bench
        .start(spec, Mode::Agent, logs.path(), Console::Watched)
        .map_err(|e| Stop::Infrastructure(e.into()))?;
    let session =
        Session::open(machine, &bench.image.kernel.release, guest.cpus, LIMIT).map_err(|failed| {
            Stop::Infrastructure(anyhow::anyhow!("{}\n{}", failed.error, failed.machine.stderr().unwrap_or_default()))
        })?;
    let time = session.boot_time();
    let (_, ended) = session.end();
    ended.map_err(|e| Stop::Infrastructure(e.into()))?;
    Ok(time)
}

/// Until QEMU, stopped before the guest's first instruction, greets on its monitor.
fn bare_start(lab: &PreparedGuests, guest: &guest::Guest) -> Result<Duration, Stop> {
    let logs = Logs::new()?;
    let mut machine = bench(lab, guest)
        .start(&RootfsSpec::default(), Mode::Stopped, logs.path(), Console::Watched)
        .map_err(|e| Stop::Infrastructure(e.into()))?;
    let deadline = Instant::now() + LIMIT;
    loop {
        match machine.event(deadline) {
            Some(MachineEvent::MonitorGreeted) => return Ok(machine.started().elapsed()),
            Some(MachineEvent::Exited(_)) | None => {
                return Err(Stop::Infrastructure(anyhow::anyhow!(
                    "QEMU did not greet\n{}",
                    machine.stderr().unwrap_or_default()
                )));
            }
            Some(_) => {}
        }
    }
}

struct Logs(tempfile::TempDir);

impl Logs {
    fn new() -> Result<Logs, Stop> {
        Ok(Logs(tempfile::tempdir()?))
    }

    fn path(&self) -> &camino::Utf8Path {
        camino::Utf8Path::from_path(self.0.path()).expect("a temporary folder has a UTF-8 name")
    }
}
