//! `goldtrace build`.

use clap::Args;

use super::error::CommandError;
use super::options::{Guests, Images, Inputs, ProjectOption};
use super::status::Status;
use image::{Refresh, Rootfs};
use trial::case::MissingGolden;
use trial::{Needs, TrialPlan};

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
        let needs = Needs::everything(&plan.trials);
        let prepared = self.images.prepare(&project, &inputs, &guests, refresh, needs)?;
        for ready in prepared.guests() {
            let image = &ready.image;
            anstream::println!("guest {}: Linux {}", ready.guest.name, image.kernel.release);
            anstream::println!("  kernel    {}", image.kernel.image());
            if let Some(perf) = &image.perf {
                let without = if perf.features.libtraceevent { "" } else { " (without libtraceevent)" };
                anstream::println!("  perf      {}{without}", perf.program());
            }
            for (spec, rootfs) in image.made() {
                let Rootfs { initramfs, modules } = rootfs.as_ref();
                let perf = if spec.perf { " with perf" } else { "" };
                let names: Vec<&str> = modules.iter().map(|module| module.name.as_str()).collect();
                anstream::println!("  initramfs {initramfs}{perf}, modules {}", names.join(" "));
            }
        }
        if let Some(perf) = prepared.host_perf() {
            anstream::println!("host:\n  perf      {perf}");
        }
        Ok(Status::Success)
    }
}
