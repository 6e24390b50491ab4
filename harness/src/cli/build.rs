//! `goldtrace build`.

use std::collections::BTreeMap;

use clap::Args;

use super::error::CommandError;
use super::options::{Guests, Images, Inputs, ProjectOption};
use super::status::Status;
use guest::Guest;
use image::{Refresh, Rootfs, RootfsSpec};
use trial::case::MissingGolden;
use trial::{Isolation, PreparedKernel, TrialPlan, Unprepared, rootfs_of};

/// Build kernels, modules, perf and initramfs without running anything
#[derive(Debug, Args)]
pub(super) struct Build {
    #[command(flatten)]
    guests: Guests,
    #[command(flatten)]
    images: Images,
    /// Ask the mirror for the newest packages now, not after the week for which versions are kept
    #[arg(long)]
    refresh: bool,
}

impl Build {
    pub(super) fn run(&self, option: &ProjectOption) -> Result<Status, CommandError> {
        let project = option.project()?;
        // Nothing is compared: a case may still lack its goldens.
        let inputs = Inputs::load(&project, MissingGolden::ExpectsNothing)?;
        let guests = self.guests.choose(&inputs.guests)?;
        let refresh = if self.refresh { Refresh::Now } else { Refresh::WhenOld };
        let plan = TrialPlan::make(&inputs.cases, &guests, &[])?;
        let prepared = self.images.guests(&project, &inputs, refresh, Isolation::Snapshot)?;
        for guest in &guests {
            let with_perf = RootfsSpec { perf: true, modules: Vec::new() };
            let mut all = BTreeMap::new();
            for spec in [RootfsSpec::default(), with_perf] {
                let rootfs = prepared.guest(guest, &spec)?.rootfs;
                all.insert(spec, rootfs);
            }
            for trial in plan.trials.iter().filter(|trial| trial.guest.name == guest.name) {
                match prepared.trial(trial) {
                    Ok(trial_guest) => drop(all.insert(rootfs_of(trial.case), trial_guest.rootfs)),
                    // It would be skipped: there is nothing that it boots.
                    Err(Unprepared::Skip(_)) => {}
                    Err(Unprepared::Failed(error)) => return Err(error.into()),
                }
            }
            print_guest(guest, &prepared.kernel(guest)?, &all)?;
        }
        prepared.check_patches()?;
        Ok(Status::Success)
    }
}

fn print_guest(
    guest: &Guest,
    kernel: &PreparedKernel,
    all: &BTreeMap<RootfsSpec, Rootfs>,
) -> Result<(), CommandError> {
    let kernel = &kernel.kernel;
    print_line!("guest {}: Linux {}", guest.name, kernel.release)?;
    print_line!("  kernel    {}", kernel.image())?;
    if let Some(perf) = all.values().find_map(|rootfs| rootfs.perf.as_ref()) {
        let without = if perf.features.libtraceevent { "" } else { " (without libtraceevent)" };
        print_line!("  perf      {}{without}", perf.program())?;
    }
    for Rootfs { initramfs, modules, perf, .. } in all.values() {
        let perf = if perf.is_some() { " with perf" } else { "" };
        let names: Vec<&str> = modules.iter().map(|module| module.name.as_str()).collect();
        print_line!("  initramfs {initramfs}{perf}, modules {}", names.join(" "))?;
    }
    Ok(())
}
