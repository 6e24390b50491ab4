//! Tokenisers: which spans of a line of a capture vary by nature, and of what kind they are.
//!
//! There is one module for each format. A tokeniser changes nothing: a token is a span of the line
//! with its kind and its value, and everything between tokens is literal. Each format also states
//! [`invariants`](Format::violations) that hold in every capture of it, whatever the golden says.
//!
//! This module knows no golden, no case and no guest.

mod clock;
pub mod cursor;
pub mod dispatch_log;
mod event_format;
mod hist;
mod hist_debug;
pub mod perf_dump;
pub mod perf_script;
mod piece;
mod symbol;
mod trace;
pub mod units;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod transcripts;

use std::ops::Range;

pub use perf_dump::{auxtrace_part, log_entries};
pub use piece::Piece;

/// The format of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// An event's `hist_debug` file.
    HistDebug,
    /// An event's `hist` file.
    Hist,
    /// An event's `trigger` file.
    Trigger,
    /// The `trace` file: the ring buffer as text.
    Trace,
    /// An event's `format` file, or several of them one after the other.
    EventFormat,
    /// What `perf script` prints.
    PerfScript,
    /// What `perf report -D` prints.
    PerfDump,
    /// Text in which nothing varies.
    Plain,
}

/// What a token stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TokenKind {
    /// A pointer as `%p` prints it.
    Ptr,
    /// A process or thread id.
    Pid,
    /// A CPU's number.
    Cpu,
    /// A time: seconds with 6 or 9 decimals, or a whole number where the clock or the tool counts
    /// something else (nanoseconds in perf's dump, a timebase's ticks).
    Ts,
    /// A task's name.
    Comm,
    /// A kernel symbol, with its offset and the function's size where they are printed, and with its
    /// address where one stands beside it. A module's or object's name beside it is literal.
    Sym,
    /// A decimal number.
    Number,
    /// A hexadecimal number with its `0x` that depends on the recording: a place in perf's file, or
    /// an instruction's address that perf prints without a symbol. No pointer: it is not hashed.
    Hex,
    /// The state of the CPU beside an event of the trace: whether interrupts are off, whether the task
    /// is about to be preempted, what it was interrupted by, and depths.
    Flags,
}

/// A span of a line that varies by nature. Padding belongs to it where the format pads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// Its first byte in the line.
    pub start: usize,
    /// The byte after its last.
    pub end: usize,
    /// What it stands for.
    pub kind: TokenKind,
}

impl Token {
    /// A token that covers `span`.
    pub(crate) fn new(span: Range<usize>, kind: TokenKind) -> Token {
        Token { start: span.start, end: span.end, kind }
    }

    /// Its value: its text without padding.
    pub fn value<'l>(&self, line: &'l [u8]) -> &'l [u8] {
        line[self.start..self.end].trim_ascii()
    }
}

/// A rule of a format that a capture breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The line of the capture, from 1.
    pub line: usize,
    /// The rule and what was found.
    pub message: String,
}

impl Format {
    /// All formats, by the names that case files use.
    pub const ALL: [(&'static str, Format); 8] = [
        ("hist_debug", Format::HistDebug),
        ("hist", Format::Hist),
        ("trigger", Format::Trigger),
        ("trace", Format::Trace),
        ("event_format", Format::EventFormat),
        ("perf_script", Format::PerfScript),
        ("perf_dump", Format::PerfDump),
        ("plain", Format::Plain),
    ];

    /// The format of the tracefs file at `path`, by its name; plain for any other file.
    pub fn of_file(path: &str) -> Format {
        let name = path.rsplit('/').next().unwrap_or_default();
        if name == "format" {
            return Format::EventFormat;
        }
        Format::ALL.iter().find(|(known, _)| *known == name).map_or(Format::Plain, |(_, format)| *format)
    }

    /// The tokens of a line, in order.
    pub fn tokens(self, line: &[u8]) -> Vec<Token> {
        let mut found = Vec::new();
        self.tokens_into(line, &mut found);
        found
    }

    /// The same, in place of what `found` holds: for whoever reads one line after the other.
    pub fn tokens_into(self, line: &[u8], found: &mut Vec<Token>) {
        found.clear();
        match self {
            Format::HistDebug => hist_debug::tokens(line, found),
            Format::Hist => hist::tokens(line, found),
            Format::Trace => trace::tokens(line, found),
            Format::EventFormat => event_format::tokens(line, found),
            Format::PerfScript => perf_script::tokens(line, found),
            Format::PerfDump => perf_dump::tokens(line, found),
            Format::Trigger | Format::Plain => {}
        }
    }

    /// Whether a number in it says something of what is tested. The only one in an event's format that
    /// is a token, the event's own, depends on which events the kernel has besides.
    pub fn numbers_are_significant(self) -> bool {
        self != Format::EventFormat
    }

    /// The format's rules that `lines` break.
    pub fn violations(self, lines: &[&[u8]]) -> Vec<Violation> {
        match self {
            Format::HistDebug => hist_debug::violations(lines),
            Format::Hist => hist::violations(lines),
            Format::Trace => trace::violations(lines),
            Format::PerfScript => perf_script::violations(lines),
            Format::PerfDump => dispatch_log::violations(lines),
            Format::EventFormat | Format::Trigger | Format::Plain => Vec::new(),
        }
    }
}

/// A decimal number that fits 64 bits.
pub fn number(text: &[u8]) -> Option<u64> {
    let digits = text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| digits)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_follows_from_the_files_name() {
        assert_eq!(Format::of_file("events/sched/sched_waking/hist_debug"), Format::HistDebug);
        assert_eq!(Format::of_file("events/sched/sched_waking/hist"), Format::Hist);
        assert_eq!(Format::of_file("trace"), Format::Trace);
        assert_eq!(Format::of_file("instances/foo/trace"), Format::Trace);
        assert_eq!(Format::of_file("events/sched/sched_waking/format"), Format::EventFormat);
        assert_eq!(Format::of_file("synthetic_events"), Format::Plain);
    }
}
