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
//! Limits: of records that map memory or report a fork or an exit, only the start is tokens.

use super::cursor::{Cursor, colons, integer};
use super::dispatch_log::whole;
use super::dump_line::{BOOT, DumpRecord, EntryLine, hex};
use super::row::FormatRow;
use super::{Token, TokenKind};

pub(super) const FORMAT: FormatRow = FormatRow {
    name: "perf_dump",
    files: &[],
    tokens: Some(tokens),
    violations: Some(whole::violations),
    numbers_are_significant: true,
};

fn tokens(line: &[u8], found: &mut Vec<Token>) {
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
    } else if let Some(entry) = EntryLine::read(line) {
        let mut cursor = Cursor::new(line, entry.text);
        let boot = cursor.eat(BOOT).and_then(|()| cursor.digits());
        found.extend(boot.map(|span| Token::new(span, TokenKind::Ts)));
    } else if line.starts_with(b" ... thread: ") {
        _ = thread(line, found);
    }
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

/// Values after a label: `pid: N`, `tid: N`, `cpu: N`. -1 says that the record is for no task or
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

    fn shown(line: &str) -> String {
        show(Format::PerfDump, line)
    }

    #[test]
    fn record_starts_with_cpu_time_and_offset() {
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
    fn sample_and_task_have_ids() {
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
    fn only_the_timebase_of_the_boot_varies_in_a_log() {
        assert_eq!(
            shown(".  00000000: boot_tb: 21349649546353231, tb_freq: 512000000"),
            ".  00000000: boot_tb: <ts:21349649546353231>, tb_freq: 512000000"
        );
        let entry = ".  00000030: dispatch_reason:H_PROD, preempt_reason:H_CEDE, enqueue_to_dispatch_time:7, ready_to_enqueue_time:0, waiting_to_ready_time:1";
        assert_eq!(shown(entry), entry);
        assert_eq!(shown(".  0000: boot_tb: 1"), ".  0000: boot_tb: 1");
    }
}
