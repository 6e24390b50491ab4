//! What is seen of a known bug, and what it does not cover.

use camino::Utf8Path;
use formats::Format;

use crate::{Bindings, Comparison, Edit, Facts, Golden, Seen, compare};

const EXCHANGED: &str = "a\n#@ xfail \"wrong text\"\nright {{n}}\n#@ actual\nwrong {{n}}\n#@ end\nz\n";
/// The bug adds a line.
const LINE_TOO_MANY: &str = "a\n#@ xfail \"printed twice\"\n#@ actual\nextra\n#@ end\nz\n";
/// The bug loses a line.
const LINE_TOO_FEW: &str = "a\n#@ xfail \"not printed\"\nb\n#@ actual\n#@ end\nz\n";

fn facts(kernel: &[u32]) -> Facts {
    Facts { arch: "x86_64".to_owned(), kernel: kernel.to_vec(), ..Facts::default() }
}

fn run_as(body: &str, capture: &str, format: Format, kernel: &[u32]) -> Comparison {
    let text = format!("#@ golden v1\n{body}");
    let golden =
        Golden::parse(Utf8Path::new("g"), text.as_bytes()).unwrap_or_else(|errors| panic!("{errors:?}"));
    compare(&golden, capture.as_bytes(), format, &facts(kernel), &mut Bindings::new())
}

fn run(body: &str, capture: &str) -> Comparison {
    run_as(body, capture, Format::Plain, &[7, 2])
}

/// What was seen of each known bug, and whether the comparison passes.
fn seen(body: &str, capture: &str) -> (Vec<Seen>, bool) {
    let found = run(body, capture);
    (found.known_bugs.iter().map(|bug| bug.seen).collect(), found.passes())
}

fn signs(found: &Comparison) -> String {
    let sign = |edit: &Edit| match edit {
        Edit::Same { .. } => '=',
        Edit::Missing { .. } => '-',
        Edit::Unexpected { .. } => '+',
        Edit::Ignored { .. } => '.',
    };
    found.edits.iter().map(sign).collect()
}

#[test]
fn either_part_passes_and_another_text_does_not() {
    assert_eq!(seen(EXCHANGED, "a\nright 1\nz\n"), (vec![Seen::Right], true));
    assert_eq!(seen(EXCHANGED, "a\nwrong 1\nz\n"), (vec![Seen::Actual], true));
    assert_eq!(seen(EXCHANGED, "a\nother 1\nz\n"), (vec![Seen::Neither], false));
    assert!(!seen(EXCHANGED, "a\nright 1\nwrong 1\nz\n").1);
    assert_eq!(seen(EXCHANGED, "a\nz\n"), (vec![Seen::Neither], false));
}

#[test]
fn known_bug_says_where_and_why() {
    let found = run(EXCHANGED, "a\nwrong 1\nz\n");
    let bug = &found.known_bugs[0];
    assert_eq!((bug.line, bug.reason.as_str(), bug.capture.clone()), (3, "wrong text", 2..3));
}

#[test]
fn line_too_many_is_expected_once() {
    assert_eq!(seen(LINE_TOO_MANY, "a\nextra\nz\n"), (vec![Seen::Actual], true));
    assert_eq!(seen(LINE_TOO_MANY, "a\nz\n"), (vec![Seen::Right], true));
    let second = run(LINE_TOO_MANY, "a\nextra\nextra\nz\n");
    assert!(!second.passes());
    assert_eq!(signs(&second).matches('+').count(), 1);
    assert_eq!(seen(LINE_TOO_MANY, "a\nother\nz\n"), (vec![Seen::Neither], false));
}

#[test]
fn line_too_few_is_expected_once() {
    assert_eq!(seen(LINE_TOO_FEW, "a\nz\n"), (vec![Seen::Actual], true));
    assert_eq!(seen(LINE_TOO_FEW, "a\nb\nz\n"), (vec![Seen::Right], true));
    assert_eq!(seen(LINE_TOO_FEW, "a\nother\nz\n"), (vec![Seen::Neither], false));
    // A second line that is lost is not part of the bug.
    assert!(!seen(LINE_TOO_FEW, "a\n").1);
    assert!(!seen(LINE_TOO_FEW, "z\n").1);
}

#[test]
fn parts_of_different_lengths_are_whole_or_not_seen() {
    let body = "#@ xfail \"x\"\na\nb\n#@ actual\nc\nd\ne\n#@ end\n";
    assert_eq!(seen(body, "a\nb\n"), (vec![Seen::Right], true));
    assert_eq!(seen(body, "c\nd\ne\n"), (vec![Seen::Actual], true));
    for other in ["a\n", "c\nd\n", "a\nd\ne\n", "c\nb\n", "a\nb\ne\n", "a\nb\nc\nd\ne\n", ""] {
        assert!(!seen(body, other).1, "{other:?}");
    }
}

#[test]
fn difference_is_shown_against_the_nearer_part() {
    let body = "#@ xfail \"x\"\na\nb\nc\n#@ actual\nd\ne\nf\n#@ end\n";
    let missing = |capture| {
        let found = run(body, capture);
        assert_eq!(found.known_bugs[0].seen, Seen::Neither);
        let line = |edit: &Edit| if let Edit::Missing { golden } = edit { Some(*golden) } else { None };
        found.edits.iter().filter_map(line).collect::<Vec<_>>()
    };
    // The golden's lines 3 to 5 are right, 7 to 9 actual.
    assert_eq!(missing("a\nX\nc\n"), [4]);
    assert_eq!(missing("d\nX\nf\n"), [8]);
    assert_eq!(missing("X\nY\nZ\n"), [3, 4, 5]);
}

#[test]
fn changes_next_to_a_part_leave_it_whole() {
    for capture in ["b\nwrong 1\nz\n", "a\nmore\nwrong 1\nmore\nz\n", "wrong 1\nmore\n"] {
        assert_eq!(seen(EXCHANGED, capture), (vec![Seen::Actual], false), "{capture}");
    }
    let two = "#@ xfail \"x\"\na\n#@ actual\nb\nc\n#@ end\n";
    assert_eq!(seen(two, "b\nmore\nc\n"), (vec![Seen::Neither], false));
}

#[test]
fn every_known_bug_is_reported() {
    let body = format!("{EXCHANGED}{LINE_TOO_MANY}{LINE_TOO_FEW}");
    let all = |capture| seen(&body, capture);
    assert_eq!(all("a\nwrong 1\nz\na\nz\na\nz\n"), (vec![Seen::Actual, Seen::Right, Seen::Actual], true));
    assert_eq!(
        all("a\nright 1\nz\na\nextra\nz\na\nother\nz\n"),
        (vec![Seen::Right, Seen::Actual, Seen::Neither], false)
    );
}

#[test]
fn only_the_right_part_counts_where_the_condition_does_not_hold() {
    let body = "#@ xfail \"x\" if kernel < 7.3\na\n#@ actual\nb\n#@ end\n";
    let on = |capture, kernel: &[u32]| {
        let found = run_as(body, capture, Format::Plain, kernel);
        (found.known_bugs.len(), found.passes())
    };
    assert_eq!(on("b\n", &[7, 2]), (1, true));
    assert_eq!(on("b\n", &[7, 3]), (0, false));
    assert_eq!(on("a\n", &[7, 3]), (0, true));
}

#[test]
fn right_part_is_taken_where_both_fit() {
    // The bug's line is one that the golden ignores anyway.
    for body in [
        "#@ xfail \"x\"\n#@ actual\nb\n#@ end\n#@ any\n",
        "#@ any\n#@ xfail \"x\"\n#@ actual\nb\n#@ end\n",
        "#@ xfail \"x\"\nb\n#@ actual\n#@ end\n#@ any\n",
        "#@ any\n#@ xfail \"x\"\nb\n#@ actual\n#@ end\n",
        "#@ xfail \"x\"\n{{word}}\n#@ actual\nb\n#@ end\n",
    ] {
        assert_eq!(seen(body, "b\n"), (vec![Seen::Right], true), "{body}");
    }
    // The fewest known bugs that explain the capture are taken.
    let one_of_two = "#@ xfail \"x\"\n#@ actual\nb\n#@ end\n#@ xfail \"y\"\nb\n#@ actual\nc\nb\n#@ end\n";
    assert_eq!(seen(one_of_two, "b\n"), (vec![Seen::Right, Seen::Right], true));
    assert_eq!(seen(one_of_two, "c\nb\n"), (vec![Seen::Right, Seen::Actual], true));
    assert_eq!(seen(one_of_two, "b\nc\nb\n"), (vec![Seen::Actual, Seen::Actual], true));
}

#[test]
fn names_are_bound_by_the_part_that_is_taken() {
    let body = "#@ xfail \"x\"\nhist_data: {{ptr:A}}\n#@ actual\nvar.hist_data: {{ptr:B}}\n#@ end\nhist_data: {{ptr:A}}\n";
    let passes = |capture: &str| run_as(body, capture, Format::HistDebug, &[7, 2]).passes();
    assert!(passes("hist_data: 00000000aaaaaaaa\nhist_data: 00000000aaaaaaaa\n"));
    assert!(!passes("hist_data: 00000000aaaaaaaa\nhist_data: 00000000bbbbbbbb\n"));
    // B is another object than A, so that the right pointer would be the wrong one here.
    assert!(passes("var.hist_data: 00000000aaaaaaaa\nhist_data: 00000000bbbbbbbb\n"));
    assert!(!passes("var.hist_data: 00000000aaaaaaaa\nhist_data: 00000000aaaaaaaa\n"));
}

#[test]
fn broken_invariant_is_expected_inside_an_actual_part_only() {
    let good = "hist_data: 00000000aaaaaaaa\n";
    let bad = "hist_data: 12\n";
    let body = "#@ xfail \"x\"\nhist_data: {{ptr}}\n#@ actual\nhist_data: 12\n#@ end\nhist_data: {{..}}\n";
    let violations = |capture: &str| {
        let found = run_as(body, capture, Format::HistDebug, &[7, 2]);
        assert!(found.same_shape);
        found.violations.iter().map(|violation| violation.line).collect::<Vec<_>>()
    };
    assert_eq!(violations(&format!("{good}{good}")), [0_usize; 0]);
    assert_eq!(violations(&format!("{bad}{good}")), [0_usize; 0]);
    assert_eq!(violations(&format!("{bad}{bad}")), [2]);
    assert_eq!(violations(&format!("{good}{bad}")), [2]);
    let absent = "#@ absent /WARN/\n#@ xfail \"x\"\n#@ actual\nWARN\n#@ end\n";
    assert!(!run(absent, "WARN\n").passes());
}

#[test]
fn known_bug_in_a_long_capture_is_seen() {
    let many: String = (0..5000).map(|n| format!("line {n} {{{{n}}}}\n")).collect();
    let body = format!("{many}{EXCHANGED}{many}");
    let lines: String = (0..5000).map(|n| format!("line {n} {}\n", n * 3)).collect();
    assert_eq!(seen(&body, &format!("{lines}a\nwrong 1\nz\n{lines}")), (vec![Seen::Actual], true));
    // Far apart lines are changed: what is between them is too large for one exact alignment.
    let changed = |line: &str| {
        let text = format!("{lines}a\n{line}\nz\n{lines}");
        text.replacen("line 10 ", "changed ", 1).replacen("line 4900 14700\na\n", "x\n", 1) + "one more\n"
    };
    let found = run(&body, &changed("wrong 1"));
    assert!(!found.passes());
    assert_eq!(found.known_bugs[0].seen, Seen::Actual);
    let found = run(&body, &changed("other"));
    assert_eq!(found.known_bugs[0].seen, Seen::Neither);
}
