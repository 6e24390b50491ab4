//! Whole failures, as they are shown.

use camino::Utf8Path;
use expect_test::expect;
use proptest::prelude::*;

use super::*;
use formats::Format;
use golden::{Bindings, Facts, Golden, compare};

fn failure(golden: &str, capture: &[u8], format: Format) -> CaptureFailure {
    let golden = format!("#@ golden v1\n{golden}");
    let golden = Golden::parse(Utf8Path::new("cases/a/out.golden"), golden.as_bytes()).expect("valid");
    let mut bindings = Bindings::new();
    let comparison = compare(&golden, capture, format, &Facts::default(), &mut bindings);
    let capture = capture.to_vec();
    CaptureFailure { golden, capture, comparison, bindings, format, file: "last/out".into() }
}

fn diff(golden: &str, capture: &[u8], format: Format) -> String {
    let failure = failure(golden, capture, format);
    assert!(!failure.comparison.passes());
    rendered(&failure, Colour::No)
}

fn rendered(failure: &CaptureFailure, colour: Colour) -> String {
    let mut text = ReportText::default();
    render(failure, colour, &mut text);
    text.to_string()
}

fn plain(golden: &str, capture: &str) -> String {
    diff(golden, capture.as_bytes(), Format::Plain)
}

fn tail(text: &str, count: usize) -> String {
    text.split_inclusive('\n').skip(text.lines().count() - count).collect()
}

#[test]
fn changed_line_has_context() {
    let text = plain(
        "a\nb\nc\nd\nsize: 8; offset: 16\nf\ng\nh\ni\n",
        "a\nb\nc\nd\nsize: 4; offset: 16\nf\ng\nh\ni\n",
    );
    expect![[r#"
        cases/a/out.golden:6: the capture differs
        golden capture
             3       2 | b
             4       3 | c
             5       4 | d
             6         |-size: 8; offset: 16
                     5 |+size: 4; offset: 16
                       |       ^
             7       6 | f
             8       7 | g
             9       8 | h
          capture: last/out
    "#]]
    .assert_eq(&text);
}

#[test]
fn word_of_the_golden_alone_has_the_pointer() {
    expect![[r#"
        cases/a/out.golden:2: the capture differs
        golden capture
             2         |-	flag: VAR 
                       | 	         ^
                     1 |+	flag: VAR
          capture: last/out
    "#]]
    .assert_eq(&plain("\tflag: VAR \n", "\tflag: VAR\n"));
    // Of more than one span none is pointed at.
    expect![[r#"
        cases/a/out.golden:2: the capture differs
        golden capture
             2         |-a: 1 b: 2 c: 3
                     1 |+a: 9 b: 2 c: 8
          capture: last/out
    "#]]
    .assert_eq(&plain("a: 1 b: 2 c: 3\n", "a: 9 b: 2 c: 8\n"));
}

#[test]
fn inserted_block_has_plus_signs() {
    expect![[r#"
        cases/a/out.golden:2: the capture differs
        golden capture
             2       1 | a
                     2 |+x
                     3 |+
                     4 |+y
             3       5 | b
          capture: last/out
    "#]]
    .assert_eq(&plain("a\nb\n", "a\nx\n\ny\nb\n"));
}

#[test]
fn deleted_block_has_minus_signs() {
    expect![[r#"
        cases/a/out.golden:3: the capture differs
        golden capture
             2       1 | a
             3         |-x
             4         |-
             5         |-y
             6       2 | b
          capture: last/out
    "#]]
    .assert_eq(&plain("a\nx\n\ny\nb\n", "a\nb\n"));
}

#[test]
fn empty_side_has_no_numbers() {
    expect![[r#"
        cases/a/out.golden:2: the capture differs
        golden capture
             2         |-a
             3         |-b
          capture: last/out
    "#]]
    .assert_eq(&plain("a\nb\n", ""));
    expect![[r#"
        cases/a/out.golden:1: the capture differs
        golden capture
                     1 |+a
                     2 |+b
          capture: last/out
    "#]]
    .assert_eq(&plain("", "a\nb\n"));
}

#[test]
fn holes_show_values() {
    let golden = "hist_data: {{ptr:WAKING}}\nvar.hist_data: {{ptr:WAKING}}\nflags: {{word}} {{ptr:OTHER}}\n";
    let capture = "hist_data: 000000009536f554\nvar_hist_data: 000000009536f554\nflag: x\n";
    expect![[r#"
        cases/a/out.golden:3: the capture differs
        golden capture
             2       1 | hist_data: 000000009536f554
             3         |-var.hist_data: {{ptr:WAKING=000000009536f554}}
             4         |-flags: {{word}} {{ptr:OTHER}}
                     2 |+var_hist_data: 000000009536f554
                       | ^^^^^^^^^^^^^
                     3 |+flag: x
          capture: last/out
    "#]]
    .assert_eq(&diff(golden, capture.as_bytes(), Format::HistDebug));
}

#[test]
fn ignored_lines_have_a_sign() {
    let text = plain("a\n#@ any\nb\nc\n", "a\n1\n2\n3\n4\n5\n6\n7\nb\nC\n");
    expect![[r#"
        cases/a/out.golden:5: the capture differs
        golden capture
                     7 |.6
                     8 |.7
             4       9 | b
             5         |-c
                    10 |+C
          capture: last/out
    "#]]
    .assert_eq(&text);
    expect![[r#"
        cases/a/out.golden:2: the capture differs
        golden capture
                     1 |.1
             2         |-#@ any 2..
             3       2 | b
          capture: last/out
    "#]]
    .assert_eq(&plain("#@ any 2..\nb\n", "1\nb\n"));
}

#[test]
fn distant_differences_are_two_hunks() {
    let lines: String = (0..30).map(|n| format!("line {n}\n")).collect();
    let text = plain(&lines, &lines.replace("line 2\n", "Line 2\n").replace("line 20\n", ""));
    expect![[r#"
        cases/a/out.golden:4: the capture differs
        golden capture
             2       1 | line 0
             3       2 | line 1
             4         |-line 2
                     3 |+Line 2
                       | ^^^^
             5       4 | line 3
             6       5 | line 4
             7       6 | line 5
           ...     ... |
            19      18 | line 17
            20      19 | line 18
            21      20 | line 19
            22         |-line 20
            23      21 | line 21
            24      22 | line 22
            25      23 | line 23
          capture: last/out
    "#]]
    .assert_eq(&text);
}

#[test]
fn hunks_beyond_the_most_are_counted() {
    let golden: String = (0..50 * 8).map(|n| format!("{n}\n")).collect();
    let capture: String =
        (0..50 * 8).map(|n| if n % 8 == 0 { format!("{n}!\n") } else { format!("{n}\n") }).collect();
    let text = plain(&golden, &capture);
    expect![[r#"
                       |    ^
           315     314 | 313
           316     315 | 314
           317     316 | 315
        ... and 10 more hunks
          capture: last/out
    "#]]
    .assert_eq(&tail(&text, 6));
    assert_eq!(text.matches(" |-").count(), 40);
}

#[test]
fn long_block_is_cut() {
    let text = plain("a\n", &format!("a\n{}", "x\n".repeat(500)));
    let end = "           101 |+x\n           ... | (400 more such lines)\n  capture: last/out\n";
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn bytes_that_are_not_text_are_escaped() {
    expect![[r#"
        cases/a/out.golden:2: the capture differs
        golden capture
             2       1 | a
                     2 |+b\x00\x0d\xff\x1b[31m
          capture: last/out
    "#]]
    .assert_eq(&diff("a\n", b"a\nb\0\r\xff\x1b[31m\n", Format::Plain));
    // The text of an escape differs from what it stands for.
    expect![[r#"
        cases/a/out.golden:2: the capture differs
        golden capture
             2         |-a b\x5cx00 c
                     1 |+a b\x00 c
                       |   ^^^^^
          capture: last/out
    "#]]
    .assert_eq(&diff("a b\\x00 c\n", b"a b\0 c\n", Format::Plain));
}

#[test]
fn long_lines_that_begin_alike_are_shown_where_they_differ() {
    let long = "0123456789 ".repeat(100);
    expect![[r#"
        cases/a/out.golden:2: the capture differs
        golden capture
             2         |-... 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 right 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 01234567... (2206 bytes, shown from byte 1000)
                     1 |+... 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 wrong 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 01234567... (2206 bytes, shown from byte 1000)
                       |                                                                                                        ^^^^^
          capture: last/out
    "#]].assert_eq(&plain(&format!("{long}right {long}\n"), &format!("{long}wrong {long}\n")));
}

#[test]
fn missing_final_newline_is_reported() {
    expect![[r#"
        last/out:2: the last line has no line end
            b
          capture: last/out
    "#]]
    .assert_eq(&plain("a\nb\n", "a\nb"));
    expect![[r#"
        cases/a/out.golden:2: the capture differs
        golden capture
             2       1 | a
                     2 |+b
        last/out:2: the last line has no line end
            b
          capture: last/out
    "#]]
    .assert_eq(&plain("a\n", "a\nb"));
}

#[test]
fn conflict_names_both_places() {
    let golden = "hist_data: {{ptr:A}}\nhist_data: {{ptr:A}}\n";
    let capture = "hist_data: 0000000000000001\nhist_data: 0000000000000002\n";
    expect![[r#"
        cases/a/out.golden:3: A is one object in the golden, and two in the capture:
            0000000000000001 at cases/a/out.golden:2 (line 1 of the capture)
            0000000000000002 at cases/a/out.golden:3 (line 2 of the capture)
          capture: last/out
    "#]]
    .assert_eq(&diff(golden, capture.as_bytes(), Format::HistDebug));
}

#[test]
fn conflicts_come_after_the_shape() {
    let golden = "hist_data: {{ptr:A}}\nhist_data: {{ptr:B}}\nz\n";
    let capture = "hist_data: 0000000000000001\nhist_data: 0000000000000001\n";
    expect![[r#"
        cases/a/out.golden:4: the capture differs
        golden capture
             2       1 | hist_data: 0000000000000001
             3       2 | hist_data: 0000000000000001
             4         |-z
        cases/a/out.golden:3: 0000000000000001 is one object in the capture, and two in the golden:
            A at cases/a/out.golden:2 (line 1 of the capture)
            B at cases/a/out.golden:3 (line 2 of the capture)
          capture: last/out
    "#]]
    .assert_eq(&diff(golden, capture.as_bytes(), Format::HistDebug));
}

#[test]
fn bound_value_cannot_write_to_the_terminal() {
    let text = plain("{{word:W}}\n{{word:W}}\n", "a\x1b[31m\nb\n");
    assert!(text.contains("a\\x1b[31m at") && !text.contains('\x1b'), "{text}");
}

#[test]
fn broken_rule_shows_its_line() {
    let golden = "Totals:\n    Hits: {{n}}\n    Entries: {{n}}\n    Dropped: {{n}}\n";
    let capture = b"Totals:\n    Hits: 1\n    Entries: 0\n    Dropped: 0\n";
    expect![[r#"
        last/out:2: Hits is 1, but the hitcounts of the rows add up to 0
                Hits: 1
          capture: last/out
    "#]]
    .assert_eq(&diff(golden, capture, Format::Hist));
}

#[test]
fn broken_rules_beyond_the_most_are_counted() {
    let text = plain("#@ absent /x/\n#@ any\n", &"x\n".repeat(FINDINGS_MAX + 3));
    assert!(text.ends_with("    x\n... and 3 more broken rules\n  capture: last/out\n"), "{text}");
}

#[test]
fn colours_stress_differing_words() {
    let failure = failure("a: 1 {{n}}\nb\n", b"a: 2 7\nb\n", Format::Plain);
    let text = rendered(&failure, Colour::Yes).replace('\x1b', "^[");
    expect![[r#"
        ^[[1mcases/a/out.golden:2: the capture differs^[[0m
        ^[[2mgolden capture^[[0m
        ^[[2m     2         |^[[0m^[[31m-^[[0m^[[31ma: ^[[0m^[[1m^[[7m^[[31m1^[[0m^[[31m {{n}}^[[0m
        ^[[2m             1 |^[[0m^[[32m+^[[0m^[[32ma: ^[[0m^[[1m^[[7m^[[32m2^[[0m^[[32m 7^[[0m
        ^[[2m     3       2 |^[[0m b
          capture: last/out
    "#]]
    .assert_eq(&text);
    let stripped = anstream::adapter::strip_str(&rendered(&failure, Colour::Yes)).to_string();
    let pointers = |line: &&str| line.trim_start_matches([' ', '|', '^']).is_empty();
    let plain = rendered(&failure, Colour::No);
    assert!(stripped.lines().eq(plain.lines().filter(|line| !pointers(line))));
}

#[test]
fn long_line_is_cut_with_its_length() {
    let mut failure = failure("a\n", b"a b\n", Format::Plain);
    failure.capture = vec![b'a'; 1 << 20];
    failure.capture.push(b'\n');
    let text = rendered(&failure, Colour::No);
    assert!(text.contains("a... (1048576 bytes)\n"), "{text}");
    assert!(text.len() < 1000);
}

#[test]
fn pointer_is_below_the_word_after_wide_characters() {
    let text = rendered(&failure("漢字 a\n", "漢字 b\n".as_bytes(), Format::Plain), Colour::No);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[3..5], ["             1 |+漢字 b", "               |      ^"], "{text}");
}

/// Bodies of valid goldens: lines with and without holes, and a directive now and then.
fn body() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        4 => "[ab: ]{0,4}",
        2 => "[ab: ]{0,3}\\{\\{(word|n|ptr:P|n:N|word:W|\\.\\.|lit:\\{\\{|re:a+|n>1)\\}\\}[ab: ]{0,2}",
        1 => Just("#@ any 1..2\nab".to_owned()),
        1 => Just("#@ if arch == x86_64\nx\n#@ end".to_owned()),
        1 => Just("#@ repeat 1..\na\n#@ end".to_owned()),
        1 => Just("#@ unordered\na\nb {{n}}\n#@ end".to_owned()),
        1 => Just("#@ absent /b/".to_owned()),
    ];
    prop::collection::vec(line, 0..30)
        .prop_map(|lines| lines.iter().map(|line| format!("{line}\n")).collect())
}

fn capture() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        4 => "[ab: 0-9]{0,5}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..12),
        1 => Just(b"hist_data: 000000009536f554".to_vec()),
        1 => (any::<u8>(), 0..2000usize).prop_map(|(byte, length)| vec![byte; length]),
    ];
    (prop::collection::vec(line, 0..30), any::<bool>()).prop_map(|(lines, ended)| {
        let mut bytes = lines.join(&b'\n');
        bytes.extend(ended.then_some(b'\n'));
        bytes
    })
}

proptest! {
    #[test]
    fn any_failure_can_be_shown_and_its_numbers_exist(
        body in body(),
        capture in capture(),
        format in prop::sample::select(vec![Format::Plain, Format::Hist, Format::HistDebug]),
    ) {
        let failure = failure(&body, &capture, format);
        let text = rendered(&failure, Colour::No);
        prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{:?}", text);
        let counts = [failure.golden.text.count(), split_lines(&capture).0.len()];
        let title = text.lines().find_map(|line| line.strip_suffix(": the capture differs"));
        if let Some(title) = title {
            let number: usize = title.rsplit(':').next().unwrap_or_default().parse().expect("a number");
            prop_assert!((1..=counts[0]).contains(&number), "{}", text);
        }
        // No other line has the bar in this column.
        for line in text.lines().filter(|line| line.get(14..16) == Some(" |")) {
            for (column, count) in [0..6, 7..14].into_iter().zip(counts) {
                let cell = line[column].trim();
                let number = cell.parse::<usize>().is_ok_and(|number| (1..=count).contains(&number));
                prop_assert!(cell.is_empty() || cell == "..." || number, "{}", text);
            }
        }
        let _ = rendered(&failure, Colour::Yes);
    }
}
