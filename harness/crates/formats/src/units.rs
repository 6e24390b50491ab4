//! Durations as people write them, and times as the kernel and perf print them.
//!
//! A duration is a decimal number with its unit, such as `60s`, `1.5ms` or `-10us`. This is the one
//! parser of them: timeouts and dispatch times in case files and distances in goldens all come here.
//! Both kinds are exact to 1 ns: what cannot be represented so is an error and never rounded.

use std::fmt;

use super::number;

/// The units by name, the largest first, with their nanoseconds.
const UNITS: [(&str, u64); 5] =
    [("min", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

/// What a duration must look like, for the help beside an error.
pub const DURATION_HELP: &str =
    "write a number and its unit (ns, us, ms, s or min), such as 10us, 1.5ms or 60s";

/// Text that is not a duration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurationError {
    text: String,
    cause: Cause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    NoNumber,
    NoUnit,
    UnknownUnit,
    BelowNanosecond,
    TooLong,
    Negative,
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cause = match self.cause {
            Cause::NoNumber => "it does not start with a decimal number",
            Cause::NoUnit => "the unit is missing",
            Cause::UnknownUnit => "unknown unit",
            Cause::BelowNanosecond => "it is not a whole number of nanoseconds",
            Cause::TooLong => "it is too long",
            Cause::Negative => "it must not be negative",
        };
        write!(f, "`{}` is not a duration: {cause}", self.text)
    }
}

impl std::error::Error for DurationError {}

/// A duration without a sign, in nanoseconds.
///
/// # Errors
/// When `text` is not one, or is one of more than 64 bits (584 years). [`DURATION_HELP`] is the help for it.
pub fn parse_duration(text: &str) -> Result<u64, DurationError> {
    let cause = if is_negative(text) { Err(Cause::Negative) } else { magnitude(text) };
    cause.map_err(|cause| DurationError { text: text.to_owned(), cause })
}

/// A duration that may be negative (`-5ms`), in nanoseconds.
///
/// # Errors
/// As [`parse_duration`]; the limit is 63 bits.
pub fn parse_signed_duration(text: &str) -> Result<i64, DurationError> {
    let negative = is_negative(text);
    let digits = if negative { &text[1..] } else { text };
    let signed = |magnitude| {
        let magnitude = i64::try_from(magnitude).map_err(|_| Cause::TooLong)?;
        Ok(if negative { -magnitude } else { magnitude })
    };
    magnitude(digits).and_then(signed).map_err(|cause| DurationError { text: text.to_owned(), cause })
}

/// A duration in the largest unit of which it is a whole number; [`parse_duration`] is the inverse.
pub fn show_duration(nanoseconds: u64) -> String {
    let fits = |unit: &&(&str, u64)| nanoseconds % unit.1 == 0 && (nanoseconds > 0 || unit.1 == 1);
    let (name, unit) = UNITS.iter().find(fits).expect("every duration is a whole number of nanoseconds");
    format!("{}{name}", nanoseconds / unit)
}

/// Whether the text is a minus sign and something that can be a number.
fn is_negative(text: &str) -> bool {
    text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn magnitude(text: &str) -> Result<u64, Cause> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (decimal, unit) = text.split_at(end);
    let (whole, decimals) = decimal.split_once('.').unwrap_or((decimal, "0"));
    if whole.is_empty() || decimals.is_empty() || decimals.contains('.') {
        return Err(Cause::NoNumber);
    }
    if unit.is_empty() {
        return Err(Cause::NoUnit);
    }
    let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit).ok_or(Cause::UnknownUnit)?;
    let whole = number(whole.as_bytes()).and_then(|whole| whole.checked_mul(*unit)).ok_or(Cause::TooLong)?;
    let part = fraction(decimals.as_bytes(), *unit).ok_or(Cause::BelowNanosecond)?;
    whole.checked_add(part).ok_or(Cause::TooLong)
}

/// `0.DECIMALS` times `unit`; `None` when that is not a whole number, or `decimals` are not digits.
fn fraction(decimals: &[u8], unit: u64) -> Option<u64> {
    let significant = decimals.len() - decimals.iter().rev().take_while(|b| **b == b'0').count();
    // No power of ten above 10^11 divides a product of a unit: a minute has 11 factors of 2.
    let scale = 10_u128.pow(u32::try_from(significant).ok().filter(|places| *places <= 11)?);
    let digits = match significant {
        0 => 0,
        _ => number(&decimals[..significant])?,
    };
    let scaled = u128::from(digits) * u128::from(unit);
    if scaled % scale == 0 { u64::try_from(scaled / scale).ok() } else { None }
}

/// A time as printed: whole units and billionths. Ordered as time is.
///
/// Clocks that do not count nanoseconds (`counter`, `x86-tsc`, `ppc-tb`) print a whole number, which
/// is a time too, in their own unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    whole: u64,
    billionths: u64,
}

impl Timestamp {
    /// Read `WHOLE` or `WHOLE.DECIMALS`; `None` for other text, and for more than 9 decimals.
    pub fn read(text: &[u8]) -> Option<Timestamp> {
        let dot = text.iter().position(|b| *b == b'.');
        let (whole, decimals) = dot.map_or((text, &b"0"[..]), |dot| (&text[..dot], &text[dot + 1..]));
        if decimals.is_empty() || decimals.len() > 9 {
            return None;
        }
        Some(Timestamp { whole: number(whole)?, billionths: fraction(decimals, 1_000_000_000)? })
    }

    /// The time in nanoseconds, of a clock that prints seconds; `None` after 584 years.
    pub fn nanoseconds(self) -> Option<u64> {
        self.whole.checked_mul(1_000_000_000)?.checked_add(self.billionths)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn duration_has_a_unit_and_may_have_decimals() {
        let cases = [
            ("10us", 10_000),
            ("500ms", 500_000_000),
            ("1.5ms", 1_500_000),
            ("2s", 2_000_000_000),
            ("0.000000001s", 1),
            ("1.000s", 1_000_000_000),
            ("1min", 60_000_000_000),
            ("0.00000000005min", 3),
            ("0ns", 0),
            ("18446744073709551615ns", u64::MAX),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_duration(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn signed_duration_may_be_negative() {
        assert_eq!(parse_signed_duration("-1.5ms"), Ok(-1_500_000));
        assert_eq!(parse_signed_duration("1.5ms"), Ok(1_500_000));
        assert_eq!(parse_signed_duration("-0s"), Ok(0));
        let error = parse_signed_duration("10000000000s").expect_err("64 bits").to_string();
        assert_eq!(error, "`10000000000s` is not a duration: it is too long");
    }

    #[test]
    fn text_that_is_not_a_duration_says_why() {
        let cases = [
            ("", "it does not start with a decimal number"),
            ("us", "it does not start with a decimal number"),
            ("1.ms", "it does not start with a decimal number"),
            (".5ms", "it does not start with a decimal number"),
            ("1..5ms", "it does not start with a decimal number"),
            ("--1ms", "it does not start with a decimal number"),
            ("+1ms", "it does not start with a decimal number"),
            ("-ms", "it does not start with a decimal number"),
            ("10", "the unit is missing"),
            ("1m", "unknown unit"),
            ("5 ms", "unknown unit"),
            ("5h", "unknown unit"),
            ("0.5ns", "it is not a whole number of nanoseconds"),
            ("1.0000000001s", "it is not a whole number of nanoseconds"),
            ("0.0000000000000000000000001min", "it is not a whole number of nanoseconds"),
            ("99999999999999999999ns", "it is too long"),
            ("18446744073.709551616s", "it is too long"),
            ("-1s", "it must not be negative"),
        ];
        for (text, cause) in cases {
            let error = parse_duration(text).expect_err(text).to_string();
            assert_eq!(error, format!("`{text}` is not a duration: {cause}"));
        }
    }

    #[test]
    fn duration_is_shown_in_its_largest_whole_unit() {
        let shown = [0, 1, 1_500, 2_000, 60_000_000_000, 90_000_000_000].map(show_duration);
        assert_eq!(shown, ["0ns", "1ns", "1500ns", "2us", "1min", "90s"]);
    }

    proptest! {
        #[test]
        fn show_and_parse_are_inverse(nanoseconds in any::<u64>()) {
            prop_assert_eq!(parse_duration(&show_duration(nanoseconds)), Ok(nanoseconds));
        }

        #[test]
        fn decimals_of_a_duration_are_exact(whole in 0_u64..1_000_000, part in 0_u64..1_000_000_000) {
            let text = format!("{whole}.{part:09}s");
            prop_assert_eq!(parse_duration(&text), Ok(whole * 1_000_000_000 + part));
        }
    }

    #[test]
    fn timestamp_has_up_to_nine_decimals() {
        let time = |text: &str| Timestamp::read(text.as_bytes());
        assert!(time("1.000002") < time("1.1"));
        assert!(time("1.5") < time("2"));
        assert_eq!(time("1.500000"), time("1.500000000"));
        let nanoseconds = |text: &str| time(text).and_then(Timestamp::nanoseconds);
        assert_eq!(nanoseconds("41.250113"), Some(41_250_113_000));
        assert_eq!(nanoseconds("1.000000001"), Some(1_000_000_001));
        assert_eq!(nanoseconds("18446744073.709551615"), Some(u64::MAX));
        assert_eq!(nanoseconds("18446744073.709551616"), None);
        for bad in ["", ".5", "1.", "1.0000000000", "1.x", "-1.0"] {
            assert_eq!(time(bad), None, "{bad}");
        }
    }
}
