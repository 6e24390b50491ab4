//! Times from QEMU's start to a ready agent, beside the bare start of the same QEMU.
//!
//! `cargo bench --bench boot [-- [--perf] [GUEST]...]`; all guests without names, and with `--perf` the initramfs of trials
//! that need perf. Boots are one at a time; each figure is a median of [`BOOTS`] with the least and the greatest.

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use guest::Guest;
use image::RootfsSpec;
use trial::PreparedGuest;
use vm::Session;
use vm::qemu::{Console, MachineEvent, MachineLogs, Mode};

/// Boots that are measured, after one that fills the host's page cache.
const BOOTS: usize = 9;
/// How long a boot may take.
const TIMEOUT: Duration = Duration::from_secs(90);

fn main() {
    // Cargo adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let perf = arguments.iter().any(|word| word == "--perf");
    let names: Vec<&String> = arguments.iter().filter(|word| *word != "--perf").collect();
    for name in &names {
        let known = support::guests().iter().any(|guest| guest.name.as_str() == *name);
        assert!(known, "unknown guest `{name}`");
    }
    println!("{BOOTS} boots each, one at a time; seconds from QEMU's start: median (min, max)");
    let spec = RootfsSpec { perf, modules: Vec::new() };
    let is_chosen =
        |guest: &&Guest| names.is_empty() || names.iter().any(|name| *name == guest.name.as_str());
    for guest in support::guests().iter().filter(is_chosen) {
        let ready = &support::prepared().guest(guest, &spec).expect("made");
        let (mut boots, mut bare) = (Vec::new(), Vec::new());
        // The two alternate, so that a change in the host's load meets both.
        for round in 0..=BOOTS {
            let (boot, start) = (boot(ready), bare_start(ready));
            if round > 0 {
                boots.push(boot);
                bare.push(start);
            }
        }
        let ratio = median(&mut boots).as_secs_f64() / median(&mut bare).as_secs_f64();
        println!("{:10} agent ready      {}", ready.guest.name, spread(&mut boots));
        println!("{:10} QEMU alone (-S)  {}   ratio {ratio:.1}", "", spread(&mut bare));
    }
}

/// Until the agent has greeted.
fn boot(ready: &PreparedGuest) -> Duration {
    let logs = MachineLogs::unnamed().expect("files");
    let machine = ready.start(Mode::Agent, logs, Console::Watched).expect("QEMU starts");
    let session = Session::open(machine, &ready.kernel.kernel.release, ready.guest.cpus, TIMEOUT)
        .unwrap_or_else(|failed| panic!("{}\n{}", failed.error, failed.machine.stderr().unwrap_or_default()));
    let time = session.boot_time();
    let (_, ended) = session.end();
    ended.expect("the guest powers off");
    time
}

/// Until QEMU, stopped before the guest's first instruction, greets on its monitor.
fn bare_start(ready: &PreparedGuest) -> Duration {
    let logs = MachineLogs::unnamed().expect("files");
    let mut machine = ready.start(Mode::Stopped, logs, Console::Watched).expect("QEMU starts");
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match machine.event(deadline) {
            Some(MachineEvent::MonitorGreeted) => return machine.started().elapsed(),
            Some(MachineEvent::Exited(_)) | None => {
                panic!("no greeting from QEMU\n{}", machine.stderr().unwrap_or_default())
            }
            Some(_) => {}
        }
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// The median, the least and the greatest, in seconds.
fn spread(times: &mut [Duration]) -> String {
    let middle = median(times).as_secs_f64();
    let (min, max) = (times[0].as_secs_f64(), times[times.len() - 1].as_secs_f64());
    format!("{middle:.3} ({min:.3}, {max:.3})")
}
