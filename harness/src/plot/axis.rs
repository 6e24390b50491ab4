//! Round times along a row, in a unit that suits them.

use super::lane::Ns;
use super::window::Window;

/// Ticks of a row at most.
const MOST: Ns = 12;
/// A number of units that is long.
const LONG: Ns = 10_000;

/// What times are printed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Unit {
    ns: Ns,
    pub(super) name: &'static str,
}

const UNITS: [Unit; 4] = [
    Unit { name: "s", ns: 1_000_000_000 },
    Unit { name: "ms", ns: 1_000_000 },
    Unit { name: "us", ns: 1000 },
    Unit { name: "ns", ns: 1 },
];

/// A mark on the axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    /// Pixels from the axis's left end.
    pub(super) x: f64,
    /// The time since the first dispatch, in the row's unit.
    pub(super) text: String,
}

impl Unit {
    /// One for all rows: as small as the closest ticks ask for, unless the numbers get long by that.
    pub(super) fn of(windows: &[Window], zero: Ns) -> Unit {
        let step = windows.iter().map(|window| step(window.span())).min().unwrap_or(1);
        let last = windows.last().map_or(0, |window| window.to - zero);
        // A tenth of a second is printed in seconds.
        Unit::below(step * 10).max(Unit::below(last / LONG))
    }

    /// The greatest that is no greater than `ns`.
    fn below(ns: Ns) -> Unit {
        UNITS.into_iter().find(|unit| unit.ns <= ns).unwrap_or(UNITS[UNITS.len() - 1])
    }
}

/// The round times in a window, as times since `zero`.
pub(super) fn ticks(window: Window, zero: Ns, unit: Unit) -> Vec<Tick> {
    let step = step(window.span());
    let first = (window.from - zero).div_euclid(step) * step;
    let times = (0..=MOST + 2).map(|n| first + n * step).filter(|at| window.contains(at + zero));
    times.map(|at| Tick { x: window.x(at + zero), text: decimal(at, unit.ns) }).collect()
}

/// The least of 1, 2, 5, 10, ... nanoseconds of which a span has no more than [`MOST`].
fn step(span: Ns) -> Ns {
    let powers = std::iter::successors(Some(1), |power: &Ns| power.checked_mul(10));
    let mut steps = powers.flat_map(|power| [1, 2, 5].map(|digit| digit * power));
    steps.find(|step| span / step <= MOST).expect("spans have 65 bits")
}

/// A quotient with the decimals that it needs, at most nine.
pub(super) fn decimal(dividend: Ns, divisor: Ns) -> String {
    let sign = if dividend < 0 { "-" } else { "" };
    let (whole, rest) = (dividend.abs() / divisor, dividend.abs() % divisor);
    let decimals = format!("{:09}", rest * (1_000_000_000 / divisor));
    let decimals = decimals.trim_end_matches('0');
    if decimals.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{decimals}") }
}

/// A duration with three or more digits and its unit.
pub(super) fn duration(ns: Ns) -> String {
    let unit = Unit::below(ns);
    let value = ns as f64 / unit.ns as f64;
    match value {
        _ if unit.ns == 1 => format!("{ns} ns"),
        ..10.0 => format!("{value:.2} {}", unit.name),
        ..100.0 => format!("{value:.1} {}", unit.name),
        _ => format!("{value:.0} {}", unit.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(from: Ns, to: Ns, zero: Ns) -> String {
        let window = Window { from, to };
        let unit = Unit::of(&[window], zero);
        let labels: Vec<_> = ticks(window, zero, unit).into_iter().map(|tick| tick.text).collect();
        format!("{} {}", labels.join(" "), unit.name)
    }

    #[test]
    fn ticks_are_round_and_since_the_first_dispatch() {
        assert_eq!(labels(900, 1050, 1000), "-100 -80 -60 -40 -20 0 20 40 ns");
        assert_eq!(labels(7, 5_000_000_007, 7), "0 0.5 1 1.5 2 2.5 3 3.5 4 4.5 s");
        assert_eq!(labels(0, 900_000_000, 0), "0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 s");
        assert_eq!(labels(0, 90_000, 0), "0 10 20 30 40 50 60 70 80 us");
        assert_eq!(
            labels(30_000_000_000_000, 30_000_000_000_050, 0),
            "30000 30000.000000005 30000.00000001 30000.000000015 30000.00000002 30000.000000025 30000.00000003 30000.000000035 30000.00000004 30000.000000045 s"
        );
        assert!(ticks(Window { from: 0, to: Ns::from(u64::MAX) }, 0, UNITS[0]).len() > 4);
    }

    #[test]
    fn durations_have_three_digits() {
        assert_eq!([0, 999, 1000, 12_345].map(duration), ["0 ns", "999 ns", "1.00 us", "12.3 us"]);
        assert_eq!([345_678_000, 8_388_608_000].map(duration), ["346 ms", "8.39 s"]);
        assert_eq!(decimal(-1_500, 1000), "-1.5");
        assert_eq!(decimal(2_000_001, 1000), "2000.001");
    }
}
