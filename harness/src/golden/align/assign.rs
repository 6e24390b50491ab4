//! Rows that may stand in any order.

use super::Lines;
use super::lines::Window;
use crate::golden::select::Row;

/// For each row the line that it takes when rows may stand in any order, as far as that goes.
pub(super) fn assign(rows: &[Row<'_>], from: usize, to: usize, lines: &Lines<'_>) -> Vec<Option<usize>> {
    let mut window = lines.window(from);
    let mut row_of: Vec<Option<usize>> = vec![None; to - from];
    for row in 0..rows.len() {
        augment(rows, row, from, &mut window, &mut row_of);
    }
    let mut line_of = vec![None; rows.len()];
    for (at, row) in row_of.iter().enumerate() {
        if let Some(row) = row {
            line_of[*row] = Some(from + at);
        }
    }
    line_of
}

/// Find a line for `row`, moving other rows to other lines where that makes room.
///
/// A search in depth whose stack is a list: one row may move as many others as there are, and that
/// is more than the thread's stack holds.
fn augment(
    rows: &[Row<'_>],
    row: usize,
    from: usize,
    window: &mut Window<'_, '_>,
    row_of: &mut [Option<usize>],
) {
    let mut tried = vec![false; row_of.len()];
    // Each row that looks for a line, with the place at which it looks.
    let mut searches = vec![(row, 0)];
    while let Some((row, at)) = searches.last_mut() {
        let row = *row;
        let found = (*at..row_of.len()).find(|at| !tried[*at] && window.fits(&rows[row], from + at));
        let Some(place) = found else {
            searches.pop();
            // The row that wanted this one's line looks on behind it.
            if let Some((_, at)) = searches.last_mut() {
                *at += 1;
            }
            continue;
        };
        *at = place;
        tried[place] = true;
        match row_of[place] {
            Some(other) => searches.push((other, 0)),
            None => {
                for (row, place) in searches {
                    row_of[place] = Some(row);
                }
                return;
            }
        }
    }
}
