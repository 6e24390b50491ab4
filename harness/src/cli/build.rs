//! `goldtrace build`.

use clap::Args;

use super::options::{Guests, Images, Inputs, Place};
use super::status::{ExitStatus, Stop};
use crate::case::MissingGolden;
use crate::image::Refresh;

/// Build kernels, modules and initramfs without running anything.
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
        let lab = self.images.lab(&project, &inputs, &guests, refresh)?;
        for bench in lab.benches() {
            let image = &bench.image;
            anstream::println!("guest {}: Linux {}", bench.guest.name, image.kernel.release);
            anstream::println!("  kernel    {}", image.kernel.image());
            anstream::println!("  initramfs {}", image.initramfs);
        }
        Ok(ExitStatus::Success)
    }
}
