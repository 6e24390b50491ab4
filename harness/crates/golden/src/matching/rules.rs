//! Rules that hold whatever lines belong together: those of the format, lines that the golden
//! forbids, and the order of lines in a block of any order.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use formats::{Format, Violation};

use super::alignment::Edit;
use super::select::Selected;
use crate::language::tree::{Expression, Golden};

/// The format's rules that the lines break, but for violations at lines for which `is_expected` holds
/// (they count from 1), and all of the golden's own rules that they break. In the order of the lines.
pub(super) fn broken(
    golden: &Golden,
    selected: &Selected<'_>,
    format: Format,
    texts: &[&[u8]],
    edits: &[Edit],
    is_expected: impl Fn(usize) -> bool,
) -> Vec<Violation> {
    let mut violations = format.violations(texts);
    violations.retain(|violation| !is_expected(violation.line));
    for (at, expression) in &selected.absent {
        let found = texts.iter().enumerate().filter(|(_, text)| expression.regex.is_match(text));
        violations.extend(found.map(|(line, _)| Violation {
            line: line + 1,
            message: format!("{}:{at} says that no line matches /{}/", golden.file, expression.source),
        }));
    }
    violations.sort_by_key(|violation| violation.line);
    for (range, by) in &selected.streams {
        violations.extend(out_of_order(golden, range, by, edits, texts));
    }
    violations
}

/// Lines that `#@ unordered by /re/` takes in another order than the golden's, among those in which
/// the expression finds the same text.
fn out_of_order(
    golden: &Golden,
    range: &RangeInclusive<usize>,
    by: &Expression,
    edits: &[Edit],
    texts: &[&[u8]],
) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut last: BTreeMap<&[u8], usize> = BTreeMap::new();
    for edit in edits {
        let Edit::Same { golden: row, capture } = *edit else { continue };
        if !range.contains(&row) {
            continue;
        }
        let Some(captures) = by.regex.captures(texts[capture - 1]) else { continue };
        let key = captures.get(1).or(captures.get(0)).map_or(&b""[..], |found| found.as_bytes());
        let before = last.insert(key, row).filter(|before| *before > row);
        found.extend(before.map(|before| Violation {
            line: capture,
            message: format!(
                "of the lines with `{}`, that of {}:{before} comes before that of line {row}",
                String::from_utf8_lossy(key),
                golden.file
            ),
        }));
    }
    found
}
