//! What `perf report -D` prints: the records of a recording, one by one.
//!
//! A record begins `CPU TIME OFFSET [SIZE]: PERF_RECORD_NAME` (tools/perf/util/session.c,
//! `dump_event` and `evlist__print_tstamp`, Linux 7.2), with the time in nanoseconds. What depends
//! on the recording are these, the ids of tasks, and the instruction's address of a sample. Sizes
//! are literal: how much was written is what a golden is about.
//!
//! Under an AUXTRACE record of the vpa_dtl PMU stands the [dispatch trace log](super::dispatch_log).
//! There the timebase of the boot varies, and the entries are literal.
//!
//! Limits: of records that map memory or tell of a fork or an exit, only the start is tokens.

use std::collections::BTreeMap;
use std::ops::Range;

use super::cursor::{Cursor, colons, integer, is_hex};
use super::dispatch_log::DumpLine;
use super::{Token, TokenKind, number};

/// What stands before an AUXTRACE record's CPU, at its end.
const CPU: &[u8] = b"cpu: ";
/// How the driver's own entry begins.
const BOOT: &[u8] = b"boot_tb: ";

pub(super) fn tokens(line: &[u8], found: &mut Vec<Token>) {
    if let Some(record) = DumpRecord::read(line) {
        if let Some((cpu, time)) = record.stamp {
            found.extend(cpu.map(|span| Token::new(span, TokenKind::Cpu)));
            found.push(Token::new(time, TokenKind::Ts));
        }
        found.push(Token::new(record.offset, TokenKind::Hex));
        match record.name {
            b"SAMPLE" => _ = sample(line, record.text, found),
            b"COMM" => _ = task(line, record.text, found),
            _ => labelled(line, record.text, found),
        }
    } else if let Some(entry) = DumpLine::read(line) {
        let mut cursor = Cursor::new(line, entry.text);
        let boot = cursor.eat(BOOT).and_then(|()| cursor.digits());
        found.extend(boot.map(|span| Token::new(span, TokenKind::Ts)));
    } else if line.starts_with(b" ... thread: ") {
        _ = thread(line, found);
    }
}

/// The AUXTRACE records of a dump, each with the log that it carries, without the lines between them.
pub fn auxtrace_part(dump: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut inside = false;
    for line in dump.split_inclusive(|b| *b == b'\n') {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let begins = DumpRecord::read(text).is_some_and(|record| record.name == b"AUXTRACE");
        inside = begins || (inside && text.starts_with(b"."));
        if inside {
            kept.extend_from_slice(line);
        }
    }
    kept
}

/// The hypervisor's entries in the AUXTRACE records of a dump, by CPU and in order, as lines of `CPU N: `
/// and the entry's text. Into how many records perf parts them, and which CPU's come first, depends on
/// when it was woken up.
pub fn log_entries(dump: &[u8]) -> Vec<u8> {
    let part = auxtrace_part(dump);
    let mut by_cpu: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    let mut cpu = None;
    for line in part.split(|b| *b == b'\n') {
        if let Some(record) = DumpRecord::read(line) {
            let text = &line[record.text..];
            let start = text.windows(CPU.len()).rposition(|w| w == CPU).map(|at| at + CPU.len());
            cpu = start.and_then(|start| number(&text[start..]));
        } else if let (Some(cpu), Some(entry)) = (cpu, DumpLine::read(line)) {
            let text = &line[entry.text..];
            if !text.starts_with(BOOT) {
                let kept = by_cpu.entry(cpu).or_default();
                kept.extend_from_slice(format!("CPU {cpu}: ").as_bytes());
                kept.extend_from_slice(text);
                kept.push(b'\n');
            }
        }
    }
    by_cpu.into_values().flatten().collect()
}

/// The start of a record.
pub struct DumpRecord<'l> {
    stamp: Option<(Option<Range<usize>>, Range<usize>)>,
    offset: Range<usize>,
    /// Its type, as `AUXTRACE`.
    pub name: &'l [u8],
    /// Where what it says begins.
    pub text: usize,
}

impl<'l> DumpRecord<'l> {
    /// The head of a record; `None` for any other line.
    pub fn read(line: &'l [u8]) -> Option<DumpRecord<'l>> {
        let mut cursor = Cursor::new(line, 0);
        let stamp = stamp(&mut cursor);
        if stamp.is_none() {
            // What perf writes when its events carry no CPU and time.
            _ = cursor.eat(b"-1 -1 ");
        }
        let offset = hex(&mut cursor)?;
        // The line before a record names the file too, and the record's type by number.
        if cursor.eat(b"@").is_some() {
            return Some(DumpRecord { stamp, offset, name: b"", text: line.len() });
        }
        cursor.eat(b" [")?;
        hex(&mut cursor)?;
        cursor.eat(b"]: PERF_RECORD_")?;
        let name = cursor.run(|b| b.is_ascii_alphanumeric() || b == b'_');
        Some(DumpRecord { stamp, offset, name: &line[name], text: cursor.at })
    }
}

/// The CPU and the time in front of a record. Where one of them is missing it is the CPU, which
/// perf records for recordings of whole CPUs only.
fn stamp(cursor: &mut Cursor<'_>) -> Option<(Option<Range<usize>>, Range<usize>)> {
    let mut ahead = cursor.clone();
    let first = ahead.digits()?;
    ahead.eat(b" ")?;
    *cursor = ahead.clone();
    match (ahead.digits(), ahead.eat(b" ")) {
        (Some(second), Some(())) => {
            *cursor = ahead;
            Some((Some(first), second))
        }
        _ => Some((None, first)),
    }
}

/// A hexadecimal number with its `0x`. (`%#x` prints zero without it: that is no token.)
fn hex(cursor: &mut Cursor<'_>) -> Option<Range<usize>> {
    let start = cursor.at;
    cursor.eat(b"0x")?;
    cursor.some(is_hex)?;
    Some(start..cursor.at)
}

/// `(IP, 0x1): PID/TID: ADDRESS period: ...`
fn sample(line: &[u8], from: usize, found: &mut Vec<Token>) -> Option<()> {
    let mut cursor = Cursor::new(line, from);
    cursor.eat(b"(IP, ")?;
    hex(&mut cursor)?;
    cursor.eat(b"): ")?;
    let pid = cursor.integer()?;
    cursor.eat(b"/")?;
    let tid = cursor.integer()?;
    found.extend([pid, tid].map(|span| Token::new(span, TokenKind::Pid)));
    cursor.eat(b": ")?;
    found.push(Token::new(hex(&mut cursor)?, TokenKind::Hex));
    Some(())
}

/// `: COMM:PID/TID`, or ` exec: COMM:PID/TID`.
fn task(line: &[u8], from: usize, found: &mut Vec<Token>) -> Option<()> {
    let start = colons(line, from).next()? + 2;
    let tid = integer(line, line.len())?;
    let slash = before(line, tid.start, b'/')?;
    let pid = integer(line, slash)?;
    let end = before(line, pid.start, b':').filter(|end| *end > start)?;
    found.push(Token::new(start..end, TokenKind::Comm));
    found.extend([pid, tid].map(|span| Token::new(span, TokenKind::Pid)));
    Some(())
}

/// ` ... thread: COMM:TID`
fn thread(line: &[u8], found: &mut Vec<Token>) -> Option<()> {
    let start = colons(line, 0).next()? + 2;
    let tid = integer(line, line.len())?;
    let end = before(line, tid.start, b':').filter(|end| *end > start)?;
    found.push(Token::new(start..end, TokenKind::Comm));
    found.push(Token::new(tid, TokenKind::Pid));
    Some(())
}

/// Where this byte is, if it is the one before `end`.
fn before(line: &[u8], end: usize, byte: u8) -> Option<usize> {
    end.checked_sub(1).filter(|at| line[*at] == byte)
}

/// Values behind a label: `pid: N`, `tid: N`, `cpu: N`. -1 says that the record is for no task or
/// CPU in particular: that is literal.
fn labelled(line: &[u8], from: usize, found: &mut Vec<Token>) {
    for end in colons(line, from) {
        let kind = match &line[from..end] {
            [.., b' ', b'p' | b't', b'i', b'd'] => TokenKind::Pid,
            [.., b' ', b'c', b'p', b'u'] => TokenKind::Cpu,
            _ => continue,
        };
        let value = Cursor::new(line, end + 2).digits();
        found.extend(value.map(|span| Token::new(span, kind)));
    }
}

#[cfg(test)]
mod tests {
    use crate::Format;
    use crate::testing::show;
    use crate::{auxtrace_part, log_entries};

    fn shown(line: &str) -> String {
        show(Format::PerfDump, line)
    }

    #[test]
    fn a_log_is_parted_from_the_rest() {
        let log = "0 0 0x8 [0x30]: PERF_RECORD_AUXTRACE size: 0x30  offset: 0  ref: 0  idx: 0  tid: -1  cpu: 0\n.\n\
                   . ... VPA DTL PMU data: size 48 bytes, entries is 1\n.  00000000: boot_tb: 1, tb_freq: 2\n";
        let dump = format!(
            "0 0 0x258 [0x18]: PERF_RECORD_AUXTRACE_INFO type: 7\n\n0x8@perf.data [0x30]: event: 71\n.\n. ... raw\n\n\
             {log}\n0 0 0x9 [0x8]: PERF_RECORD_FINISHED_ROUND\n.  0000:  44\n{log}"
        );
        let part = auxtrace_part(dump.as_bytes());
        assert_eq!(String::from_utf8_lossy(&part), format!("{log}{log}"));
        assert!(auxtrace_part(b"").is_empty());
        let entry = |record: &str, mark: u8| {
            format!("{log}.  00000030: dispatch_reason:{mark}\n").replace("cpu: 0", record)
        };
        let dump = [entry("cpu: 1", 1), entry("cpu: 0", 2), entry("cpu: 1", 3)].concat();
        let expected = "CPU 0: dispatch_reason:2\nCPU 1: dispatch_reason:1\nCPU 1: dispatch_reason:3\n";
        assert_eq!(String::from_utf8_lossy(&log_entries(dump.as_bytes())), expected);
    }

    #[test]
    fn a_record_begins_with_where_and_when() {
        assert_eq!(
            shown(
                "0 0 0x39b10 [0x30]: PERF_RECORD_AUXTRACE size: 0x690  offset: 0  ref: 0  idx: 0  tid: -1  cpu: 0"
            ),
            "<cpu:0> <ts:0> <hex:0x39b10> [0x30]: PERF_RECORD_AUXTRACE size: 0x690  offset: 0  ref: 0  idx: 0  tid: -1  cpu: <cpu:0>"
        );
        assert_eq!(
            shown("-1 -1 0x1f8 [0x28]: PERF_RECORD_TIME_CONV"),
            "-1 -1 <hex:0x1f8> [0x28]: PERF_RECORD_TIME_CONV"
        );
        assert_eq!(shown("55 0x1f8 [0x28]: PERF_RECORD_AUX"), "<ts:55> <hex:0x1f8> [0x28]: PERF_RECORD_AUX");
        assert_eq!(shown("0x1f8 [0x28]: PERF_RECORD_AUX"), "<hex:0x1f8> [0x28]: PERF_RECORD_AUX");
        assert_eq!(shown("0x1f8@perf.data [0x28]: event: 79"), "<hex:0x1f8>@perf.data [0x28]: event: 79");
        assert_eq!(
            shown("1 5 0x8 [0x28]: PERF_RECORD_ITRACE_START pid: 12 tid: 13"),
            "<cpu:1> <ts:5> <hex:0x8> [0x28]: PERF_RECORD_ITRACE_START pid: <pid:12> tid: <pid:13>"
        );
    }

    #[test]
    fn samples_and_tasks_have_ids() {
        assert_eq!(
            shown(
                "1 98765432101 0x8 [0x28]: PERF_RECORD_SAMPLE(IP, 0x1): 12/13: 0xc0000000000f8094 period: 1 addr: 0"
            ),
            "<cpu:1> <ts:98765432101> <hex:0x8> [0x28]: PERF_RECORD_SAMPLE(IP, 0x1): <pid:12>/<pid:13>: <hex:0xc0000000000f8094> period: 1 addr: 0"
        );
        assert_eq!(
            shown("0 0 0x8 [0x28]: PERF_RECORD_COMM exec: a: b:12/13"),
            "<cpu:0> <ts:0> <hex:0x8> [0x28]: PERF_RECORD_COMM exec: <comm:a: b>:<pid:12>/<pid:13>"
        );
        assert_eq!(shown(" ... thread: my task:13"), " ... thread: <comm:my task>:<pid:13>");
        assert_eq!(shown(" ... thread: :-1:-1"), " ... thread: <comm::-1>:<pid:-1>");
        assert_eq!(shown(" ... thread: :-1"), " ... thread: :-1");
    }

    #[test]
    fn only_the_boots_timebase_varies_in_a_log() {
        assert_eq!(
            shown(".  00000000: boot_tb: 21349649546353231, tb_freq: 512000000"),
            ".  00000000: boot_tb: <ts:21349649546353231>, tb_freq: 512000000"
        );
        let entry = ".  00000030: dispatch_reason:H_PROD, preempt_reason:H_CEDE, enqueue_to_dispatch_time:7, ready_to_enqueue_time:0, waiting_to_ready_time:1";
        assert_eq!(shown(entry), entry);
        assert_eq!(shown(".  0000: boot_tb: 1"), ".  0000: boot_tb: 1");
    }
}
