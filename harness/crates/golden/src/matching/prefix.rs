//! The common start of a program and a capture: plain lines that leave no choice.
//!
//! Of a capture that is as expected it is all, or all up to the first choice. It is looked at by
//! several threads when it is long: each line is held against one row, whatever becomes of the
//! others.

use std::ops::Range;
use std::thread;

use super::program::Program;
use super::select::Row;
use super::{Alignment, Lines};
use crate::Edit;

/// Fewer lines are no work worth a thread.
const LINES_OF_A_THREAD: usize = 50_000;
const THREADS_MAX: usize = 4;

/// Plain lines from one on.
struct Run {
    /// The first that does not fit.
    end: usize,
    /// Those whose rows name something.
    named: Vec<usize>,
}

/// Append the first lines that fit the first rows, and give their number.
pub(super) fn prefix<'g>(program: &Program<'g>, lines: &Lines<'_>, found: &mut Alignment<'g>) -> usize {
    let most = program.ops.len().min(lines.len());
    let cores = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let share = most.div_ceil(cores).max(LINES_OF_A_THREAD);
    let shares: Vec<Range<usize>> =
        (0..most).step_by(share).map(|start| start..(start + share).min(most)).collect();
    let runs: Vec<Run> = match shares.as_slice() {
        [first, others @ ..] if !others.is_empty() => thread::scope(|scope| {
            let run = |share: &Range<usize>| {
                let share = share.clone();
                scope.spawn(move || run(program, lines, share))
            };
            let others: Vec<_> = others.iter().map(run).collect();
            let first = self::run(program, lines, first.clone());
            let others = others.into_iter().map(|thread| match thread.join() {
                Ok(run) => run,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            std::iter::once(first).chain(others).collect()
        }),
        shares => shares.iter().map(|share| run(program, lines, share.clone())).collect(),
    };
    let mut head = 0;
    for (run, share) in runs.into_iter().zip(shares) {
        let row = |at: usize| program.plain(at).copied();
        let same = |(at, row): (usize, Row<'g>)| Edit::Same { golden: row.line, capture: at + 1 };
        found.edits.extend((head..run.end).filter_map(|at| Some((at, row(at)?))).map(same));
        found.named.extend(run.named.into_iter().filter_map(|at| Some((row(at)?, at))));
        head = run.end;
        if head < share.end {
            break;
        }
    }
    head
}

fn run(program: &Program<'_>, lines: &Lines<'_>, share: Range<usize>) -> Run {
    let (mut named, mut tokens) = (Vec::new(), Vec::new());
    for at in share.clone() {
        let Some(row) = program.plain(at).filter(|row| lines.fits_with(row, at, &mut tokens)) else {
            return Run { end: at, named };
        };
        if row.pattern.has_names() {
            named.push(at);
        }
    }
    Run { end: share.end, named }
}
