use super::*;

fn errors(text: &[u8]) -> Vec<String> {
    let errors = Golden::parse(Utf8Path::new("g.golden"), text).expect_err("wrong");
    errors.iter().map(|e| format!("{}:{} {}", e.span.line, e.span.column, e.message)).collect()
}

fn body_errors(body: &str) -> Vec<String> {
    errors(format!("#@ golden v1\n{body}").as_bytes())
}

#[test]
fn every_error_is_reported_with_its_span() {
    let body = "x {{ptr\n{{foo}}\n#@ repaet 1..\n#@ end\n#@ if arch == x86\n#@ repeat 2..\n";
    assert_eq!(
        body_errors(body),
        [
            "2:3 unclosed `{{`",
            "3:1 unknown hole `{{foo}}`",
            "4:1 unknown directive `repaet`",
            "5:1 `end` without a block",
            "6:1 this `if` has no `end`",
            "6:15 unknown `x86`",
            "7:1 this `repeat` has no `end`",
        ]
    );
}

#[test]
fn error_span_covers_whole_characters() {
    assert_eq!(body_errors("#@ if arch == x86_64 && \u{7dc}\n#@ end\n"), ["2:25 unknown condition ``"]);
}

#[test]
fn block_errors_are_reported() {
    let one = |body: &str| {
        let mut all = body_errors(body);
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    };
    assert_eq!(
        one("#@ any\n#@ any 1..\n"),
        "3:1 two `any` in a row: ambiguous, nothing marks where the first one ends"
    );
    assert_eq!(one("#@ else\n"), "2:1 `else` without `if`");
    assert_eq!(one("#@ if config.A\n#@ else\n#@ else\n#@ end\n"), "4:1 `else` without `if`");
    assert_eq!(one("#@ repeat 1..\n#@ any\na\n#@ end\n"), "3:1 `any` inside `repeat`");
    assert_eq!(one("#@ repeat 1..\n#@ optional \"x\"\na\n#@ end\n"), "3:1 `optional` inside `repeat`");
    assert_eq!(one("#@ unordered\n#@ absent /x/\na\n#@ end\n"), "3:1 `absent` inside `unordered`");
    assert_eq!(one("#@ repeat 1..\n#@ end\n"), "2:1 this `repeat` holds no line");
    assert_eq!(one("#@ repeat x\na\n#@ end\n"), "2:1 invalid `repeat`");
    assert_eq!(one("#@ unordered\n#@ repeat 1..\na\n#@ end\n#@ end\n"), "3:1 `repeat` inside `unordered`");
    assert_eq!(
        one("#@ optional \"x\"\n#@ any\n"),
        "2:1 `optional` must be followed by its line, not by a directive"
    );
    assert_eq!(one("#@ optional \"x\"\n"), "2:1 `optional` must be followed by its line");
    let deep = "#@ if config.A\n".repeat(21) + &"#@ end\n".repeat(20);
    assert_eq!(one(&deep), "22:1 blocks are nested deeper than 20");
}

#[test]
fn xfail_errors_are_reported() {
    let with_help = |body: &str| {
        let text = format!("#@ golden v1\n{body}");
        let mut all = Golden::parse(Utf8Path::new("g"), text).expect_err("wrong");
        assert_eq!(all.len(), 1, "{all:?}");
        let error = all.remove(0);
        format!("{} {} | {}", error.span.line, error.message, error.help.unwrap_or_default())
    };
    let help = "write `#@ actual`, and below it the lines that a kernel with the bug prints";
    assert_eq!(with_help("#@ xfail \"x\"\na\n#@ end\n"), format!("2 this `xfail` has no `actual` | {help}"));
    assert_eq!(
        with_help("#@ xfail \"x\"\n#@ actual\n#@ end\n"),
        "2 this `xfail` has neither right nor actual lines | "
    );
    assert_eq!(
        with_help("#@ xfail \"x\"\na\n#@ actual\na\n#@ end\n"),
        "2 both parts of this `xfail` are the same | remove it"
    );
    assert_eq!(
        with_help("#@ xfail \"x\"\na\n#@ actual\nb\n {{n}} {{..}}\n#@ end\n"),
        "6 a line below `actual` that is nothing but holes | write the text that a kernel with the bug prints"
    );
    assert_eq!(with_help("#@ actual\n"), "2 `actual` without `xfail` | ");
    assert_eq!(
        with_help("#@ if config.A\n#@ actual\n#@ end\n"),
        "3 `actual` without `xfail` | did you mean `else`?"
    );
    assert_eq!(
        with_help("#@ xfail \"x\"\na\n#@ else\n#@ actual\n#@ end\n"),
        "4 `else` without `if` | did you mean `actual`?"
    );
    assert_eq!(
        with_help("#@ xfail \"x\"\na\n#@ actual\nb\n#@ actual\n#@ end\n"),
        "6 `actual` without `xfail` | "
    );
}

#[test]
fn xfail_holds_plain_lines_only() {
    for (inside, name) in [
        ("#@ if config.A\nb\n#@ end\n", "if"),
        ("#@ any\n", "any"),
        ("#@ repeat 2\nb\n#@ end\n", "repeat"),
        ("#@ unordered\nb\n#@ end\n", "unordered"),
        ("#@ absent /x/\n", "absent"),
        ("#@ optional \"x\"\nb\n", "optional"),
        ("#@ xfail \"y\"\nb\n#@ actual\nc\n#@ end\n", "xfail"),
    ] {
        let right = body_errors(&format!("#@ xfail \"x\"\na\n{inside}#@ actual\nz\n#@ end\n"));
        assert_eq!(right, [format!("4:1 `{name}` inside `xfail`")]);
        let actual = body_errors(&format!("#@ xfail \"x\"\na\n#@ actual\nz\n{inside}#@ end\n"));
        assert_eq!(actual, [format!("6:1 `{name}` inside `xfail`")]);
    }
    let block = "#@ xfail \"x\"\na\n#@ actual\nb\n#@ end\n";
    assert_eq!(body_errors(&format!("#@ repeat 2\n{block}#@ end\n")), ["3:1 `xfail` inside `repeat`"]);
    let inside_if = format!("#@ golden v1\n#@ if config.A\n{block}#@ else\n{block}#@ end\n");
    assert!(Golden::parse(Utf8Path::new("g"), inside_if).is_ok());
}

#[test]
fn counts_of_a_golden_are_bounded() {
    let body = "#@ any 1000\na\n".repeat(100);
    assert!(Golden::parse(Utf8Path::new("g"), format!("#@ golden v1\n{body}")).is_ok());
    assert_eq!(
        body_errors(&format!("{body}#@ repeat 1\na\n#@ end\n#@ any 5\n")),
        ["202:1 the counts of this golden come to more than 100000 lines"]
    );
    assert_eq!(body_errors("#@ any 2000000000\n"), ["2:1 invalid `any`"]);
}

#[test]
fn name_has_one_kind() {
    assert_eq!(
        body_errors("{{ptr:A}}\nx {{n:A}}\n"),
        ["3:3 A is the name of a ptr in line 2, and of a n here"]
    );
    assert_eq!(
        body_errors("{{ptr:A}} {{n==A}}\n"),
        ["2:11 A is the name of a ptr in line 2, and of a n here"]
    );
}

#[test]
fn empty_file_is_an_error() {
    assert_eq!(errors(b""), ["1:1 the golden is empty"]);
    assert_eq!(errors(b"#@ golden v1"), ["1:13 the last line has no newline"]);
    assert_eq!(
        errors(b"#@ golden v1 cas=x"),
        ["1:14 unknown key `cas`", "1:19 the last line has no newline"]
    );
}

#[test]
fn text_that_is_not_utf8_is_an_error() {
    assert_eq!(
        errors(b"#@ golden v1\nab\xff\n"),
        ["2:3 a golden is UTF-8 text, and the byte 0xff here is not"]
    );
}

#[test]
fn header_alone_is_a_golden() {
    let golden = Golden::parse(Utf8Path::new("g"), b"#@ golden v1\n").expect("valid");
    assert!(golden.passages.is_empty());
}
