//! The frequency of the host's time stamp counter.
//!
//! QEMU's TCG gives an x86 guest the host's own counter, whose frequency the guest would have to measure. This module
//! measures it on the host, where a measurement that was disturbed is seen as such.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// The time between the two samples.
const INTERVAL: Duration = Duration::from_millis(20);
/// How often a sample is taken; the best counts.
const TRIES: usize = 32;
/// How long reading the counter may take for a sample to count: a thousandth of a percent of the interval each.
const WIDTH_MAX: Duration = Duration::from_nanos(2000);

/// The frequency in kHz, measured once; `None` on a host that is not an x86-64, or too busy for a measurement.
pub(super) fn khz() -> Option<u64> {
    static KHZ: LazyLock<Option<u64>> = LazyLock::new(|| {
        let first = sample()?;
        std::thread::sleep(INTERVAL);
        let second = sample()?;
        frequency(first, second)
    });
    *KHZ
}

/// A moment, and the counter then.
#[derive(Debug, Clone, Copy)]
struct Sample {
    at: Instant,
    ticks: u64,
}

/// The frequency in kHz by two samples; `None` for a counter that does not count.
fn frequency(first: Sample, second: Sample) -> Option<u64> {
    let ticks = u128::from(second.ticks.checked_sub(first.ticks)?);
    let khz = (ticks * 1_000_000).checked_div(second.at.duration_since(first.at).as_nanos())?;
    u64::try_from(khz).ok().filter(|khz| *khz > 0)
}

/// The sample that took the shortest time; `None` when each was disturbed, as on a busy host the reading of the counter
/// may be.
fn sample() -> Option<Sample> {
    let tries = (0..TRIES).map(|_| {
        let before = Instant::now();
        let ticks = counter();
        let width = before.elapsed();
        (width, ticks.map(|ticks| Sample { at: before + width / 2, ticks }))
    });
    let (width, sample) = tries.min_by_key(|(width, _)| *width)?;
    sample.filter(|_| width <= WIDTH_MAX)
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the instruction has no safe form in the minimum Rust version")]
fn counter() -> Option<u64> {
    // SAFETY: RDTSC reads a register and no memory. It is in every x86-64, and Linux lets processes use it unless they
    // forbid it themselves (prctl(2), PR_SET_TSC), which nothing here does.
    Some(unsafe { std::arch::x86_64::_rdtsc() })
}

#[cfg(not(target_arch = "x86_64"))]
fn counter() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequency_is_ticks_by_time() {
        let at = Instant::now();
        let sample = |ms, ticks| Sample { at: at + Duration::from_millis(ms), ticks };
        assert_eq!(frequency(sample(0, 1000), sample(20, 48_908_120 + 1000)), Some(2_445_406));
        // A counter that stands still, goes back, or was read twice at once.
        assert_eq!(frequency(sample(0, 7), sample(20, 7)), None);
        assert_eq!(frequency(sample(0, 8), sample(20, 7)), None);
        assert_eq!(frequency(sample(0, 7), sample(0, 8)), None);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn measurements_agree() {
        let measure = |ms| {
            let first = sample().expect("a sample");
            std::thread::sleep(Duration::from_millis(ms));
            frequency(first, sample().expect("a sample")).expect("a frequency")
        };
        let (short, long) = (measure(20), measure(200));
        assert!(short.abs_diff(long) * 1000 < long, "{short} and {long} kHz");
    }
}
