//! A golden against a capture.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::thread;

use super::align::{Alignment, align};
use super::bindings::{BindingSite, Bindings, Conflict};
use super::lines::Lines;
use super::program::Program;
use super::select::select;
use crate::language::condition::Facts;
use crate::language::tree::{Expression, Golden};
use formats::{Format, Violation};

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
    /// The golden says that any line may stand here.
    Ignored {
        /// The capture's line.
        capture: usize,
    },
}

/// What a comparison found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// Every line of both, in order.
    pub edits: Vec<Edit>,
    /// No line is left over.
    pub same_shape: bool,
    /// Names and values that do not go together.
    pub conflicts: Vec<Conflict>,
    /// Rules of the format that the capture breaks, and lines that the golden forbids.
    pub violations: Vec<Violation>,
    /// The capture's last line has no line end.
    pub missing_final_newline: bool,
}

impl Comparison {
    /// Whether the capture is what the golden says.
    pub fn passes(&self) -> bool {
        self.same_shape
            && self.conflicts.is_empty()
            && self.violations.is_empty()
            && !self.missing_final_newline
    }
}

/// A shorter text is split by one thread.
const BYTES_WORTH_A_THREAD: usize = 1 << 22;

/// The lines of a capture without their ends, and whether the last one has none.
pub fn split_lines(capture: &[u8]) -> (Vec<&[u8]>, bool) {
    let middle = memchr::memchr(b'\n', &capture[capture.len() / 2..]).map(|at| capture.len() / 2 + at + 1);
    let lines = match middle {
        Some(middle) if capture.len() >= BYTES_WORTH_A_THREAD => thread::scope(|scope| {
            let (first, second) = capture.split_at(middle);
            let second = scope.spawn(|| lines_of(second));
            let mut lines = lines_of(first);
            lines.append(&mut second.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            lines
        }),
        _ => lines_of(capture),
    };
    (lines, !capture.is_empty() && !capture.ends_with(b"\n"))
}

fn lines_of(text: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', text) {
        lines.push(&text[start..end]);
        start = end + 1;
    }
    lines.extend(Some(&text[start..]).filter(|last| !last.is_empty()));
    lines
}

/// Fewer lines are no work worth a thread.
const LINES_WORTH_A_THREAD: usize = 50_000;

/// The rules of the format that the lines break, and the lines that the golden forbids, in order.
fn broken_rules(
    golden: &Golden,
    absent: &[(usize, &Expression)],
    format: Format,
    texts: &[&[u8]],
) -> Vec<Violation> {
    let mut violations = format.violations(texts);
    for (at, expression) in absent {
        let found = texts.iter().enumerate().filter(|(_, text)| expression.regex.is_match(text));
        violations.extend(found.map(|(line, _)| Violation {
            line: line + 1,
            message: format!("{}:{at} says that no line matches /{}/", golden.file, expression.source),
        }));
    }
    violations.sort_by_key(|violation| violation.line);
    violations
}

/// Lines that `#@ unordered by /re/` takes in another order than the golden's, among those in which
/// the expression finds the same text.
fn out_of_order(
    golden: &Golden,
    streams: &[(RangeInclusive<usize>, &Expression)],
    edits: &[Edit],
    texts: &[&[u8]],
) -> Vec<Violation> {
    let mut found = Vec::new();
    for (range, by) in streams {
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
    }
    found
}

/// Compare a capture with its golden, for a guest with these facts. Names keep their meaning in
/// `bindings` from one capture of a trial to the next.
pub fn compare(
    golden: &Golden,
    capture: &[u8],
    format: Format,
    facts: &Facts,
    bindings: &mut Bindings,
) -> Comparison {
    let (texts, missing_final_newline) = split_lines(capture);
    let selected = select(golden, facts);
    let program = Program::new(&selected.slots);
    let lines = Lines::new(&texts, format);
    let broken = || broken_rules(golden, &selected.absent, format, &texts);
    let (violations, Alignment { edits, named, same_shape }) = if texts.len() < LINES_WORTH_A_THREAD {
        (broken(), align(&program, &lines))
    } else {
        thread::scope(|scope| {
            let violations = scope.spawn(broken);
            let alignment = align(&program, &lines);
            let violations = violations.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (violations, alignment)
        })
    };
    let mut violations = violations;
    violations.extend(out_of_order(golden, &selected.streams, &edits, &texts));
    let mut conflicts = Vec::new();
    for (row, line) in named {
        let place =
            BindingSite { golden: golden.file.clone(), golden_line: row.line, capture_line: line + 1 };
        let text = lines.text(line);
        let held = row.pattern.hole_spans(text, &lines.tokens(line)).unwrap_or_default();
        for (hole, span) in row.pattern.holes().zip(held) {
            let value = String::from_utf8_lossy(text[span].trim_ascii());
            conflicts.extend(bindings.bind_or_check(hole, &value, &place).err().map(|c| *c));
        }
    }
    Comparison { edits, same_shape, conflicts, violations, missing_final_newline }
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::*;

    const A: &str = "hist_data: 00000000aaaaaaaa\n";
    const B: &str = "hist_data: 00000000bbbbbbbb\n";

    fn golden(name: &str, body: &str) -> Golden {
        let text = format!("#@ golden v1\n{body}");
        Golden::parse(Utf8Path::new(name), text.as_bytes()).unwrap_or_else(|faults| panic!("{faults:?}"))
    }

    fn facts() -> Facts {
        Facts { arch: "x86_64".to_owned(), kernel: vec![7, 2, 12], ..Facts::default() }
    }

    fn run(pairs: &[(&Golden, &str)]) -> Vec<Comparison> {
        let mut bindings = Bindings::new();
        pairs
            .iter()
            .map(|(golden, capture)| {
                compare(golden, capture.as_bytes(), Format::HistDebug, &facts(), &mut bindings)
            })
            .collect()
    }

    /// The edits as signs, and whether it passes.
    fn plain(body: &str, capture: &str) -> (String, bool) {
        let found =
            compare(&golden("g", body), capture.as_bytes(), Format::Plain, &facts(), &mut Bindings::new());
        let signs = found.edits.iter().map(|edit| match edit {
            Edit::Same { .. } => '=',
            Edit::Missing { .. } => '-',
            Edit::Unexpected { .. } => '+',
            Edit::Ignored { .. } => '.',
        });
        let signs: String = signs.collect();
        assert_eq!(found.same_shape, !signs.contains(['-', '+']), "{signs}");
        (signs, found.passes())
    }

    #[track_caller]
    fn passes(body: &str, capture: &str, signs: &str) {
        assert_eq!(plain(body, capture), (signs.to_owned(), true));
    }

    #[track_caller]
    fn fails(body: &str, capture: &str, signs: &str) {
        assert_eq!(plain(body, capture), (signs.to_owned(), false));
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
    fn an_extra_block_costs_its_own_lines() {
        fails("a\nb\nc\n", "x\ny\na\nb\nc\n", "++===");
        fails("a\nb\nc\n", "a\nx\nb\nc\n", "=+==");
        fails("a\nb\nc\n", "a\nc\n", "=-=");
        fails("a\nb\nc\n", "a\nB\nc\n", "=-+=");
        fails("", "a\n", "+");
        fails("a\n", "", "-");
        passes("", "", "");
    }

    #[test]
    fn lines_end_with_newlines_only() {
        let lines = |text: &'static str| {
            let (lines, missing_final_newline) = split_lines(text.as_bytes());
            (
                lines.into_iter().map(|l| std::str::from_utf8(l).expect("UTF-8")).collect::<Vec<_>>(),
                missing_final_newline,
            )
        };
        assert_eq!(lines(""), (vec![], false));
        assert_eq!(lines("\n"), (vec![""], false));
        assert_eq!(lines("a\r\n\nb"), (vec!["a\r", "", "b"], true));
    }

    #[test]
    fn a_long_text_has_the_lines_of_its_halves() {
        for end in ["", "\n", "\n\n", "\nx"] {
            let text = format!("{}{end}", "0123456789\n\n".repeat(BYTES_WORTH_A_THREAD / 12 + 1));
            let (lines, missing_final_newline) = split_lines(text.as_bytes());
            assert_eq!(missing_final_newline, end == "\nx");
            assert!(lines == lines_of(text.as_bytes()), "{end:?}");
        }
        let one = "x".repeat(BYTES_WORTH_A_THREAD);
        assert_eq!(split_lines(one.as_bytes()), (vec![one.as_bytes()], true));
    }

    #[test]
    fn a_missing_line_end_is_a_difference() {
        assert!(!run(&[(&golden("g", "a\n"), "a")])[0].passes());
        assert!(run(&[(&golden("g", "a\n"), "a\n")])[0].passes());
        assert!(!run(&[(&golden("g", ""), "\n")])[0].passes());
    }

    #[test]
    fn bytes_that_are_no_text_are_compared_too() {
        let golden = golden("g", "a\n");
        assert!(!compare(&golden, b"a\0\xff\n", Format::Plain, &facts(), &mut Bindings::new()).passes());
    }

    #[test]
    fn conditions_require_and_forbid() {
        let body = "a\n#@ if arch == x86_64\nx\n#@ else\np\n#@ end\n#@ if kernel < 7\nold\n#@ end\nb\n";
        passes(body, "a\nx\nb\n", "===");
        fails(body, "a\np\nb\n", "=-+=");
        fails(body, "a\nb\n", "=-=");
        fails(body, "a\nx\nold\nb\n", "==+=");
    }

    #[test]
    fn any_passes_over_lines() {
        passes("a\n#@ any\nz\n", "a\nz\n", "==");
        passes("a\n#@ any\nz\n", "a\nz\nz\nb\nz\n", "=...=");
        passes("#@ any 1..2\nz\n", "x\nz\n", ".=");
        passes("#@ any 1..2\nz\n", "x\ny\nz\n", "..=");
        fails("#@ any 1..2\nz\n", "z\n", "-=");
        fails("#@ any 1..2\nz\n", "w\nx\ny\nz\n", "..+=");
        passes("a\n#@ any\n", "a\nb\nc\n", "=..");
    }

    #[test]
    fn any_of_two_conditions_is_one() {
        let body = "#@ if arch == x86_64\n#@ any 1..1\n#@ end\n#@ any 1..1\nz\n";
        passes(body, "x\ny\nz\n", "..=");
        fails(body, "x\nz\n", ".-=");
    }

    #[test]
    fn blocks_repeat() {
        let body = "a\n#@ repeat 1..\nx {{n}}\ny\n#@ end\nz\n";
        passes(body, "a\nx 1\ny\nz\n", "====");
        passes(body, "a\nx 1\ny\nx 2\ny\nx 3\ny\nz\n", "========");
        fails(body, "a\nz\n", "=--=");
        fails(body, "a\nx 1\ny\nx 2\nz\n", "====-=");
        fails(body, "a\nx 1\ny\nx 2\n?\ny\nz\n", "====+==");
        passes("#@ repeat 0..\nx\n#@ end\n", "", "");
        fails("#@ repeat 3..\nx\n#@ end\n", "x\nx\n", "==-");
    }

    #[test]
    fn lines_come_in_any_order() {
        let body = "a\n#@ unordered\nx\n{{word}}\ny\n#@ end\nz\n";
        passes(body, "a\ny\nx\nq\nz\n", "=====");
        passes(body, "a\nx\nx\ny\nz\n", "=====");
        fails(body, "a\ny\nx\nz\n", "===-=");
        fails(body, "a\ny\nx\nq q\nz\n", "===-+=");
        // A greedy choice would give `x` to the word and find none for the other line.
        passes("#@ unordered\n{{word}}\nx\n#@ end\n", "x\ny\n", "==");
    }

    #[test]
    fn lines_of_one_stream_keep_their_order() {
        let body = "#@ unordered by /cpu=([0-9])/\ncpu=0 a\ncpu=0 b\ncpu=1 a\ncpu=1 b\n#@ end\n";
        passes(body, "cpu=0 a\ncpu=1 a\ncpu=1 b\ncpu=0 b\n", "====");
        let capture = b"cpu=1 b\ncpu=0 a\ncpu=1 a\ncpu=0 b\n";
        let found = compare(&golden("g", body), capture, Format::Plain, &facts(), &mut Bindings::new());
        assert!(found.same_shape && !found.passes());
        let messages: Vec<&str> = found.violations.iter().map(|v| v.message.as_str()).collect();
        assert_eq!(messages, ["of the lines with `1`, that of g:6 comes before that of line 5"]);
    }

    #[test]
    fn an_optional_line_may_be_missing_and_nothing_else_may_stand_there() {
        let body = "a\n#@ optional \"a reason\"\nb\nc\n";
        passes(body, "a\nb\nc\n", "===");
        passes(body, "a\nc\n", "==");
        fails(body, "a\nb\nb\nc\n", "==+=");
        fails(body, "a\nB\nc\n", "=+=");
    }

    #[test]
    fn absent_lines_are_violations() {
        let body = "#@ absent /BUG|WARN/\n#@ any\n";
        passes(body, "fine\n", ".");
        let found =
            compare(&golden("g", body), b"fine\nWARN: x\n", Format::Plain, &facts(), &mut Bindings::new());
        assert_eq!(found.violations[0].line, 2);
        assert!(found.violations[0].message.contains("g:2 says that no line matches /BUG|WARN/"));
    }

    #[test]
    fn no_choice_is_exponential() {
        // Each `any` could end anywhere: a matcher that goes back would try all ways.
        let body: String = (0..40).map(|_| "#@ any\na\n").collect();
        let capture = format!("{}b\n", "a\n".repeat(400));
        assert!(!plain(&body, &capture).1);
    }
}
