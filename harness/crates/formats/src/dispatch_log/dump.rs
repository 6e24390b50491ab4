//! The dispatch trace log in what `perf report -D` prints.
//!
//! Under each AUXTRACE record stand the entries that it carries: the first of a CPU's first record
//! is written by the driver and not by the hypervisor, and says when the guest booted and how fast the
//! timebase is (tools/perf/util/powerpc-vpadtl.c, `powerpc_vpadtl_dump`, Linux 7.2). Entries have no
//! time here, and no processor.

use super::fields::{ReadError, reason, waits};
use crate::cursor::{Cursor, is_hex};
use crate::dump_line::{DumpRecord, EntryLine};
use crate::number;

/// An AUXTRACE record and the log that it carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuxRecord {
    /// The CPU whose log it is; `None` where perf says -1.
    pub cpu: Option<u32>,
    /// The number of the buffer.
    pub idx: u64,
    /// Where in the buffer's stream it begins, in bytes.
    pub offset: u64,
    /// What it carries, in bytes.
    pub size: u64,
    /// Its entries, in order.
    pub entries: Vec<DumpEntry>,
    /// Its line, from 1.
    pub line: usize,
}

/// An entry of a log in the dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DumpEntry {
    /// What the driver writes in front of a CPU's entries.
    Boot {
        /// Where in the record it is, in bytes.
        offset: u64,
        /// The timebase at boot, in ticks.
        timebase: u64,
        /// Ticks of the timebase in a second.
        frequency: u64,
    },
    /// What the hypervisor writes.
    Dispatch {
        /// Where in the record it is, in bytes.
        offset: u64,
        /// Why the virtual processor was dispatched, as printed.
        dispatch: String,
        /// Why it had been preempted before, as printed.
        preempt: String,
        /// The waits in ticks, in the order in which they passed: until it was ready, until it was
        /// enqueued, until it was dispatched.
        waits: [u32; 3],
    },
}

/// Read the AUXTRACE records and their entries; other lines are skipped.
///
/// # Errors
/// The first such line that cannot be read.
pub fn read_dump(text: &[u8]) -> Result<Vec<AuxRecord>, ReadError> {
    let mut found: Vec<AuxRecord> = Vec::new();
    let mut open = false;
    for (at, line) in text.split(|b| *b == b'\n').enumerate().map(|(at, line)| (at + 1, line)) {
        let error =
            |what: String| ReadError { line: at, what, text: String::from_utf8_lossy(line).into_owned() };
        if let Some(record) = DumpRecord::read(line) {
            open = record.name == b"AUXTRACE";
            if open {
                let read = aux_record(Cursor::new(line, record.text), at);
                let expected = "expected ` size: BYTES  offset: BYTES  ref: N  idx: N  tid: N  cpu: N`";
                found.push(read.ok_or_else(|| error(expected.to_owned()))?);
            }
        } else if let Some(entry) = EntryLine::read(line).filter(|_| open) {
            let entry = dump_entry(Cursor::new(line, entry.text), entry.offset).map_err(error)?;
            found.last_mut().expect("a record is open").entries.push(entry);
        }
    }
    Ok(found)
}

fn aux_record(mut cursor: Cursor<'_>, line: usize) -> Option<AuxRecord> {
    let size = hex(&mut cursor, b" size: ")?;
    let offset = hex(&mut cursor, b"  offset: ")?;
    hex(&mut cursor, b"  ref: ")?;
    let idx = integer(&mut cursor, b"  idx: ")?;
    integer(&mut cursor, b"  tid: ")?;
    let cpu = integer(&mut cursor, b"  cpu: ")?;
    let cpu = if cpu == -1 { None } else { Some(u32::try_from(cpu).ok()?) };
    let idx = u64::try_from(idx).ok()?;
    Some(AuxRecord { cpu, idx, offset, size, entries: Vec::new(), line })
}

fn dump_entry(mut cursor: Cursor<'_>, offset: u64) -> Result<DumpEntry, String> {
    if cursor.rest().starts_with(b"boot_tb:") {
        let boot = decimal(&mut cursor, b"boot_tb: ").zip(decimal(&mut cursor, b", tb_freq: "));
        let (timebase, frequency) = boot.ok_or("expected `boot_tb: TICKS, tb_freq: HERTZ`")?;
        return Ok(DumpEntry::Boot { offset, timebase, frequency });
    }
    let dispatch = reason(&mut cursor, "dispatch_reason:")?;
    let preempt = reason(&mut cursor, "preempt_reason:")?;
    Ok(DumpEntry::Dispatch { offset, dispatch, preempt, waits: waits(&mut cursor)? })
}

/// A number that `%#x` has printed: zero is without the `0x`.
fn hex(cursor: &mut Cursor<'_>, label: &[u8]) -> Option<u64> {
    cursor.eat(label)?;
    _ = cursor.eat(b"0x");
    let start = cursor.rest();
    let digits = cursor.some(is_hex)?;
    u64::from_str_radix(std::str::from_utf8(&start[..digits.len()]).ok()?, 16).ok()
}

fn decimal(cursor: &mut Cursor<'_>, label: &[u8]) -> Option<u64> {
    cursor.eat(label)?;
    let start = cursor.rest();
    let digits = cursor.digits()?;
    number(&start[..digits.len()])
}

fn integer(cursor: &mut Cursor<'_>, label: &[u8]) -> Option<i64> {
    cursor.eat(label)?;
    let start = cursor.rest();
    let digits = cursor.integer()?;
    std::str::from_utf8(&start[..digits.len()]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = include_str!("../testdata/dispatch.perf_dump");

    #[test]
    fn record_has_its_entries() {
        let records = read_dump(DUMP.as_bytes()).expect("readable");
        let shape: Vec<_> =
            records.iter().map(|r| (r.cpu, r.idx, r.offset, r.size, r.entries.len())).collect();
        assert_eq!(shape, [(Some(0), 0, 0, 0xc0, 4), (Some(1), 1, 0, 0x60, 2)]);
        let boot = DumpEntry::Boot { offset: 0, timebase: 1_234_567_890, frequency: 512_000_000 };
        assert_eq!(records[0].entries[0], boot);
        let last = DumpEntry::Dispatch {
            offset: 0x90,
            dispatch: "external_interrupt".to_owned(),
            preempt: "unused".to_owned(),
            waits: [1, u32::MAX, 1 << 31],
        };
        assert_eq!(records[0].entries[3], last);
    }

    #[test]
    fn unreadable_line_is_an_error_with_its_number() {
        let refused = |from: &str, to: &str| {
            let error = read_dump(DUMP.replacen(from, to, 1).as_bytes()).expect_err("not readable");
            (error.line, error.what)
        };
        assert!(refused("  idx: 0", "  idx: -1").1.contains("idx: N"));
        assert!(refused("tb_freq: 5", "tb_freq: x").1.contains("HERTZ"));
        assert!(refused("time:16,", "time:x,").1.contains("ready_to_enqueue_time:TICKS"));
    }
}
