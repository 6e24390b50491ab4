//! A failed comparison as a unified diff.

use std::fmt::Write as _;

use crate::golden::{Edit, split_lines};
use crate::run::CaptureFailure;

const CONTEXT: usize = 3;
/// Hunks beyond these are counted, not shown.
const HUNKS_MAX: usize = 40;
/// Characters of a line beyond these are cut.
const WIDTH_MAX: usize = 400;

/// A line of the diff, before hunks are cut.
struct Row {
    sign: char,
    text: String,
    golden: Option<usize>,
    capture: Option<usize>,
}

/// The failure as text: where, a unified diff, and what else is wrong.
pub(super) fn render(failure: &CaptureFailure) -> String {
    let CaptureFailure { golden, capture, comparison, file, .. } = failure;
    let rows = rows(failure);
    let mut text = String::new();
    let differs = rows.iter().any(|row| row.sign != ' ');
    if differs {
        let first = rows.iter().find_map(|row| if row.sign == ' ' { None } else { row.golden.or(Some(0)) });
        let line = first.filter(|line| *line > 0).unwrap_or_else(|| nearest_golden_line(&rows));
        let _ = writeln!(text, "{}:{line}: the capture differs", golden.file);
        let _ = writeln!(text, "--- {}\n+++ {file}", golden.file);
        hunks(&rows, &mut text);
    }
    if comparison.unfinished {
        let _ = writeln!(text, "{file}: the last line has no line end");
    }
    for violation in &comparison.violations {
        let _ = writeln!(text, "{file}:{}: {}", violation.line, violation.message);
        if !differs {
            let lines = split_lines(capture).0;
            let _ = writeln!(text, "    {}", shown(lines[violation.line - 1]));
        }
    }
    for conflict in &comparison.conflicts {
        let here = conflict.here();
        let _ = writeln!(text, "{}:{}: {conflict}", here.golden, here.golden_line);
    }
    text
}

fn rows(failure: &CaptureFailure) -> Vec<Row> {
    let lines = split_lines(&failure.capture).0;
    let golden_text = |line: usize| failure.golden.lines[line - 1].clone();
    let edits = &failure.comparison.edits;
    edits
        .iter()
        .map(|edit| match *edit {
            Edit::Same { golden, capture } => Row {
                sign: ' ',
                text: shown(lines[capture - 1]),
                golden: Some(golden),
                capture: Some(capture),
            },
            Edit::Missing { golden } => {
                Row { sign: '-', text: golden_text(golden), golden: Some(golden), capture: None }
            }
            Edit::Passed { capture } => {
                Row { sign: ' ', text: shown(lines[capture - 1]), golden: None, capture: Some(capture) }
            }
            Edit::Unexpected { capture } => {
                Row { sign: '+', text: shown(lines[capture - 1]), golden: None, capture: Some(capture) }
            }
        })
        .collect()
}

/// The golden's line after which the first unexpected line stands.
fn nearest_golden_line(rows: &[Row]) -> usize {
    let at = rows.iter().position(|row| row.sign != ' ').unwrap_or(0);
    rows[..at].iter().rev().find_map(|row| row.golden).unwrap_or(1)
}

fn hunks(rows: &[Row], text: &mut String) {
    let mut ranges: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        if row.sign == ' ' {
            continue;
        }
        let range = at.saturating_sub(CONTEXT)..(at + CONTEXT + 1).min(rows.len());
        match ranges.last_mut() {
            Some(last) if last.end >= range.start => last.end = range.end,
            _ => ranges.push(range),
        }
    }
    for range in ranges.iter().take(HUNKS_MAX) {
        let hunk = &rows[range.clone()];
        let side = |number: fn(&Row) -> Option<usize>| {
            let numbers: Vec<usize> = hunk.iter().filter_map(number).collect();
            // A side without lines is placed after the line before the hunk, as diff(1) does.
            let before = || rows[..range.start].iter().rev().find_map(number).unwrap_or(0);
            format!("{},{}", numbers.first().copied().unwrap_or_else(before), numbers.len())
        };
        let _ = writeln!(text, "@@ -{} +{} @@", side(|row| row.golden), side(|row| row.capture));
        for row in hunk {
            let _ = writeln!(text, "{}{}", row.sign, row.text);
        }
    }
    if ranges.len() > HUNKS_MAX {
        let _ = writeln!(text, "... and {} more hunks", ranges.len() - HUNKS_MAX);
    }
}

/// A line of a capture for showing: bytes that are no printable text are escaped.
fn shown(line: &[u8]) -> String {
    let mut text = String::new();
    for (at, chunk) in line.utf8_chunks().enumerate() {
        if at > WIDTH_MAX {
            break;
        }
        for c in chunk.valid().chars() {
            if c == '\t' || !c.is_control() {
                text.push(c);
            } else {
                let _ = write!(text, "\\x{:02x}", c as u32);
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    if text.chars().count() > WIDTH_MAX {
        let cut: String = text.chars().take(WIDTH_MAX).collect();
        return format!("{cut}... ({} bytes)", line.len());
    }
    text
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;
    use expect_test::expect;

    use super::*;
    use crate::golden::{Bindings, Facts, Golden, compare};
    use crate::normalise::Format;

    fn diff(golden: &str, capture: &[u8], format: Format) -> String {
        let golden = Golden::parse(Utf8Path::new("cases/a/out.golden"), golden.as_bytes()).expect("valid");
        let mut bindings = Bindings::new();
        let comparison = compare(&golden, capture, format, &Facts::default(), &mut bindings);
        assert!(!comparison.passes());
        render(&CaptureFailure {
            golden,
            capture: capture.to_vec(),
            comparison,
            bindings,
            format,
            file: "last/out".into(),
        })
    }

    #[test]
    fn a_changed_line_with_its_context() {
        let text = diff("#@ golden v1\na\nb\nc\nd\ne\nf\ng\nh\n", b"a\nb\nc\nd\nE\nf\ng\nh\n", Format::Plain);
        expect![[r"
            cases/a/out.golden:6: the capture differs
            --- cases/a/out.golden
            +++ last/out
            @@ -3,7 +2,7 @@
             b
             c
             d
            -e
            +E
             f
             g
             h
        "]]
        .assert_eq(&text);
    }

    #[test]
    fn bytes_that_are_no_text_are_escaped() {
        let text = diff("#@ golden v1\na\n", b"a\nb\0\xff\x1b[31m\n", Format::Plain);
        expect![[r"
            cases/a/out.golden:2: the capture differs
            --- cases/a/out.golden
            +++ last/out
            @@ -2,1 +1,2 @@
             a
            +b\x00\xff\x1b[31m
        "]]
        .assert_eq(&text);
    }

    #[test]
    fn a_conflict_names_both_places() {
        let text = diff(
            "#@ golden v1\nhist_data: {{ptr:A}}\nhist_data: {{ptr:A}}\n",
            b"hist_data: 0000000000000001\nhist_data: 0000000000000002\n",
            Format::HistDebug,
        );
        expect![[r#"
            cases/a/out.golden:3: A is one object in the golden, and two in the capture:
                0000000000000001 at cases/a/out.golden:2 (line 1 of the capture)
                0000000000000002 at cases/a/out.golden:3 (line 2 of the capture)
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn a_broken_rule_shows_its_line() {
        let golden = "#@ golden v1\nTotals:\n    Hits: {{n}}\n    Entries: {{n}}\n    Dropped: {{n}}\n";
        let text = diff(golden, b"Totals:\n    Hits: 1\n    Entries: 0\n    Dropped: 0\n", Format::Hist);
        expect![[r"
            last/out:2: Hits is 1, and the rows' hitcounts add up to 0
                    Hits: 1
        "]]
        .assert_eq(&text);
    }
}
