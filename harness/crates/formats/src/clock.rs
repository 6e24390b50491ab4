//! The rule that time does not go back on a CPU.

use std::collections::BTreeMap;

use super::units::Timestamp;

/// The last time seen on each CPU.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    last: BTreeMap<u64, (Timestamp, usize)>,
}

impl Clocks {
    /// Add the `time` of `cpu` at `line`; the violation's message when an earlier line has a later time.
    pub(crate) fn tick(&mut self, cpu: u64, time: Timestamp, line: usize) -> Option<String> {
        let (before, place) = self.last.insert(cpu, (time, line))?;
        (time < before).then(|| format!("time on CPU {cpu} goes back: line {place} has a later one"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_each_cpu_must_not_go_back() {
        let mut clocks = Clocks::default();
        let time = |text: &str| Timestamp::read(text.as_bytes()).expect("a time");
        assert_eq!(clocks.tick(0, time("5.0"), 1), None);
        assert_eq!(clocks.tick(1, time("4.0"), 2), None);
        assert_eq!(clocks.tick(0, time("5.0"), 3), None);
        let message = clocks.tick(0, time("4.9"), 4).expect("goes back");
        assert_eq!(message, "time on CPU 0 goes back: line 3 has a later one");
    }
}
