//! What matches and what does not, by golden and capture.

use camino::Utf8Path;
use formats::Format;

use crate::{Bindings, Comparison, Edit, Facts, Golden, compare, split_lines};

const A: &str = "hist_data: 00000000aaaaaaaa\n";
const B: &str = "hist_data: 00000000bbbbbbbb\n";

fn golden(name: &str, body: &str) -> Golden {
    let text = format!("#@ golden v1\n{body}");
    Golden::parse(Utf8Path::new(name), text.as_bytes()).unwrap_or_else(|errors| panic!("{errors:?}"))
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
fn name_has_one_value_in_all_captures() {
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
fn two_names_with_one_value_conflict() {
    let both = golden("g", "hist_data: {{ptr:ONE}}\nhist_data: {{ptr:TWO}}\n");
    assert!(run(&[(&both, &format!("{A}{B}"))])[0].passes());
    let found = run(&[(&both, &format!("{A}{A}"))]);
    assert_eq!(found[0].conflicts.len(), 1);
    assert!(found[0].conflicts[0].to_string().contains("two in the golden"));
}

#[test]
fn extra_block_costs_its_own_lines() {
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
fn missing_final_newline_is_a_difference() {
    assert!(!run(&[(&golden("g", "a\n"), "a")])[0].passes());
    assert!(run(&[(&golden("g", "a\n"), "a\n")])[0].passes());
    assert!(!run(&[(&golden("g", ""), "\n")])[0].passes());
}

#[test]
fn bytes_that_are_not_text_are_compared() {
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
fn any_ignores_lines() {
    passes("a\n#@ any\nz\n", "a\nz\n", "==");
    passes("a\n#@ any\nz\n", "a\nz\nz\nb\nz\n", "=...=");
    passes("#@ any 1..2\nz\n", "x\nz\n", ".=");
    passes("#@ any 1..2\nz\n", "x\ny\nz\n", "..=");
    fails("#@ any 1..2\nz\n", "z\n", "-=");
    fails("#@ any 1..2\nz\n", "w\nx\ny\nz\n", "..+=");
    passes("a\n#@ any\n", "a\nb\nc\n", "=..");
}

#[test]
fn adjacent_anys_of_conditions_are_one() {
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
fn repeats_with_bounds_match_no_more_and_no_fewer() {
    let exact = "#@ repeat 2\nx {{n}}\ny\n#@ end\nz\n";
    passes(exact, "x 1\ny\nx 2\ny\nz\n", "=====");
    fails(exact, "x 1\ny\nz\n", "==--=");
    fails(exact, "x 1\ny\nx 2\ny\nx 3\ny\nz\n", "====++=");
    let range = "a\n#@ repeat 1..3\nx\n#@ end\nz\n";
    for (count, fits) in [(0, false), (1, true), (2, true), (3, true), (4, false)] {
        let capture = format!("a\n{}z\n", "x\n".repeat(count));
        assert_eq!(plain(range, &capture).1, fits, "{count}");
    }
    passes("#@ repeat 0..2\nx\n#@ end\n", "", "");
    fails("#@ repeat 0..2\nx\ny\n#@ end\nz\n", "x\nz\n", "=-=");
}

#[test]
fn golden_that_leaves_too_many_ways_is_reported() {
    let body = "#@ any 0..1000\n{{..}}\n".repeat(20);
    let capture = format!("{}b\n", "a\n".repeat(30_000));
    let found =
        compare(&golden("g", &body), capture.as_bytes(), Format::Plain, &facts(), &mut Bindings::new());
    assert!(!found.passes() && !found.same_shape);
    assert!(found.violations[0].message.contains("narrow its `any` and `repeat`"));
}

#[test]
fn unordered_lines_match_in_any_order() {
    let body = "a\n#@ unordered\nx\n{{word}}\ny\n#@ end\nz\n";
    passes(body, "a\ny\nx\nq\nz\n", "=====");
    passes(body, "a\nx\nx\ny\nz\n", "=====");
    fails(body, "a\ny\nx\nz\n", "===-=");
    fails(body, "a\ny\nx\nq q\nz\n", "===-+=");
    // A greedy choice would give `x` to the word and find none for the other line.
    passes("#@ unordered\n{{word}}\nx\n#@ end\n", "x\ny\n", "==");
}

#[test]
fn unordered_by_keeps_the_order_of_each_key() {
    let body = "#@ unordered by /cpu=([0-9])/\ncpu=0 a\ncpu=0 b\ncpu=1 a\ncpu=1 b\n#@ end\n";
    passes(body, "cpu=0 a\ncpu=1 a\ncpu=1 b\ncpu=0 b\n", "====");
    let capture = b"cpu=1 b\ncpu=0 a\ncpu=1 a\ncpu=0 b\n";
    let found = compare(&golden("g", body), capture, Format::Plain, &facts(), &mut Bindings::new());
    assert!(found.same_shape && !found.passes());
    let messages: Vec<&str> = found.violations.iter().map(|v| v.message.as_str()).collect();
    assert_eq!(messages, ["of the lines with `1`, that of g:6 comes before that of line 5"]);
}

#[test]
fn optional_line_may_be_missing_but_not_replaced() {
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
fn many_anys_are_matched_in_bounded_time() {
    // Each `any` could end anywhere: a matcher that goes back would try all ways.
    let body: String = (0..40).map(|_| "#@ any\na\n").collect();
    let capture = format!("{}b\n", "a\n".repeat(400));
    assert!(!plain(&body, &capture).1);
}
