//! How lines of perf's dump begin: the start of a record, and an entry of the dispatch trace log.
//!
//! What follows, and what of it varies, is not known here.

use std::ops::Range;

use super::cursor::{Cursor, is_hex};

/// How the entry begins that the driver writes in front of the hypervisor's.
pub(crate) const BOOT: &[u8] = b"boot_tb: ";

/// The start of a record.
pub(crate) struct DumpRecord<'l> {
    /// The CPU, where it is printed, and the time.
    pub(crate) stamp: Option<(Option<Range<usize>>, Range<usize>)>,
    /// Where in perf's file it is.
    pub(crate) offset: Range<usize>,
    /// Its type, as `AUXTRACE`.
    pub(crate) name: &'l [u8],
    /// Where what it says begins.
    pub(crate) text: usize,
}

impl<'l> DumpRecord<'l> {
    /// The head of a record; `None` for any other line.
    pub(crate) fn read(line: &'l [u8]) -> Option<DumpRecord<'l>> {
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

/// A hexadecimal number with its `0x`. (`%#x` prints zero without it: that is not a token.)
pub(crate) fn hex(cursor: &mut Cursor<'_>) -> Option<Range<usize>> {
    let start = cursor.at;
    cursor.eat(b"0x")?;
    cursor.some(is_hex)?;
    Some(start..cursor.at)
}

/// An entry of the log: `.  OFFSET: TEXT`, the offset in 8 hexadecimal digits.
pub(crate) struct EntryLine {
    /// Where in the log the entry is, in bytes.
    pub(crate) offset: u64,
    /// Where the text begins.
    pub(crate) text: usize,
}

impl EntryLine {
    /// The entry in a line of a dump; `None` for any other line.
    pub(crate) fn read(line: &[u8]) -> Option<EntryLine> {
        let mut cursor = Cursor::new(line, 0);
        cursor.eat(b".  ")?;
        let digits = cursor.run(is_hex);
        cursor.eat(b": ")?;
        let offset = std::str::from_utf8(&line[digits.clone()]).ok()?;
        let offset = u64::from_str_radix(offset, 16).ok().filter(|_| digits.len() >= 8)?;
        Some(EntryLine { offset, text: cursor.at })
    }
}
