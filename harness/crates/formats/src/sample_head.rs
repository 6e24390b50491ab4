//! How a line of `perf script` begins: the task, its ids, the CPU and the time, in columns.
//!
//! What follows is not known here, except the name of the event of the dispatch trace log.

use std::ops::Range;

use super::cursor::{Cursor, colons, integer, is_digit, right_aligned, run_start};

/// Columns of a task's name.
const COMM: usize = 16;
/// Columns of a process id.
const PID: usize = 7;
/// More than all columns together.
const LONGEST: usize = 80;
/// Columns of a time's seconds and its point.
const SECONDS: usize = 6;
/// How an entry of the dispatch trace log begins, after the period.
pub(crate) const DISPATCH: &[u8] = b"vpa-dtl: ";

/// Where the fields in front of an event are. Padding is included.
pub(crate) struct SampleHead {
    /// The task's name; absent where perf prints nothing of it.
    pub(crate) comm: Option<Range<usize>>,
    pub(crate) pid: Range<usize>,
    pub(crate) thread: Option<Range<usize>>,
    /// The CPU, where it is printed.
    pub(crate) cpu: Option<Range<usize>>,
    /// The time, with its padding.
    pub(crate) time: Range<usize>,
    /// Where the text after the time begins.
    pub(crate) text: usize,
}

impl SampleHead {
    /// A task's name may hold anything, even what looks like the fields. With a call chain perf
    /// prints it as it is, without one in its column: a line that has the column is read by it.
    pub(crate) fn read(line: &[u8]) -> Option<SampleHead> {
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
        let mut end = space_before(line, time.start)?;
        let mut cpu = None;
        if end > 0 && line[end - 1] == b']' {
            let digits = run_start(line, end - 1, is_digit)..end - 1;
            let open = digits.start.checked_sub(1).filter(|at| line[*at] == b'[' && !digits.is_empty())?;
            end = space_before(line, open)?;
            cpu = Some(digits);
        }
        let (digits, thread) = ids(line, end)?;
        let pid = right_aligned(line, digits.clone(), PID)..digits.end;
        let comm = match pid.start {
            0 => None,
            start => Some(0..space_before(line, start)?).filter(|span| !span.is_empty()),
        };
        Some(SampleHead { comm, pid, thread, cpu, time, text: colon + 2 })
    }

    /// Where what the sample says of a dispatch begins, if it is an entry of the dispatch trace log.
    /// The period may stand before the event's name.
    pub(crate) fn dispatch(&self, line: &[u8]) -> Option<usize> {
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

/// The space that separates the field at `start` from the one in front of it.
pub(crate) fn space_before(line: &[u8], start: usize) -> Option<usize> {
    start.checked_sub(1).filter(|at| line[*at] == b' ')
}
