//! The guest's timebase: what its clocks are made of, and how far it has come.

use std::time::{Duration, Instant};

/// Nanoseconds of a second.
const NANOSECONDS: f64 = 1e9;

/// The timebase of a running guest.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// The timebase when the kernel's clock was zero, in ticks (`boot_tb`, arch/powerpc/kernel/time.c).
    pub boot: u64,
    /// Ticks of a second (`tb_ticks_per_sec`, same file).
    pub frequency: u64,
    /// What the timebase was, and not later than at `taken`.
    reading: u64,
    taken: Instant,
}

impl Clock {
    /// A clock of which `reading` was read before now.
    pub fn new(boot: u64, frequency: u64, reading: u64) -> Clock {
        Clock { boot, frequency, reading, taken: Instant::now() }
    }

    /// The timebase now, or a little before now, when the guest's clocks have stood still for `held`
    /// since it was read.
    pub fn now(&self, held: Duration) -> u64 {
        let ran = self.taken.elapsed().saturating_sub(held);
        self.reading.saturating_add(self.ticks(i128::try_from(ran.as_nanos()).unwrap_or(0)).unsigned_abs())
    }

    /// Nanoseconds as ticks.
    pub fn ticks(&self, nanoseconds: i128) -> i64 {
        let ticks = nanoseconds * i128::from(self.frequency) / 1_000_000_000;
        i64::try_from(ticks).unwrap_or(if ticks < 0 { i64::MIN } else { i64::MAX })
    }

    /// How long these ticks take.
    pub fn duration(&self, ticks: u64) -> Duration {
        let nanoseconds = u128::from(ticks) * 1_000_000_000 / u128::from(self.frequency.max(1));
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }

    /// The kernel's clock at a timebase, in nanoseconds, as perf reckons it (in floating point;
    /// tools/perf/util/powerpc-vpadtl.c, `powerpc_vpadtl_timestamp`, Linux 7.2).
    pub fn time(&self, timebase: u64) -> u64 {
        perf_time(timebase, self.boot, self.frequency)
    }
}

/// See [`Clock::time`].
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "perf computes the time in a double"
)]
pub fn perf_time(timebase: u64, boot: u64, frequency: u64) -> u64 {
    let seconds = timebase.wrapping_sub(boot) as f64 / frequency as f64;
    (seconds * NANOSECONDS) as u64
}

/// A time in nanoseconds as perf script shows it: seconds and microseconds, cut off
/// (tools/perf/util/time-utils.c, `timestamp__scnprintf_usec`, Linux 7.2).
pub fn shown(time: u64) -> String {
    format!("{}.{:06}", time / 1_000_000_000, time % 1_000_000_000 / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Documentation/arch/powerpc/vpa-dtl.rst prints both timebases in its `perf report -D` and `perf
    /// script` listings.
    #[test]
    fn timebase_of_the_document_is_its_time() {
        let time = |timebase| shown(perf_time(timebase, 21_349_649_546_353_231, 512_000_000));
        assert_eq!(time(21_403_600_706_628_832), "105373.359913");
        assert_eq!(time(21_403_600_706_679_454), "105373.360012");
    }

    #[test]
    fn clock_is_never_ahead_of_the_guest() {
        let clock = Clock::new(0, 512_000_000, 1000);
        let now = clock.now(Duration::ZERO);
        assert!(now >= 1000);
        assert!(clock.now(Duration::from_secs(10)) == 1000, "what was held is not counted");
        std::thread::sleep(Duration::from_millis(2));
        assert!(clock.now(Duration::ZERO) >= now + 1_024_000);
        assert_eq!(clock.ticks(-1_000_000), -512_000);
        assert_eq!(clock.duration(512), Duration::from_micros(1));
    }
}
