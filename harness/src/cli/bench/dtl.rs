//! `goldtrace bench dtl`.
//!
//! The writer of the dispatch trace log against a reader that polls as the kernel's timer does, both
//! on this host and in the memory of no guest: what is measured is the writing itself. Beside it,
//! `memcpy` of as many bytes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;

use super::super::status::{ExitStatus, Stop};
use super::{median, spread};
use crate::dtl::model::Kernel;
use crate::dtl::{ENTRY_SIZE, Entry, Log, UNREAD_MAX};

#[derive(Debug, Args)]
pub(super) struct DtlBench {
    /// How many entries are written
    #[arg(long, default_value = "1000000", value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    entries: u32,
    /// How often each measurement is made; the median counts
    #[arg(long, default_value = "5", value_parser = clap::value_parser!(u16).range(1..=100))]
    rounds: u16,
}

impl DtlBench {
    pub(super) fn run(&self) -> Result<ExitStatus, Stop> {
        self.all().map_err(Stop::Infrastructure)?;
        Ok(ExitStatus::Success)
    }

    fn all(&self) -> anyhow::Result<()> {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        // The two alternate, so that a change in the host's load meets both. The first round warms up.
        for round in 0..=self.rounds {
            let written = written(self.entries)?;
            let copied = copied(self.entries as usize);
            if round > 0 {
                ours.push(written);
                theirs.push(copied);
            }
        }
        let (our, their) = (median(&mut ours), median(&mut theirs));
        let rate = f64::from(self.entries) / our.as_secs_f64();
        anstream::println!(
            "{} entries of {ENTRY_SIZE} bytes; median of {} (min, max)",
            self.entries,
            self.rounds
        );
        anstream::println!("written and read  {} s, {:.1} million entries/s", spread(&mut ours), rate / 1e6);
        anstream::println!("memcpy            {} s", spread(&mut theirs));
        anstream::println!("ratio             {:.1}", our.as_secs_f64() / their.as_secs_f64());
        Ok(())
    }
}

fn entry(at: u32) -> Entry {
    Entry {
        dispatch: 3,
        preempt: 2,
        processor: 0,
        enqueue_to_dispatch: at,
        ready_to_enqueue: 0,
        waiting_to_ready: 0,
        timebase: u64::from(at),
        fault_addr: 0,
        srr0: 0xc000_0000_000f_8094,
        srr1: 0x8000_0000_0000_1033,
    }
}

/// The time until all entries are written and have been read, in order and none lost.
fn written(count: u32) -> anyhow::Result<Duration> {
    let kernel = Kernel::new();
    let places = kernel.places();
    let mut log = Log::new(0, places.state(&kernel.ram, 0)?)?;
    let over = AtomicBool::new(false);
    let start = Instant::now();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut wanted: u64 = 0;
            let mut in_order = true;
            while !over.load(Ordering::Acquire) {
                let found = kernel.poll(0, |words| {
                    in_order &= u64::from_be(words[2]) == wanted;
                    wanted += 1;
                });
                if found == 0 {
                    std::thread::yield_now();
                }
            }
            kernel.poll(0, |_| wanted += 1);
            (wanted, in_order)
        });
        let result = write(count, &mut log, &kernel);
        over.store(true, Ordering::Release);
        let (read, in_order) = reader.join().map_err(|_| anyhow::anyhow!("the reader panicked"))?;
        let _: () = result?;
        anyhow::ensure!(read == u64::from(count) && in_order, "{read} of {count} entries were read");
        Ok(start.elapsed())
    })
}

fn write(count: u32, log: &mut Log, kernel: &Kernel) -> anyhow::Result<()> {
    let places = kernel.places();
    let burst = u32::try_from(UNREAD_MAX)?;
    let mut entries = Vec::with_capacity(burst as usize);
    for first in (0..count).step_by(burst as usize) {
        entries.clear();
        entries.extend((first..count.min(first + burst)).map(entry));
        log.append(&places, &kernel.ram, &entries)?;
        while !log.is_read(&places, &kernel.ram)? {
            std::thread::yield_now();
        }
    }
    Ok(())
}

/// The time to copy the bytes of so many entries.
fn copied(count: usize) -> Duration {
    let from = vec![1_u8; count * ENTRY_SIZE];
    let mut to = vec![2_u8; count * ENTRY_SIZE];
    let start = Instant::now();
    to.copy_from_slice(std::hint::black_box(&from));
    std::hint::black_box(&to);
    start.elapsed()
}
