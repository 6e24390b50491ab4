//! The rule that a dispatch trace log in perf's dump is whole.
//!
//! Under an AUXTRACE record a line gives the log's bytes and its entries, of 48 bytes each, and then
//! each entry has a line with its offset; bytes that are less than an entry are left over at the end
//! (tools/perf/util/powerpc-vpadtl.c, `powerpc_vpadtl_dump`, Linux 7.2). What an entry says is
//! not known here.

use crate::cursor::{Cursor, is_hex};
use crate::dump_line::{DumpRecord, EntryLine};
use crate::{Violation, number};

/// Bytes of an entry.
const ENTRY: u64 = 48;

pub(crate) fn violations(lines: &[&[u8]]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut size = None;
    let mut log: Option<DumpedLog> = None;
    for (at, line) in lines.iter().enumerate() {
        let at = at + 1;
        if let (Some(log), Some(entry)) = (&mut log, EntryLine::read(line)) {
            found.extend(log.add(&entry).map(|message| Violation { line: at, message }));
            continue;
        }
        found.extend(log.take().and_then(DumpedLog::close));
        if let Some(record) = DumpRecord::read(line) {
            size = (record.name == b"AUXTRACE").then(|| data_size(&line[record.text..])).flatten();
        } else if let Some((bytes, entries)) = summary(line) {
            let wrong = wrong_summary(size.take(), bytes, entries);
            found.extend(wrong.map(|message| Violation { line: at, message }));
            log = Some(DumpedLog { line: at, entries, seen: 0, next: 0 });
        }
    }
    found.extend(log.and_then(DumpedLog::close));
    found
}

/// The bytes that an AUXTRACE record carries.
fn data_size(text: &[u8]) -> Option<u64> {
    let mut cursor = Cursor::new(text, 0);
    cursor.eat(b" size: 0x")?;
    let digits = cursor.some(is_hex)?;
    u64::from_str_radix(std::str::from_utf8(&text[digits]).ok()?, 16).ok()
}

/// `. ... VPA DTL PMU data: size BYTES bytes, entries is ENTRIES`
fn summary(line: &[u8]) -> Option<(u64, u64)> {
    let mut cursor = Cursor::new(line, 0);
    cursor.eat(b". ... VPA DTL PMU data: size ")?;
    let bytes = cursor.digits()?;
    cursor.eat(b" bytes, entries is ")?;
    Some((number(&line[bytes])?, number(cursor.rest())?))
}

fn wrong_summary(size: Option<u64>, bytes: u64, entries: u64) -> Option<String> {
    if let Some(size) = size.filter(|size| *size != bytes) {
        return Some(format!("the log has {bytes} bytes, but its AUXTRACE record says {size}"));
    }
    let whole = bytes / ENTRY;
    (entries != whole).then(|| format!("{bytes} bytes are {whole} entries of {ENTRY} bytes, found {entries}"))
}

/// The dump of one log so far.
struct DumpedLog {
    /// The line that announces it.
    line: usize,
    entries: u64,
    seen: u64,
    next: u64,
}

impl DumpedLog {
    fn add(&mut self, entry: &EntryLine) -> Option<String> {
        let expected = std::mem::replace(&mut self.next, entry.offset.saturating_add(ENTRY));
        self.seen += 1;
        (entry.offset != expected)
            .then(|| format!("expected an entry at 0x{expected:x}, found it at 0x{:x}", entry.offset))
    }

    fn close(self) -> Option<Violation> {
        let DumpedLog { line, entries, seen, .. } = self;
        let message = format!("expected {entries} entries, found {seen}");
        (seen != entries).then_some(Violation { line, message })
    }
}

#[cfg(test)]
mod tests {
    use crate::Format;
    use crate::testing::messages;

    const RECORD: &str =
        "0 0 0x8 [0x30]: PERF_RECORD_AUXTRACE size: 0x96  offset: 0  ref: 0  idx: 0  tid: -1  cpu: 0\n.\n";

    #[test]
    fn log_must_be_whole() {
        let log = |bytes: u32, entries: u32, offsets: &[u32]| {
            let lines: String = offsets.iter().map(|at| format!(".  {at:08x}: x\n")).collect();
            format!("{RECORD}. ... VPA DTL PMU data: size {bytes} bytes, entries is {entries}\n{lines}")
        };
        let found = |text: &str| messages(Format::PerfDump, text);
        let good = log(150, 3, &[0, 0x30, 0x60]);
        assert_eq!(found(&good), Vec::<String>::new());
        assert_eq!(found(&format!("{good}\n{good}")), Vec::<String>::new());
        assert_eq!(
            found(&log(149, 3, &[0, 0x30, 0x60])),
            ["3: the log has 149 bytes, but its AUXTRACE record says 150"]
        );
        assert_eq!(found(&log(150, 2, &[0, 0x30])), ["3: 150 bytes are 3 entries of 48 bytes, found 2"]);
        assert_eq!(found(&log(150, 3, &[0, 0x30])), ["3: expected 3 entries, found 2"]);
        assert_eq!(found(&log(150, 3, &[0, 0x40, 0x70])), ["5: expected an entry at 0x30, found it at 0x40"]);
    }
}
