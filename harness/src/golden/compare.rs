//! A golden against a capture.

use super::align::{Line, Step, align};
use super::bindings::{Bindings, Conflict, Place};
use super::parse::Golden;
use crate::normalise::{Format, Violation};

/// One line of a comparison. Lines count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    /// The golden's line and the capture's line belong together.
    Same {
        /// The golden's line.
        golden: usize,
        /// The capture's line.
        capture: usize,
    },
    /// The golden's line is missing from the capture.
    Missing {
        /// The golden's line.
        golden: usize,
    },
    /// The capture's line is in no golden.
    Unexpected {
        /// The capture's line.
        capture: usize,
    },
}

/// What a comparison found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// Every line of both, in order.
    pub edits: Vec<Edit>,
    /// Names and values that do not go together.
    pub conflicts: Vec<Conflict>,
    /// Rules of the format that the capture breaks.
    pub violations: Vec<Violation>,
    /// The capture's last line has no line end.
    pub unfinished: bool,
}

impl Comparison {
    /// Whether the capture is what the golden says.
    pub fn passes(&self) -> bool {
        self.conflicts.is_empty()
            && self.violations.is_empty()
            && !self.unfinished
            && self.edits.iter().all(|edit| matches!(edit, Edit::Same { .. }))
    }
}

/// The lines of a capture without their ends, and whether the last one has none.
pub fn split_lines(capture: &[u8]) -> (Vec<&[u8]>, bool) {
    let mut lines: Vec<&[u8]> = capture.split(|b| *b == b'\n').collect();
    let last = lines.pop().unwrap_or_default();
    let unfinished = !last.is_empty();
    if unfinished {
        lines.push(last);
    }
    (lines, unfinished)
}

/// Compare a capture with its golden. Names keep their meaning in `bindings` from one capture of a
/// trial to the next.
pub fn compare(golden: &Golden, capture: &[u8], format: Format, bindings: &mut Bindings) -> Comparison {
    let (texts, unfinished) = split_lines(capture);
    let violations = format.violations(&texts);
    let lines: Vec<Line<'_>> =
        texts.into_iter().map(|text| Line { text, tokens: format.tokens(text) }).collect();
    let mut conflicts = Vec::new();
    let mut edits = Vec::new();
    for step in align(&golden.items, &lines) {
        edits.push(match step {
            Step::ItemOnly(item) => Edit::Missing { golden: golden.items[item].line },
            Step::LineOnly(line) => Edit::Unexpected { capture: line + 1 },
            Step::Both(item, line) => {
                let place = Place {
                    golden: golden.file.clone(),
                    golden_line: golden.items[item].line,
                    capture_line: line + 1,
                };
                let pattern = &golden.items[item].pattern;
                let held = pattern.shape(lines[line].text, &lines[line].tokens).unwrap_or_default();
                for (hole, token) in pattern.holes().zip(held) {
                    if let Some(name) = &hole.name {
                        let value = String::from_utf8_lossy(token.value(lines[line].text));
                        conflicts.extend(bindings.bind(hole.kind, name, &value, &place).err().map(|c| *c));
                    }
                }
                Edit::Same { golden: place.golden_line, capture: place.capture_line }
            }
        });
    }
    Comparison { edits, conflicts, violations, unfinished }
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::*;

    const A: &str = "hist_data: 00000000aaaaaaaa\n";
    const B: &str = "hist_data: 00000000bbbbbbbb\n";

    fn golden(name: &str, body: &str) -> Golden {
        Golden::parse(Utf8Path::new(name), format!("#@ golden v1\n{body}").as_bytes()).expect("valid")
    }

    fn run(pairs: &[(&Golden, &str)]) -> Vec<Comparison> {
        let mut bindings = Bindings::new();
        pairs
            .iter()
            .map(|(golden, capture)| compare(golden, capture.as_bytes(), Format::HistDebug, &mut bindings))
            .collect()
    }

    #[test]
    fn a_name_means_one_value_in_all_captures() {
        let first = golden("first.golden", "hist_data: {{ptr:WAKING}}\n");
        let second = golden("second.golden", "hist_data: {{ptr:SWITCH}}\nvar.hist_data: {{ptr:WAKING}}\n");
        let good = format!("{B}var.{A}");
        assert!(run(&[(&first, A), (&second, &good)]).iter().all(Comparison::passes));
        let bad = format!("{B}var.{B}");
        let found = run(&[(&first, A), (&second, &bad)]);
        assert!(found[0].passes());
        assert_eq!(found[1].conflicts.len(), 1);
        let text = found[1].conflicts[0].to_string();
        assert!(text.contains("first.golden:2") && text.contains("second.golden:3"), "{text}");
    }

    #[test]
    fn two_names_never_mean_one_value() {
        let both = golden("g", "hist_data: {{ptr:ONE}}\nhist_data: {{ptr:TWO}}\n");
        assert!(run(&[(&both, &format!("{A}{B}"))])[0].passes());
        let found = run(&[(&both, &format!("{A}{A}"))]);
        assert_eq!(found[0].conflicts.len(), 1);
        assert!(found[0].conflicts[0].to_string().contains("two in the golden"));
    }

    #[test]
    fn a_changed_letter_is_one_line_of_each() {
        let text = golden("g", "a\nb\nc\n");
        let found = run(&[(&text, "a\nX\nc\n")]);
        assert!(!found[0].passes());
        assert_eq!(
            found[0].edits,
            [
                Edit::Same { golden: 2, capture: 1 },
                Edit::Missing { golden: 3 },
                Edit::Unexpected { capture: 2 },
                Edit::Same { golden: 4, capture: 3 },
            ]
        );
    }

    #[test]
    fn a_missing_line_end_is_a_difference() {
        assert!(!run(&[(&golden("g", "a\n"), "a")])[0].passes());
        assert!(run(&[(&golden("g", "a\n"), "a\n")])[0].passes());
        assert!(run(&[(&golden("g", ""), "")])[0].passes());
        assert!(!run(&[(&golden("g", ""), "\n")])[0].passes());
    }

    #[test]
    fn bytes_that_are_no_text_are_compared_too() {
        let mut bindings = Bindings::new();
        let found = compare(&golden("g", "a\n"), b"a\0\xff\n", Format::Plain, &mut bindings);
        assert!(!found.passes());
    }
}
