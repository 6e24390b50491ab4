//! `goldtrace build`.

use clap::Args;

use super::options::{Guests, Images, Inputs, Place};
use super::status::{ExitStatus, Stop};
use crate::case::MissingGolden;
use crate::image::{PerfImage, Refresh};
use crate::run::PerfFor;

/// Build kernels, modules, perf and initramfs without running anything.
#[derive(Debug, Args)]
pub(super) struct Build {
    #[command(flatten)]
    guests: Guests,
    #[command(flatten)]
    images: Images,
    /// Ask the mirror for the newest packages now; otherwise found versions are kept for a week
    #[arg(long)]
    refresh: bool,
}

impl Build {
    pub(super) fn run(&self, place: &Place) -> Result<ExitStatus, Stop> {
        let project = place.project()?;
        let inputs = Inputs::load(&project, MissingGolden::IsAFault)?;
        let guests = self.guests.choose(&inputs.guests)?;
        let refresh = if self.refresh { Refresh::Now } else { Refresh::WhenOld };
        let lab = self.images.lab(&project, &inputs, &guests, refresh, PerfFor::Everything)?;
        for bench in lab.benches() {
            let image = &bench.image;
            anstream::println!("guest {}: Linux {}", bench.guest.name, image.kernel.release);
            anstream::println!("  kernel    {}", image.kernel.image());
            anstream::println!("  initramfs {}", image.initramfs);
            if let Some(PerfImage { perf, initramfs }) = &image.perf {
                let without = if perf.features.libtraceevent { "" } else { " (without libtraceevent)" };
                anstream::println!("  perf      {}{without}", perf.program());
                anstream::println!("  with perf {initramfs}");
            }
        }
        if let Some(perf) = lab.host_perf() {
            anstream::println!("host:\n  perf      {perf}");
        }
        Ok(ExitStatus::Success)
    }
}
