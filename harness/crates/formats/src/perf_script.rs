//! What `perf script` prints.
//!
//! A sample begins `COMM PID [CPU] TIME: ` or `COMM PID/TID [CPU] TIME: `, in columns, of which `-F`
//! can leave out the CPU; then follow its event and what it recorded (tools/perf/builtin-script.c,
//! `perf_sample__fprintf_start` and `process_event`, Linux 7.2). An address and its symbol end the
//! line, or stand on lines of their own under it. A vpa-dtl sample takes two lines: perf breaks it
//! after the preempt reason (`perf_sample__fprintf_synth_vpadtl`). What it says of the dispatch is
//! literal, as whoever writes the log knows it; but the timebase goes with the time.
//!
//! Limit: a demangled C++ name with blanks in it is not seen as one symbol.

use std::ops::Range;

use memchr::memmem::Finder;

use super::clock::Clocks;
use super::cursor::{Cursor, colons, integer, is_digit, is_hex, right_aligned, run_start};
use super::symbol::{self, ADDRESS, Offset};
use super::units::Timestamp;
use super::{Token, TokenKind, Violation, number};

/// Columns of a task's name.
const COMM: usize = 16;
/// Columns of a process id.
const PID: usize = 7;
/// More than all columns together.
const LONGEST: usize = 80;
/// Columns of a time's seconds and its point.
const SECONDS: usize = 6;
const DISPATCH: &[u8] = b"vpa-dtl: ";

/// Where the fields in front of an event are. Padding is included.
pub struct SampleHead {
    comm: Option<Range<usize>>,
    pid: Range<usize>,
    thread: Option<Range<usize>>,
    /// The CPU, where it is printed.
    pub cpu: Option<Range<usize>>,
    /// The time, with its padding.
    pub time: Range<usize>,
    text: usize,
}

impl SampleHead {
    /// A task's name may hold anything, even what looks like the fields. With a call chain perf
    /// prints it as it is, and else in its column: a line that has the column is read by it.
    pub fn read(line: &[u8]) -> Option<SampleHead> {
        let in_column = || {
            let mut ends = colons(line, COMM).take_while(|at| *at < LONGEST);
            ends.find_map(|at| SampleHead::before(line, at).filter(|head| head.comm == Some(0..COMM)))
        };
        let columns = if line.get(COMM) == Some(&b' ') { in_column() } else { None };
        columns.or_else(|| colons(line, 0).find_map(|at| SampleHead::before(line, at)))
    }

    /// Read from the colon backwards: the name in front is the one field whose extent is not known.
    fn before(line: &[u8], colon: usize) -> Option<SampleHead> {
        let decimals = run_start(line, colon, is_digit);
        let point = decimals.checked_sub(1).filter(|at| line[*at] == b'.')?;
        let seconds = run_start(line, point, is_digit);
        if seconds == point || !matches!(colon - decimals, 6 | 9) {
            return None;
        }
        let time = right_aligned(line, seconds..colon, SECONDS + (colon - decimals))..colon;
        let mut end = blank_before(line, time.start)?;
        let mut cpu = None;
        if end > 0 && line[end - 1] == b']' {
            let digits = run_start(line, end - 1, is_digit)..end - 1;
            let open = digits.start.checked_sub(1).filter(|at| line[*at] == b'[' && !digits.is_empty())?;
            end = blank_before(line, open)?;
            cpu = Some(digits);
        }
        let (digits, thread) = ids(line, end)?;
        let pid = right_aligned(line, digits.clone(), PID)..digits.end;
        let comm = match pid.start {
            0 => None,
            start => Some(0..blank_before(line, start)?).filter(|span| !span.is_empty()),
        };
        Some(SampleHead { comm, pid, thread, cpu, time, text: colon + 2 })
    }

    /// Where what the sample says of a dispatch begins, if it is an entry of the dispatch trace log.
    /// The period may stand before the event's name.
    pub fn dispatch(&self, line: &[u8]) -> Option<usize> {
        let mut cursor = Cursor::new(line, self.text);
        cursor.run(|b| b == b' ');
        cursor.run(is_digit);
        cursor.run(|b| b == b' ');
        cursor.eat(DISPATCH)?;
        Some(cursor.at)
    }
}

/// The digits of the process id that ends, with its thread's, at `end`; and the thread's column.
fn ids(line: &[u8], end: usize) -> Option<(Range<usize>, Option<Range<usize>>)> {
    let padded = run_start(line, end, |b| b == b' ');
    let last = integer(line, padded)?;
    if last.start > 0 && line[last.start - 1] == b'/' {
        return Some((integer(line, last.start - 1)?, Some(last.start..end)));
    }
    // A process id by itself is aligned to the right.
    (padded == end).then_some((last, None))
}

/// The blank that parts the field at `start` from the one in front of it.
fn blank_before(line: &[u8], start: usize) -> Option<usize> {
    start.checked_sub(1).filter(|at| line[*at] == b' ')
}

/// Append the tokens of a line.
pub fn tokens(line: &[u8], found: &mut Vec<Token>) {
    let mut text = 0;
    if let Some(head) = SampleHead::read(line) {
        let timebase = head.dispatch(line).and_then(|from| timebase(line, from));
        found.extend(head.comm.map(|span| Token::new(span, TokenKind::Comm)));
        found.push(Token::new(head.pid, TokenKind::Pid));
        found.extend(head.thread.map(|span| Token::new(span, TokenKind::Pid)));
        found.extend(head.cpu.map(|span| Token::new(span, TokenKind::Cpu)));
        found.push(Token::new(head.time, TokenKind::Ts));
        // What looks like a hashed pointer or an address may be the timebase: it is read once.
        text = timebase.as_ref().map_or(head.text, |span| span.end);
        found.extend(timebase.map(|span| Token::new(span, TokenKind::Ts)));
    }
    let place = place(line, text);
    let end = place.as_ref().map_or(line.len(), |place| place.start);
    symbol::scan(line, text..end, Offset::SizeOrNot, found);
    found.extend(place.map(|span| Token::new(span, TokenKind::Sym)));
}

/// The timebase of a dispatch, whose text is at `from`. A blank follows it.
fn timebase(line: &[u8], from: usize) -> Option<Range<usize>> {
    let mut cursor = Cursor::new(line, from);
    cursor.eat(b"timebase: ")?;
    cursor.digits().filter(|_| matches!(cursor.rest(), [] | [b' ', ..]))
}

/// The place in code at the end of a line: an address in sixteen columns, a blank and a name, and
/// maybe an object's name in brackets, which is literal.
fn place(line: &[u8], from: usize) -> Option<Range<usize>> {
    let text = &line[from..];
    let end = match text {
        [.., b')'] => text.windows(2).rposition(|pair| pair == b" (")?,
        _ => text.len(),
    };
    let name = from + run_start(text, end, |b| b != b' ')..from + end;
    let column = blank_before(line, name.start)?;
    let start = column.checked_sub(ADDRESS).filter(|start| *start >= from)?;
    let digits = run_start(&line[start..], ADDRESS, is_hex);
    let blank = line[start..start + digits].iter().all(|b| *b == b' ');
    // The column is filled with blanks, so leading zeros are some other number's.
    let number = digits == ADDRESS - 1 || (digits < ADDRESS && line[start + digits] != b'0');
    let apart = start == from || matches!(line[start - 1], b' ' | b'\t');
    if !blank || !number || !apart || name.is_empty() {
        return None;
    }
    let shown = &line[name.clone()];
    let certain = end < text.len() || shown == b"[unknown]" || shown.windows(3).any(|w| w == b"+0x");
    certain.then_some(start..name.end)
}

/// Invariants: the times of a CPU never go back.
pub fn violations(lines: &[&[u8]]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut clocks = Clocks::default();
    // Few lines of most captures are such, and to find none is quicker than to read a head.
    let dispatch = Finder::new(DISPATCH);
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| dispatch.find(line).is_some()) {
        let Some(head) = SampleHead::read(line).filter(|head| head.dispatch(line).is_some()) else {
            continue;
        };
        let cpu = head.cpu.and_then(|span| number(&line[span]));
        let time = Timestamp::read(line[head.time].trim_ascii_start());
        if let Some(message) = cpu.zip(time).and_then(|(cpu, time)| clocks.tick(cpu, time, at + 1)) {
            found.push(Violation { line: at + 1, message });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::Format;
    use crate::testing::{messages, show};

    fn shown(line: &str) -> String {
        show(Format::PerfScript, line)
    }

    #[test]
    fn a_sample_of_a_tracepoint() {
        assert_eq!(
            shown("     migration/9      67 [009] 105373.359903:   sched:sched_waking: comm=perf pid=9"),
            "<comm:     migration/9> <pid:     67> [<cpu:009>] <ts:105373.359903>:   sched:sched_waking: comm=perf pid=9"
        );
        assert_eq!(
            shown("            my:: t       7/8       [001]    33.835822: x:y: p=000000009536f554"),
            "<comm:            my:: t> <pid:      7>/<pid:8      > [<cpu:001>] <ts:   33.835822>: x:y: p=<ptr:000000009536f554>"
        );
        assert_eq!(
            shown("            perf      -1     3.000000001:          1 cycles:k: "),
            "<comm:            perf> <pid:     -1> <ts:    3.000000001>:          1 cycles:k: "
        );
        assert_eq!(
            shown("a: 1 2.0: b      12/12          3.000001: e: "),
            "<comm:a: 1 2.0: b> <pid:     12>/<pid:12     > <ts:    3.000001>: e: "
        );
        assert_eq!(shown("      7     3.000001: e: "), "<pid:      7> <ts:    3.000001>: e: ");
    }

    #[test]
    fn a_dispatch_takes_two_lines() {
        assert_eq!(
            shown(
                " swapper     0 [002]   233.835822:   vpa-dtl: timebase: 338954486062657 dispatch_reason:H_PROD, preempt_reason:H_CEDE,"
            ),
            "<comm: swapper> <pid:    0> [<cpu:002>] <ts:  233.835822>:   vpa-dtl: timebase: <ts:338954486062657> dispatch_reason:H_PROD, preempt_reason:H_CEDE,"
        );
        assert_eq!(
            shown(
                "waiting_to_ready_time:9, processor_id: 202 c0000000000f8094 plpar_hcall+0x18 ([kernel.kallsyms])"
            ),
            "waiting_to_ready_time:9, processor_id: 202 <sym:c0000000000f8094 plpar_hcall+0x18> ([kernel.kallsyms])"
        );
    }

    #[test]
    fn a_timebase_is_no_pointer_and_no_address() {
        let head = "            perf       7 [001]     3.000001: vpa-dtl: timebase:";
        let of = |rest: &str| {
            let line = shown(&format!("{head}{rest}"));
            line.split_once("timebase:").map(|(_, rest)| rest.to_owned())
        };
        assert_eq!(of(" 0000000012345678").as_deref(), Some(" <ts:0000000012345678>"));
        assert_eq!(
            of(" 1234567812345678 a+0x1 (b)").as_deref(),
            Some(" <ts:1234567812345678> <sym:a+0x1> (b)")
        );
        assert_eq!(of(" 12 a+0x1").as_deref(), Some(" <ts:12> <sym:a+0x1>"));
        assert_eq!(of(" 12a").as_deref(), Some(" 12a"));
    }

    #[test]
    fn an_address_goes_with_its_symbol() {
        assert_eq!(
            shown("\tffffffff81000000 a_b+0x1f ([kernel.kallsyms])"),
            "\t<sym:ffffffff81000000 a_b+0x1f> ([kernel.kallsyms])"
        );
        assert_eq!(shown("\t    7f1234567890 [unknown] (/a b)"), "\t<sym:    7f1234567890 [unknown]> (/a b)");
        assert_eq!(
            shown("\t               0 [unknown] ([unknown])"),
            "\t<sym:               0 [unknown]> ([unknown])"
        );
        assert_eq!(shown("\tffffffff81000000 a_b"), "\tffffffff81000000 a_b");
        assert_eq!(shown("\tffffffff81000000 a_b (/x)"), "\t<sym:ffffffff81000000 a_b> (/x)");
        assert_eq!(shown("processor_id: 202 a_b+0x1f (/x)"), "processor_id: 202 <sym:a_b+0x1f> (/x)");
        assert_eq!(shown("p: 000000009536f554 a (b)"), "p: <ptr:000000009536f554> a (b)");
    }

    #[test]
    fn dispatches_of_a_cpu_are_in_order() {
        let line = |cpu: u8, time: &str, event: &str| {
            format!("         swapper       0 [00{cpu}] {time:>12}: {event}: timebase: 1\n")
        };
        let good = [line(0, "5.000002", "vpa-dtl"), line(1, "5.000001", "  1  vpa-dtl")].concat();
        assert_eq!(messages(Format::PerfScript, &good), Vec::<String>::new());
        let other = format!("{good}{}", line(0, "5.000001", "sched:sched_waking"));
        assert_eq!(messages(Format::PerfScript, &other), Vec::<String>::new());
        let bad = format!("{good}x\n{}", line(1, "4.999999", "vpa-dtl"));
        assert_eq!(
            messages(Format::PerfScript, &bad),
            ["4: on CPU 1 time goes back: line 2 is later than this one"]
        );
    }
}
