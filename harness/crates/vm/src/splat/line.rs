//! The kernel's lines on a console, apart from what else is there.
//!
//! With `console_msg_format=syslog` the kernel prints each line of a record as `<N>[    1.234567] text`, where N is eight
//! times the facility plus the level (`info_print_prefix`, kernel/printk/printk.c:1376; each line of a record has the
//! prefix, `record_print_text`, 1414). The facility is 0 for the kernel's own messages, and never 0 for those that
//! processes write to /dev/kmsg (`devkmsg_write`, 773). Firmware, progress codes of powerpc's platform and processes
//! print without a prefix, and need not end their lines: a record can begin anywhere in a line of the console.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::bytes::Regex;

/// The least severe level of a splat: `KERN_WARNING`.
const WARNING: u8 = 4;

/// `<4>[    1.234567][    T1] `: the level when it is printed, the time, the task or CPU when it is printed.
static STAMP: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?-u)(?:<(\d{1,4})>)?\[ *(\d{1,12})\.(\d{6})\](?:\[ *[TC]\d+\])? ?").expect("valid")
});
/// The level of a record whose time is not printed (/sys/module/printk/parameters/time).
static LEVEL: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^(?-u)\r*<(\d{1,4})>").expect("valid"));
/// Terminal control sequences, which firmware prints before the kernel's first line.
static CONTROL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\x1b(\[[0-9;?=]*[A-Za-z]|c)|\r").expect("the pattern is valid"));

/// A piece of a line of the console: a line of the kernel's, or text of unknown origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line<'c> {
    /// Where it begins in the console's line, in bytes.
    pub(super) start: usize,
    /// 0 (emergency) to 7 (debug); `None` where the console does not carry levels.
    pub(super) level: Option<u8>,
    /// A process wrote it to /dev/kmsg.
    pub(super) of_process: bool,
    /// Microseconds since boot; `None` where the console does not carry them.
    pub(super) time: Option<u64>,
    /// The text without prefix, control sequences and trailing whitespace.
    pub(super) text: Cow<'c, str>,
}

impl Line<'_> {
    /// Whether the kernel's log has it.
    pub(super) fn is_logged(&self) -> bool {
        self.level.is_some() || self.time.is_some()
    }

    /// Whether it is in the log at a level that no healthy kernel needs. A console without levels was set to carry
    /// nothing else.
    pub(super) fn is_severe(&self) -> bool {
        self.is_logged() && self.level.is_none_or(|level| level <= WARNING)
    }
}

/// The lines in a line of the console, in order.
pub(super) fn split(console: &[u8]) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let (mut start, mut text_start, mut stamp) = (0, 0, None);
    let first = LEVEL.captures(console).map(|found| (found[0].len(), number(&found[1])));
    if let Some((end, priority)) = first {
        (text_start, stamp) = (end, Some((Some(priority), None)));
    }
    for found in STAMP.captures_iter(console) {
        let whole = found.get(0).expect("the match");
        if whole.start() > start && !(first.is_some() && whole.start() <= text_start) {
            lines.push(line(console, start, text_start..whole.start(), stamp));
        }
        let time = number(&found[2]) * 1_000_000 + number(&found[3]);
        (start, text_start) = (whole.start(), whole.end());
        stamp = Some((found.get(1).map(|priority| number(priority.as_bytes())), Some(time)));
    }
    lines.push(line(console, start, text_start..console.len(), stamp));
    lines
}

type Stamp = Option<(Option<u64>, Option<u64>)>;

fn line(console: &[u8], start: usize, text: std::ops::Range<usize>, stamp: Stamp) -> Line<'_> {
    let (priority, time) = stamp.unwrap_or_default();
    let text = match CONTROL.replace_all(&console[text], &b""[..]) {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    };
    let text = match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim_end()),
        Cow::Owned(text) => Cow::Owned(text.trim_end().to_owned()),
    };
    Line {
        start,
        level: priority.map(|priority| (priority & 7) as u8),
        of_process: priority.is_some_and(|priority| priority >> 3 != 0),
        time,
        text,
    }
}

/// Digits, of which there are at most twelve.
fn number(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(console: &str) -> Vec<(Option<u8>, bool, Option<u64>, String)> {
        let lines = split(console.as_bytes()).into_iter();
        lines.map(|line| (line.level, line.of_process, line.time, line.text.into_owned())).collect()
    }

    fn text(text: &str) -> (Option<u8>, bool, Option<u64>, String) {
        (None, false, None, text.to_owned())
    }

    #[test]
    fn prefix_is_level_facility_and_time() {
        let expected = |level, of_process| vec![(Some(level), of_process, Some(1_234_567), "a b".to_owned())];
        assert_eq!(shown("<4>[    1.234567] a b\r"), expected(4, false));
        assert_eq!(shown("<12>[    1.234567] a b"), expected(4, true));
        assert_eq!(shown("<0>[    1.234567][    T1] a b "), expected(0, false));
        assert_eq!(shown("[    1.234567] a b"), [(None, false, Some(1_234_567), "a b".to_owned())]);
        assert_eq!(shown("<3>a b"), [(Some(3), false, None, "a b".to_owned())]);
        assert_eq!(shown("a b"), [text("a b")]);
        assert_eq!(shown(""), [text("")]);
    }

    #[test]
    fn record_begins_anywhere_in_a_line() {
        let record = |level, text: &str| (Some(level), false, Some(2_000_000), text.to_owned());
        assert_eq!(shown("no end<4>[    2.000000] x"), [text("no end"), record(4, "x")]);
        assert_eq!(
            shown("\x1bc<4>[    2.000000] fake<3>[    2.000000] real"),
            [text(""), record(4, "fake"), record(3, "real")]
        );
        assert_eq!(shown("<4><3>[    2.000000] x"), [record(3, "x")]);
    }

    #[test]
    fn bytes_in_brackets_are_no_prefix() {
        for line in ["Code: 90 <48> 0f 0b", "[c00000000263f320] [c00000000045e04c] f+0x1/0x2", "[  12.5] x"] {
            assert_eq!(shown(line), [text(line)]);
        }
    }

    #[test]
    fn severity_is_that_of_the_level() {
        let severe = |line: &str| split(line.as_bytes())[0].is_severe();
        assert!(severe("<4>[    1.000000] x") && severe("<0>x") && severe("[    1.000000] x"));
        assert!(severe("<12>[    1.000000] x") && !severe("<13>[    1.000000] x"));
        assert!(!severe("<5>[    1.000000] x") && !severe("x"));
    }
}
