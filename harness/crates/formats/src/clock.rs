//! Times, and the rule that time does not go back on a CPU.

use std::collections::BTreeMap;

use super::cursor::is_digit;
use super::number;

/// A time as printed: whole units and billionths. Ordered as time is.
///
/// Clocks that do not count nanoseconds (`counter`, `x86-tsc`, `ppc-tb`) print a whole number, which
/// is a time too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(u64, u64);

impl Time {
    /// Read `SECONDS`, or `SECONDS.DECIMALS` with at most 9 decimals.
    pub fn read(text: &[u8]) -> Option<Time> {
        let dot = text.iter().position(|b| *b == b'.');
        let (whole, decimals) = dot.map_or((text, &b"0"[..]), |dot| (&text[..dot], &text[dot + 1..]));
        if decimals.is_empty() || decimals.len() > 9 || !decimals.iter().all(|b| is_digit(*b)) {
            return None;
        }
        let scale = (decimals.len()..9).fold(1, |scale, _| scale * 10);
        Some(Time(number(whole)?, number(decimals)? * scale))
    }

    /// The time in nanoseconds, of a clock that prints seconds; `None` after 584 years.
    pub fn nanoseconds(self) -> Option<u64> {
        self.0.checked_mul(1_000_000_000)?.checked_add(self.1)
    }
}

/// The last time seen on each CPU.
#[derive(Debug, Default)]
pub struct Clocks {
    last: BTreeMap<u64, (Time, usize)>,
}

impl Clocks {
    /// Note that `line` has `time` on `cpu`; what is wrong when the CPU was later already.
    pub fn tick(&mut self, cpu: u64, time: Time, line: usize) -> Option<String> {
        let (before, place) = self.last.insert(cpu, (time, line))?;
        (time < before).then(|| format!("on CPU {cpu} time goes back: line {place} is later than this one"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_a_fraction() {
        let time = |text: &str| Time::read(text.as_bytes());
        assert!(time("1.000002") < time("1.1"));
        assert!(time("1.5") < time("2"));
        assert_eq!(time("1.500000"), time("1.500000000"));
        let nanoseconds = |text: &str| Time::read(text.as_bytes()).and_then(Time::nanoseconds);
        assert_eq!(nanoseconds("41.250113"), Some(41_250_113_000));
        assert_eq!(nanoseconds("18446744073.709551615"), Some(u64::MAX));
        assert_eq!(nanoseconds("18446744073.709551616"), None);
        for bad in ["", ".5", "1.", "1.0000000000", "1.x", "-1.0"] {
            assert_eq!(time(bad), None, "{bad}");
        }
    }

    #[test]
    fn each_cpu_has_its_own_time() {
        let mut clocks = Clocks::default();
        assert_eq!(clocks.tick(0, Time(5, 0), 1), None);
        assert_eq!(clocks.tick(1, Time(4, 0), 2), None);
        assert_eq!(clocks.tick(0, Time(5, 0), 3), None);
        let message = clocks.tick(0, Time(4, 9), 4).expect("goes back");
        assert_eq!(message, "on CPU 0 time goes back: line 3 is later than this one");
    }
}
