//! What `perf script` prints.
//!
//! A sample begins `COMM PID [CPU] TIME: ` or `COMM PID/TID [CPU] TIME: `, in columns, of which `-F`
//! can leave out the CPU; then follow its event and what it recorded (tools/perf/builtin-script.c,
//! `perf_sample__fprintf_start` and `process_event`, Linux 7.2). An address and its symbol end the
//! line, or stand on lines of their own under it. A vpa-dtl sample takes two lines: perf breaks it
//! after the preempt reason (`perf_sample__fprintf_synth_vpadtl`). What it says of the dispatch is
//! literal, as the writer of the log knows it; the timebase varies as the time does.
//!
//! Limit: a demangled C++ name with spaces in it is not seen as one symbol.

use std::ops::Range;

use memchr::memmem::Finder;

use super::clock::Clocks;
use super::cursor::{Cursor, is_hex, run_start};
use super::row::FormatRow;
use super::sample_head::{DISPATCH, SampleHead, space_before};
use super::symbol::{self, ADDRESS, Offset};
use super::units::Timestamp;
use super::{Token, TokenKind, Violation, number};

pub(super) const FORMAT: FormatRow = FormatRow {
    name: "perf_script",
    files: &[],
    tokens: Some(tokens),
    violations: Some(violations),
    numbers_are_significant: true,
};

fn tokens(line: &[u8], found: &mut Vec<Token>) {
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

/// The timebase of a dispatch, whose text is at `from`. A space follows it.
fn timebase(line: &[u8], from: usize) -> Option<Range<usize>> {
    let mut cursor = Cursor::new(line, from);
    cursor.eat(b"timebase: ")?;
    cursor.digits().filter(|_| matches!(cursor.rest(), [] | [b' ', ..]))
}

/// The place in code at the end of a line: an address in sixteen columns, a space and a name, and
/// maybe an object's name in brackets, which is literal.
fn place(line: &[u8], from: usize) -> Option<Range<usize>> {
    let text = &line[from..];
    let end = match text {
        [.., b')'] => text.windows(2).rposition(|pair| pair == b" (")?,
        _ => text.len(),
    };
    let name = from + run_start(text, end, |b| b != b' ')..from + end;
    let column = space_before(line, name.start)?;
    let start = column.checked_sub(ADDRESS).filter(|start| *start >= from)?;
    let digits = run_start(&line[start..], ADDRESS, is_hex);
    let padded = line[start..start + digits].iter().all(|b| *b == b' ');
    // The column is filled with spaces, so leading zeros are some other number's.
    let number = digits == ADDRESS - 1 || (digits < ADDRESS && line[start + digits] != b'0');
    let apart = start == from || matches!(line[start - 1], b' ' | b'\t');
    if !padded || !number || !apart || name.is_empty() {
        return None;
    }
    let shown = &line[name.clone()];
    let certain = end < text.len() || shown == b"[unknown]" || shown.windows(3).any(|w| w == b"+0x");
    certain.then_some(start..name.end)
}

/// The times of a CPU never go back.
fn violations(lines: &[&[u8]]) -> Vec<Violation> {
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
    fn tracepoint_sample_is_read_by_its_columns() {
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
    fn dispatch_sample_takes_two_lines() {
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
    fn timebase_is_not_a_pointer_or_an_address() {
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
    fn address_belongs_to_its_symbol() {
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
    fn dispatches_of_a_cpu_must_not_go_back() {
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
            ["4: time on CPU 1 goes back: line 2 has a later one"]
        );
    }
}
