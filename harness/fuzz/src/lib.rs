//! What fuzz targets check.

use camino::Utf8Path;
use goldtrace::golden::{Bindings, Facts, Golden, compare, split_lines};
use goldtrace::normalise::{Format, Piece};

/// A tokeniser's promises: pieces add up to the line, and rules can be checked on any capture.
pub fn tokeniser(format: Format, data: &[u8]) {
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
    let Ok(golden) = Golden::parse(Utf8Path::new("g"), data) else { return };
    let text = golden.to_string();
    let again = Golden::parse(Utf8Path::new("g"), text.as_bytes()).expect("what is printed parses");
    assert_eq!(again.to_string(), text);
}

/// The line between a golden and a capture in an input.
const BETWEEN: &[u8] = b"\n=====\n";

/// Comparing ends, and a golden of plain text fits itself.
pub fn comparison(data: &[u8]) {
    let Some((format, data)) = data.split_first() else { return };
    let format = Format::ALL[usize::from(*format) % Format::ALL.len()].1;
    let at = data.windows(BETWEEN.len()).position(|window| window == BETWEEN);
    let (golden, capture) = match at {
        Some(at) => (&data[..=at], &data[at + BETWEEN.len()..]),
        None => (data, data),
    };
    let Ok(golden) = Golden::parse(Utf8Path::new("g"), golden) else { return };
    let found = compare(&golden, capture, format, &Facts::default(), &mut Bindings::new());
    let (lines, _) = split_lines(capture);
    // Every line of the capture is told exactly once.
    let told =
        found.edits.iter().filter(|edit| !matches!(edit, goldtrace::golden::Edit::Missing { .. })).count();
    assert_eq!(told, lines.len());
}
