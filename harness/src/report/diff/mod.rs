//! A failed comparison for a person: the lines that differ, side by side in number and one below
//! the other in text, then what else is wrong.
//!
//! This module owns how it looks. What is shown is chosen by [`hunks`], what a line looks like by
//! [`line`], what is stressed in it by [`words`]. Of a trial it knows the failed comparison only.

mod hunks;
mod line;
mod rows;
mod table;
#[cfg(test)]
mod tests;
mod words;

use std::fmt::Write as _;

use self::line::{Line, WIDTH_MAX};
use self::rows::Row;
use super::colour::{Colour, Palette};
use super::escape::escape_line;
use super::text::ReportText;
use golden::split_lines;
use trial::CaptureFailure;

/// Conflicts beyond these are counted, not shown; so are violations.
const FINDINGS_MAX: usize = 20;

/// The failure as text: where, which lines differ, and what else is wrong.
pub(super) fn render(failure: &CaptureFailure, colour: Colour, text: &mut ReportText) {
    let CaptureFailure { golden, capture, comparison, file, .. } = failure;
    let (lines, _) = split_lines(capture);
    let rows: Vec<Row> = comparison.edits.iter().copied().map(Row::from).collect();
    let palette = Palette::new(colour);
    let title = |text: &mut ReportText, title: &str| {
        text.styled(palette.title, &escape_line(title, WIDTH_MAX));
        text.end_line();
    };
    if let Some(line) = rows::first_difference(&rows) {
        title(text, &format!("{}:{line}: the capture differs", golden.file));
        table::write(failure, &rows, &lines, colour, text);
    }
    if comparison.missing_final_newline {
        title(text, &format!("{file}:{}: the last line has no line end", lines.len()));
        offending(lines.last().copied(), text);
    }
    for conflict in comparison.conflicts.iter().take(FINDINGS_MAX) {
        let here = conflict.here();
        let whole = format!("{}:{}: {conflict}", here.golden, here.golden_line);
        let (first, places) = whole.split_once('\n').unwrap_or((&whole, ""));
        title(text, first);
        for place in places.lines() {
            let _ = writeln!(text, "{}", escape_line(place, WIDTH_MAX));
        }
    }
    more(comparison.conflicts.len(), "conflicts of names", text);
    for violation in comparison.violations.iter().take(FINDINGS_MAX) {
        title(text, &format!("{file}:{}: {}", violation.line, violation.message));
        offending(violation.line.checked_sub(1).and_then(|at| lines.get(at)).copied(), text);
    }
    more(comparison.violations.len(), "broken rules", text);
    let _ = writeln!(text, "  capture: {file}");
}

/// The line of the capture that breaks a rule.
fn offending(line: Option<&[u8]>, text: &mut ReportText) {
    if let Some(bytes) = line {
        let line = Line::of_capture(bytes, 0);
        let words: String = line.words.iter().map(|word| word.text.as_str()).collect();
        let _ = writeln!(text, "    {words}{}", line.suffix());
    }
}

fn more(count: usize, what: &str, text: &mut ReportText) {
    if count > FINDINGS_MAX {
        let _ = writeln!(text, "... and {} more {what}", count - FINDINGS_MAX);
    }
}
