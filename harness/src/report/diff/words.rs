//! Which words of two lines differ.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::line::{Content, Line, Word};
use crate::report::escape::columns;
use formats::{Format, Token};
use golden::{Bindings, Hole, PatternBuilder};

/// Two lines are alike when at least one word in this many of the shorter one is in the other: to mark nearly all of a
/// line would only be noise.
const COMMON_PART: usize = 3;

/// What words are compared by. A hole is equal to nothing; whether it fits is tried afterwards.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Key<'l> {
    Bytes(&'l [u8]),
    Hole(usize),
}

/// Mark the words that differ, unless the lines have little in common. A hole of the golden that
/// fits what the capture has in its place does not differ.
pub(super) fn mark(golden: &mut Line<'_>, capture: &mut Line<'_>, format: Format, bindings: &Bindings) {
    let text: Vec<u8> = capture.words.iter().flat_map(|word| bytes(word)).copied().collect();
    let tokens = format.tokens(&text);
    let (old, new) = (keys(&golden.words), keys(&capture.words));
    let mut differing = Vec::new();
    let mut common = 0;
    for op in capture_diff_slices(Algorithm::Myers, &old, &new) {
        let (old, new) = (op.old_range(), op.new_range());
        let same = matches!(op, DiffOp::Equal { .. })
            || fits(&golden.words[old.clone()], &capture.words, &new, &text, &tokens, bindings);
        if same {
            common += weight(&capture.words[new]);
        } else {
            differing.push((old, new));
        }
    }
    let shorter = weight(&golden.words).min(weight(&capture.words));
    if common == 0 || common * COMMON_PART < shorter {
        return;
    }
    for (old, new) in differing {
        golden.words[old].iter_mut().for_each(|word| word.differs = true);
        capture.words[new].iter_mut().for_each(|word| word.differs = true);
    }
}

/// The spans of differing words, in columns of the shown line, with the space between two of them.
pub(super) fn spans(line: &Line<'_>) -> Vec<Range<usize>> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    let mut at = columns(line.prefix());
    for word in &line.words {
        let end = at + columns(&word.text);
        match spans.last_mut() {
            Some(last) if word.differs && last.end == at => last.end = end,
            _ if word.differs => spans.push(at..end),
            _ => {}
        }
        at = end;
    }
    spans
}

fn keys<'l>(words: &[Word<'l>]) -> Vec<Key<'l>> {
    let key = |(at, word): (usize, &Word<'l>)| match word.content {
        Content::Bytes(bytes) => Key::Bytes(bytes),
        Content::Hole(_) => Key::Hole(at),
    };
    words.iter().enumerate().map(key).collect()
}

fn bytes<'l>(word: &Word<'l>) -> &'l [u8] {
    match word.content {
        Content::Bytes(bytes) => bytes,
        Content::Hole(_) => b"",
    }
}

/// How much words count for the likeness of lines: space and signs do not.
fn weight(words: &[Word<'_>]) -> usize {
    let counts = |word: &&Word<'_>| match word.content {
        Content::Bytes(bytes) => bytes.iter().any(|b| b.is_ascii_alphanumeric() || *b >= 0x80),
        Content::Hole(_) => true,
    };
    words.iter().filter(counts).count()
}

/// Whether words of a golden, with a hole among them, match what the capture has in their place.
fn fits(
    golden: &[Word<'_>],
    capture: &[Word<'_>],
    place: &Range<usize>,
    text: &[u8],
    tokens: &[Token],
    bindings: &Bindings,
) -> bool {
    if !golden.iter().any(|word| matches!(word.content, Content::Hole(_))) {
        return false;
    }
    let value = |hole: &Hole| {
        let (namespace, name) = hole.binds()?;
        bindings.value(namespace, name)
    };
    let length = |words: &[Word<'_>]| words.iter().map(|word| bytes(word).len()).sum::<usize>();
    let start = length(&capture[..place.start]);
    let end = start + length(&capture[place.clone()]);
    let here = &text[start..end];
    if let [Word { content: Content::Hole(hole), .. }] = golden {
        // The text around it may differ so that the format sees no token there.
        if value(hole) == Some(here) {
            return true;
        }
    }
    let mut builder = PatternBuilder::default();
    for word in golden {
        match word.content {
            Content::Bytes(bytes) => builder.literal(&String::from_utf8_lossy(bytes)),
            Content::Hole(hole) => builder.hole(hole.clone()),
        }
    }
    let pattern = builder.take();
    let inside = tokens.iter().filter(|token| start <= token.start && token.end <= end);
    let inside: Vec<Token> =
        inside.map(|t| Token { start: t.start - start, end: t.end - start, ..*t }).collect();
    let Some(held) = pattern.hole_spans(here, &inside) else { return false };
    pattern
        .holes()
        .zip(held)
        .all(|(hole, span)| value(hole).is_none_or(|value| value == here[span].trim_ascii()))
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;
    use proptest::prelude::*;

    use super::*;
    use golden::{BindingSite, Golden};

    /// The lines with `[...]` around what differs.
    fn marked(written: &str, capture: &str, format: Format, bindings: &Bindings) -> [String; 2] {
        let whole = format!("#@ golden v1\n{written}\n");
        let golden = Golden::parse(Utf8Path::new("g"), whole.as_bytes()).expect("valid");
        let mut golden = Line::of_golden(golden.patterns()[0].1, written, bindings, 0);
        let mut capture = Line::of_capture(capture.as_bytes(), 0);
        mark(&mut golden, &mut capture, format, bindings);
        [golden, capture].map(|line| {
            let mut text: Vec<char> = line.words.iter().flat_map(|word| word.text.chars()).collect();
            for span in spans(&line).into_iter().rev() {
                text.insert(span.end, ']');
                text.insert(span.start, '[');
            }
            text.into_iter().collect()
        })
    }

    fn plain(golden: &str, capture: &str) -> [String; 2] {
        marked(golden, capture, Format::Plain, &Bindings::new())
    }

    #[test]
    fn differing_words_are_marked() {
        assert_eq!(
            plain("type: u64 size 8", "type: s64 size 8"),
            ["type: [u64] size 8", "type: [s64] size 8"]
        );
        assert_eq!(plain("flag: VAR", "flag: VAR "), ["flag: VAR", "flag: VAR[ ]"]);
        assert_eq!(plain("a  b", "a b"), ["a[  ]b", "a[ ]b"]);
        assert_eq!(plain("a b c", "a c"), ["a [b ]c", "a c"]);
    }

    #[test]
    fn unlike_lines_are_not_marked() {
        assert_eq!(plain("right", "righT"), ["right", "righT"]);
        assert_eq!(plain("one, two, three", "four, five, six"), ["one, two, three", "four, five, six"]);
        assert_eq!(plain("", "a"), ["", "a"]);
    }

    #[test]
    fn hole_that_fits_does_not_differ() {
        let row = "{ pid: {{n}} } hitcount: {{n==3}}";
        let found = marked(row, "{ pid:          7 } hitcount:          4", Format::Hist, &Bindings::new());
        assert_eq!(
            found,
            ["{ pid: {{n}} } hitcount:[ {{n==3}}]", "{ pid:          7 } hitcount:[          4]"]
        );
        assert_eq!(plain("a={{word}} b={{n}} c", "a=x b=7 d"), ["a={{word}} b={{n}} [c]", "a=x b=7 [d]"]);
        assert_eq!(plain("key: {{..}}", "kee: yy z"), ["[key]: {{..}}", "[kee]: yy z"]);
    }

    #[test]
    fn bound_name_fits_its_value_only() {
        let written = "hist_data: {{ptr:A}} x";
        let golden = Golden::parse(Utf8Path::new("g"), format!("#@ golden v1\n{written}\n").as_bytes());
        let golden = golden.expect("valid");
        let mut bindings = Bindings::new();
        let place = BindingSite { golden: "g".into(), golden_line: 2, capture_line: 1 };
        let hole = golden.patterns()[0].1.holes().next().expect("a hole");
        bindings.bind_or_check(hole, b"00000000aaaaaaaa", &place).expect("free");
        let shown = "hist_data: {{ptr:A=00000000aaaaaaaa}} ";
        assert_eq!(
            marked(written, "hist_data: 00000000aaaaaaaa y", Format::HistDebug, &bindings),
            [format!("{shown}[x]"), "hist_data: 00000000aaaaaaaa [y]".to_owned()]
        );
        assert_eq!(
            marked(written, "hist_data: 00000000bbbbbbbb x", Format::HistDebug, &bindings)[1],
            "hist_data: [00000000bbbbbbbb] x"
        );
    }

    proptest! {
        #[test]
        fn equal_lines_are_not_marked(line in "[ -z]{0,40}") {
            let [golden, capture] = [line.as_bytes(); 2].map(|bytes| Line::of_capture(bytes, 0));
            let (mut golden, mut capture) = (golden, capture);
            mark(&mut golden, &mut capture, Format::Hist, &Bindings::new());
            prop_assert!(spans(&golden).is_empty() && spans(&capture).is_empty());
        }
    }
}
