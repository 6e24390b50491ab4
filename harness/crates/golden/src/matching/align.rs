//! Which line of a golden belongs to which line of a capture, by their shape alone.
//!
//! Plain lines at the start that leave no choice are paired first: of most captures that is all.
//! [`follow`] then finds, in one pass, whether there is an alignment without a line left over: that
//! alone is the verdict on shape. When there is none, one with few lines left over is made for
//! showing: exact where it is small ([`table`]), coarse where it is not ([`coarse`]). What names
//! mean is not looked at here.

use super::alignment::{Alignment, Followed};
use super::coarse::coarse;
use super::lines::Lines;
use super::matcher::follow;
use super::program::Program;
use super::table::{fits_a_table, table};

/// The alignment of a program with a capture.
pub(super) fn align<'g>(program: &Program<'g>, lines: &Lines<'_>) -> Alignment<'g> {
    let edits = Vec::with_capacity(lines.len());
    let mut found = Alignment { edits, named: Vec::new(), parts: Vec::new(), followed: Followed::Fits };
    let start = prefix(program, lines, &mut found);
    found.followed = follow(program, lines, start, &mut found);
    if found.followed != Followed::Fits {
        approximate(program, lines, start, &mut found);
    }
    found
}

/// Append the first lines that fit the first rows, and give their number.
fn prefix<'g>(program: &Program<'g>, lines: &Lines<'_>, found: &mut Alignment<'g>) -> usize {
    let mut tokens = Vec::new();
    for line in 0..lines.len() {
        match program.plain(line) {
            Some(row) if lines.fits_with(row, line, &mut tokens) => found.both(*row, line),
            _ => return line,
        }
    }
    lines.len()
}

/// Append an alignment of what follows the first `start` lines, which fit.
fn approximate<'g>(program: &Program<'g>, lines: &Lines<'_>, start: usize, found: &mut Alignment<'g>) {
    let (n, m) = (program.ops.len(), lines.len());
    let both = |at: usize| program.plain(n - 1 - at).is_some_and(|row| lines.fits(row, m - 1 - at));
    let end = (0..(n - start).min(m - start)).take_while(|at| both(*at)).count();
    let (ops, rest) = (start..n - end, start..m - end);
    if fits_a_table(&ops, &rest) {
        table(program, lines, ops, rest, found);
    } else {
        coarse(program, lines, ops, rest, found);
    }
    for (op, line) in (n - end..n).zip(m - end..m) {
        if let Some(row) = program.plain(op) {
            found.both(*row, line);
        }
    }
}
