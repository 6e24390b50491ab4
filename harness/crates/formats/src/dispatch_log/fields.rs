//! What perf prints of an entry, in `perf script` and in the dump alike.

use crate::cursor::Cursor;

/// A line that belongs to the dispatch trace log and cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to read line {line} of the dispatch trace log: {what}: `{text}`")]
pub struct ReadError {
    /// The line, from 1.
    pub line: usize,
    /// What was expected.
    pub what: String,
    /// The line.
    pub text: String,
}

/// `LABELvalue` up to the comma, which is passed.
pub(super) fn reason(cursor: &mut Cursor<'_>, label: &str) -> Result<String, String> {
    let missing = || format!("expected `{label}REASON,`");
    cursor.eat(label.as_bytes()).ok_or_else(missing)?;
    let start = cursor.rest();
    let text = cursor.some(|b| b != b',').map(|span| &start[..span.len()]).ok_or_else(missing)?;
    cursor.eat(b",").ok_or_else(missing)?;
    cursor.run(is_space);
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// The waits of an entry in ticks of the timebase, in the order in which they pass: until ready,
/// until enqueued, until dispatched. perf prints the last one first.
pub(super) fn waits(cursor: &mut Cursor<'_>) -> Result<[u32; 3], String> {
    let dispatched = ticks(cursor, "enqueue_to_dispatch_time:")?;
    comma(cursor)?;
    let enqueued = ticks(cursor, "ready_to_enqueue_time:")?;
    comma(cursor)?;
    let ready = ticks(cursor, "waiting_to_ready_time:")?;
    Ok([ready, enqueued, dispatched])
}

/// perf prints these unsigned 32 bits with `%d`.
fn ticks(cursor: &mut Cursor<'_>, label: &str) -> Result<u32, String> {
    let missing = || format!("expected `{label}TICKS`, a number of 32 bits");
    cursor.eat(label.as_bytes()).ok_or_else(missing)?;
    let start = cursor.rest();
    let digits = cursor.integer().map(|span| &start[..span.len()]).ok_or_else(missing)?;
    let value = std::str::from_utf8(digits).ok().and_then(|text| text.parse::<i64>().ok());
    let unsigned = |value: i64| u32::try_from(value).ok();
    let signed = |value: i64| i32::try_from(value).ok().map(|value| value as u32);
    value.and_then(|value| unsigned(value).or_else(|| signed(value))).ok_or_else(missing)
}

/// The kernel's documents have spaces and tabs after a comma, where 7.2 has none.
pub(super) fn comma(cursor: &mut Cursor<'_>) -> Result<(), String> {
    cursor.eat(b",").ok_or("expected a comma")?;
    cursor.run(is_space);
    Ok(())
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_is_unsigned_and_of_32_bits() {
        let read = |text: &str| ticks(&mut Cursor::new(format!("w:{text}").as_bytes(), 0), "w:").ok();
        assert_eq!(read("0"), Some(0));
        assert_eq!(read("-1"), Some(u32::MAX));
        assert_eq!(read("-2147483648"), Some(1 << 31));
        assert_eq!(read("4294967295"), Some(u32::MAX));
        for bad in ["-2147483649", "4294967296", "99999999999999999999", "x", ""] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
