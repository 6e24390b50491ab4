//! What fuzz targets check.

use camino::Utf8Path;
use formats::dispatch_log::{read_dump, read_script};
use formats::{Format, Piece};
use golden::{Bindings, Comparison, Edit, Facts, Golden, HEADER, Pattern, Seen, compare, split_lines};
use kmod::{Module, describe, format_violations, missing_definitions, read_formats};

/// Formats whose tokenisers or rules can fail: of the others nothing is a token.
fn formats() -> impl Iterator<Item = Format> {
    Format::ALL.iter().copied().filter(|format| !matches!(format, Format::Plain | Format::Trigger))
}

/// A tokeniser's promises: pieces add up to the line, and rules can be checked on any capture. The
/// first byte selects the format.
pub fn tokeniser(data: &[u8]) {
    let Some((selector, data)) = data.split_first() else { return };
    let at = usize::from(*selector) % formats().count();
    let Some(format) = formats().nth(at) else { return };
    let (lines, _) = split_lines(data);
    for line in &lines {
        let mut end = 0;
        for token in format.tokens(line) {
            assert!(end <= token.start && token.start < token.end && token.end <= line.len());
            end = token.end;
        }
        let joined: Vec<u8> =
            format.pieces(line).iter().flat_map(|piece: &Piece| line[piece.span()].iter().copied()).collect();
        assert_eq!(joined, *line);
    }
    for violation in format.violations(&lines) {
        assert!((1..=lines.len()).contains(&violation.line));
    }
}

/// A golden that parses prints as the same golden.
pub fn golden_parser(data: &[u8]) {
    let golden = match Golden::parse(Utf8Path::new("g"), data) {
        Ok(golden) => golden,
        Err(errors) => return assert!(!errors.is_empty(), "neither a golden nor an error"),
    };
    let text = golden.to_string();
    let again = Golden::parse(Utf8Path::new("g"), text.as_bytes()).expect("what is printed parses");
    assert_eq!(again.to_string(), text);
    assert_eq!(again.patterns(), golden.patterns());
}

/// The line between a golden and a capture in an input.
const BETWEEN: &[u8] = b"\n=====\n";

/// Comparing returns and reports every line; a golden of plain text matches itself.
pub fn comparison(data: &[u8]) {
    let Some((format, data)) = data.split_first() else { return };
    let format = Format::ALL[usize::from(*format) % Format::ALL.len()];
    let at = data.windows(BETWEEN.len()).position(|window| window == BETWEEN);
    let (golden, capture) = match at {
        Some(at) => (&data[..=at], &data[at + BETWEEN.len()..]),
        None => (data, data),
    };
    let facts = Facts { arch: "x86_64".to_owned(), kernel: vec![7, 2], ..Facts::default() };
    if let Some(golden) = parse(golden) {
        let found = compare(&golden, capture, format, &facts, &mut Bindings::new());
        reported_once(&found, &golden, split_lines(capture).0.len());
        known_bugs(&found, &golden);
    }
    of_itself(capture, format, &facts);
}

fn parse(golden: &[u8]) -> Option<Golden> {
    Golden::parse(Utf8Path::new("g"), golden).ok()
}

/// Every line of the capture is reported once, in order, and the shape is what the edits say.
fn reported_once(found: &Comparison, golden: &Golden, lines: usize) {
    let mut reported = 0;
    for edit in &found.edits {
        let (of_golden, of_capture) = match *edit {
            Edit::Same { golden, capture } => (Some(golden), Some(capture)),
            Edit::Missing { golden } => (Some(golden), None),
            Edit::Unexpected { capture } | Edit::Ignored { capture } => (None, Some(capture)),
        };
        assert!(of_golden.is_none_or(|line| (2..=golden.text.count()).contains(&line)), "{edit:?}");
        if let Some(line) = of_capture {
            reported += 1;
            assert_eq!(line, reported, "{edit:?}");
        }
    }
    assert_eq!(reported, lines);
    let left_over = |edit: &Edit| matches!(edit, Edit::Missing { .. } | Edit::Unexpected { .. });
    assert_eq!(found.same_shape, !found.edits.iter().any(left_over));
}

/// Each known bug is reported at most once, in order; one of which a part is missing does not pass.
fn known_bugs(found: &Comparison, golden: &Golden) {
    assert!(found.known_bugs.is_sorted_by(|a, b| a.line < b.line));
    for bug in &found.known_bugs {
        assert!(golden.text.line(bug.line).starts_with("#@ xfail "), "{bug:?}");
        assert!(bug.seen != Seen::Neither || !found.passes(), "{bug:?}");
    }
}

/// A capture that is text fits the golden that has its lines as they are, and with a line more it
/// does not.
fn of_itself(capture: &[u8], format: Format, facts: &Facts) {
    let (lines, unfinished) = split_lines(capture);
    let mut text = format!("{HEADER}\n");
    for line in lines {
        let Ok(line) = std::str::from_utf8(line) else { return };
        text.push_str(&format!("{}\n", Pattern::literal(line)));
    }
    let golden = parse(text.as_bytes()).expect("literal lines are a golden");
    let found = compare(&golden, capture, format, facts, &mut Bindings::new());
    assert!(found.same_shape && found.conflicts.is_empty());
    assert_eq!(found.passes(), found.violations.is_empty() && !unfinished);
    let end: &[u8] = if unfinished { b"\n" } else { b"" };
    let longer = [capture, end, b"one more\n"].concat();
    assert!(!compare(&golden, &longer, format, facts, &mut Bindings::new()).same_shape);
}

/// Both readers of the dispatch trace log take any bytes: what they refuse, they place.
pub fn dispatch_log(data: &[u8]) {
    let lines = data.split(|b| *b == b'\n').count();
    let errors = [read_script(data).err(), read_dump(data).err()];
    for error in errors.into_iter().flatten() {
        assert!((1..=lines).contains(&error.line), "{error}");
    }
}

/// What ends a part of an input for [`module`] that is text.
const MODULE_END: u8 = 0xff;

/// The readers of a module's file, of `format` files and of preprocessed C take any bytes; the three
/// follow one another in an input.
pub fn module(data: &[u8]) {
    let mut parts = data.splitn(3, |byte| *byte == MODULE_END);
    let mut next = || parts.next().unwrap_or_default();
    let (formats, source, file) = (read_formats(next()), next(), next());
    let Ok(module) = Module::parse(file) else { return };
    assert_eq!(module.counts().events, module.events().len());
    describe(&module);
    missing_definitions(source, &module);
    if let Ok(formats) = formats {
        format_violations(&module, &formats);
    }
}
