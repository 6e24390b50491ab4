//! `goldtrace bench`: one module a measurement.

mod boot;
mod compare;
mod dtl;
mod sample;

use std::time::Duration;

use clap::{Args, Subcommand};

use super::options::Place;
use super::status::{ExitStatus, Stop};

/// Measurements.
#[derive(Debug, Args)]
pub(super) struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// From QEMU's start to a ready agent, beside the bare start of the same QEMU
    Boot(boot::BootBench),
    /// The comparison of a long capture with its golden, beside `diff -u` of two captures
    Compare(compare::CompareBench),
    /// Writing the dispatch trace log while somebody reads it, beside memcpy of as many bytes
    Dtl(dtl::DtlBench),
}

impl Bench {
    pub(super) fn run(&self, place: &Place) -> Result<ExitStatus, Stop> {
        match &self.what {
            What::Boot(bench) => bench.run(place),
            What::Compare(bench) => bench.run(),
            What::Dtl(bench) => bench.run(),
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
