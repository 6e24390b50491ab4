use expect_test::{Expect, expect};

use super::*;
use crate::Document;

fn errors(text: &str, check: impl FnOnce(&mut Reader, &Document)) -> Vec<String> {
    let document = Document::parse("t.yaml", text).expect("valid YAML");
    let mut reader = Reader::new();
    check(&mut reader, &document);
    reader.into_errors().iter().map(ToString::to_string).collect()
}

/// Read `text` by `read`, which gives something only when nothing is wrong.
fn check<T: std::fmt::Debug>(text: &str, read: fn(&mut Reader, &Document) -> Option<T>, expected: &Expect) {
    let found = errors(text, |reader, document| {
        assert!(read(reader, document).is_none());
    });
    expected.assert_eq(&found.join("\n"));
}

#[test]
fn unknown_keys_are_all_reported() {
    let found = errors("titel: x\nsteps: 1\nzzz: 2\n3: 4\nlimit: 2s\n", |reader, document| {
        reader.fields_with_renames(document.root(), &["title", "steps"], &[("limit", "`timeout`")]);
    });
    expect![[r"
        t.yaml:1:1: unknown key `titel` (did you mean `title`?)
        t.yaml:1:1: a key must be a word, found the number 3
        t.yaml:3:1: unknown key `zzz` (known keys: title, steps)
        t.yaml:5:1: `limit` has been renamed (write `timeout`)"]]
    .assert_eq(&found.join("\n"));
}

#[test]
fn missing_key_is_reported_at_its_mapping() {
    check(
        "a:\n  b: 1\n",
        |r, d| {
            let node = r.fields(d.root(), &["a"])?.need(r, "a")?;
            r.fields(node, &["b", "c"])?.need(r, "c").map(|_| ())
        },
        &expect!["t.yaml:2:3: missing key `c`"],
    );
}

#[test]
fn value_of_another_type_is_an_error() {
    let text = |r: &mut Reader, d: &Document| r.text(&d.root());
    check("12", text, &expect!["t.yaml:1:1: expected text, found the number 12 (put the value in quotes)"]);
    check("yes: no", text, &expect!["t.yaml:1:1: expected text, found a mapping"]);
    check(
        "'  '",
        |r, d| r.line(&d.root()),
        &expect!["t.yaml:1:1: expected one line of text that is not empty"],
    );
    check(
        "'a\n\n  b'",
        |r, d| r.line(&d.root()),
        &expect!["t.yaml:1:1: expected one line of text that is not empty"],
    );
    let number = |r: &mut Reader, d: &Document| r.number(&d.root(), 1..=64);
    check(
        "|\n  a\n  b",
        number,
        &expect!["t.yaml:2:3: expected a whole number from 1 to 64, found text of several lines"],
    );
    check("65", number, &expect!["t.yaml:1:1: 65 is not from 1 to 64"]);
    check(
        "!x 1",
        |r, d| r.list(&d.root()).map(|_| ()),
        &expect!["t.yaml:1:1: expected a list, found a value tagged !x"],
    );
    check(
        "",
        |r, d| r.fields(d.root(), &[]).map(|_| ()),
        &expect!["t.yaml:1:1: expected a mapping of keys to values, found nothing"],
    );
}

#[test]
fn boolean_is_true_or_false() {
    let boolean = |r: &mut Reader, d: &Document| r.boolean(&d.root());
    check("on", boolean, &expect!["t.yaml:1:1: expected true or false, found the text `on`"]);
    let document = Document::parse("t.yaml", "false").expect("valid YAML");
    assert_eq!(boolean(&mut Reader::new(), &document), Some(false));
}

#[test]
fn size_has_a_unit_and_a_range() {
    let size = |r: &mut Reader, d: &Document| r.size(&d.root(), 1 << 10..=256 << 20);
    for (text, bytes) in [("1KiB", 1 << 10), ("1536KiB", 1536 << 10), ("256MiB", 256 << 20)] {
        let document = Document::parse("t.yaml", text).expect("valid YAML");
        assert_eq!(size(&mut Reader::new(), &document), Some(bytes));
        assert_eq!(show_size(bytes), text);
    }
    check(
        "8",
        size,
        &expect![
            "t.yaml:1:1: expected a size, found the number 8 (write a whole number and its unit (KiB or MiB), such as 64MiB)"
        ],
    );
    check(
        "8MB",
        size,
        &expect![
            "t.yaml:1:1: expected a size, found the text `8MB` (write a whole number and its unit (KiB or MiB), such as 64MiB)"
        ],
    );
    check(
        "1.5MiB",
        size,
        &expect![
            "t.yaml:1:1: expected a size, found the text `1.5MiB` (write a whole number and its unit (KiB or MiB), such as 64MiB)"
        ],
    );
    check("0KiB", size, &expect!["t.yaml:1:1: 0MiB is not from 1KiB to 256MiB"]);
    check("257MiB", size, &expect!["t.yaml:1:1: 257MiB is not from 1KiB to 256MiB"]);
    check(
        "18446744073709551615MiB",
        size,
        &expect![
            "t.yaml:1:1: expected a size, found the text `18446744073709551615MiB` (write a whole number and its unit (KiB or MiB), such as 64MiB)"
        ],
    );
}

#[test]
fn every_item_of_a_list_is_read() {
    check(
        "[a, 1, b, true]",
        |r, d| r.lines(&d.root()),
        &expect![[r"
        t.yaml:1:5: expected text, found the number 1 (put the value in quotes)
        t.yaml:1:11: expected text, found the boolean true (put the value in quotes)"]],
    );
}

#[test]
fn choice_is_by_name() {
    let choice = |r: &mut Reader, d: &Document| r.choice(&d.root(), "colour", &[("red", 1), ("green", 2)]);
    let document = Document::parse("t.yaml", "green").expect("valid YAML");
    assert_eq!(choice(&mut Reader::new(), &document), Some(2));
    check("gren", choice, &expect!["t.yaml:1:1: unknown colour `gren` (did you mean `green`?)"]);
    check("ultraviolet", choice, &expect!["t.yaml:1:1: unknown colour `ultraviolet` (known: red, green)"]);
}

#[test]
fn optional_key_may_be_absent_and_not_wrong() {
    let read = |text: &str| {
        let document = Document::parse("t.yaml", text).expect("valid YAML");
        let reader = &mut Reader::new();
        let fields = reader.fields(document.root(), &["a", "b"]).expect("a mapping");
        fields.optional(reader, "a", |r, node| r.line(node))
    };
    assert_eq!(read("b: 1"), Some(None));
    assert_eq!(read("a: x"), Some(Some("x".to_owned())));
    assert_eq!(read("a: 1"), None);
}

#[test]
fn text_that_is_not_yaml_is_an_error_with_its_place() {
    let error = |text: &str| Document::parse("t.yaml", text).expect_err("not YAML").to_string();
    expect!["t.yaml:1:1: duplicate entry with key \"a\""].assert_eq(&error("a: 1\na: 2\n"));
    expect!["t.yaml:2:1: found a tab character that violates indentation at line 2 column 1, while scanning a plain scalar"].assert_eq(&error("a: 1\n\tb: 2\n"));
}

#[test]
fn duration_is_from_a_nanosecond_to_an_hour() {
    let duration = |r: &mut Reader, d: &Document| r.duration(&d.root());
    for (text, time) in [("500us", Duration::from_micros(500)), ("60min", Duration::from_secs(3600))] {
        let document = Document::parse("t.yaml", text).expect("valid YAML");
        assert_eq!(duration(&mut Reader::new(), &document), Some(time));
    }
    check(
        "5",
        duration,
        &expect![
            "t.yaml:1:1: expected a duration, found the number 5 (write a number and its unit (ns, us, ms, s or min), such as 10us, 1.5ms or 60s)"
        ],
    );
    check(
        "5h",
        duration,
        &expect![
            "t.yaml:1:1: `5h` is not a duration: unknown unit (write a number and its unit (ns, us, ms, s or min), such as 10us, 1.5ms or 60s)"
        ],
    );
    check("0s", duration, &expect!["t.yaml:1:1: `0s` is not from 1ns to 60min"]);
    check("61min", duration, &expect!["t.yaml:1:1: `61min` is not from 1ns to 60min"]);
}
