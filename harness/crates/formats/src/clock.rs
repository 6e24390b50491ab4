//! The rule that time does not go back on a CPU.

use std::collections::BTreeMap;

use super::units::Timestamp;

/// The last time seen on each CPU.
#[derive(Debug, Default)]
pub struct Clocks {
    last: BTreeMap<u64, (Timestamp, usize)>,
}

impl Clocks {
    /// Note that `line` has `time` on `cpu`; what is wrong when the CPU was later already.
    pub fn tick(&mut self, cpu: u64, time: Timestamp, line: usize) -> Option<String> {
        let (before, place) = self.last.insert(cpu, (time, line))?;
        (time < before).then(|| format!("on CPU {cpu} time goes back: line {place} is later than this one"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cpu_has_its_own_time() {
        let mut clocks = Clocks::default();
        let time = |text: &str| Timestamp::read(text.as_bytes()).expect("a time");
        assert_eq!(clocks.tick(0, time("5.0"), 1), None);
        assert_eq!(clocks.tick(1, time("4.0"), 2), None);
        assert_eq!(clocks.tick(0, time("5.0"), 3), None);
        let message = clocks.tick(0, time("4.9"), 4).expect("goes back");
        assert_eq!(message, "on CPU 0 time goes back: line 3 is later than this one");
    }
}
