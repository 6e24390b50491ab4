//! The lines that differ, as a table: the golden's line number, the capture's, a sign, the text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use anstyle::Style;

use super::hunks::{Item, cut};
use super::line::{Line, WIDTH_MAX};
use super::rows::{Row, Sign, pairs};
use super::words::{mark, spans};
use crate::report::colour::{Colour, Palette};
use crate::report::escape::columns_of;
use crate::report::text::ReportText;
use golden::Pattern;
use trial::CaptureFailure;

/// The heads of the columns with line numbers, which say what the signs mean, too.
const HEADS: [&str; 2] = ["golden", "capture"];

/// Lines that differ beyond this byte are shown from a little before the difference.
const FAR: usize = WIDTH_MAX - 100;
/// This many bytes before it.
const BEFORE: usize = 100;

struct Table<'t> {
    failure: &'t CaptureFailure,
    rows: &'t [Row],
    lines: &'t [&'t [u8]],
    /// The patterns of the golden, by their lines.
    patterns: BTreeMap<usize, &'t Pattern>,
    palette: Palette,
    colour: Colour,
    /// The widths of the columns with line numbers.
    widths: [usize; 2],
}

/// A line that stands for one of the other side.
struct Changed<'t> {
    line: Line<'t>,
    /// What is pointed at, in columns of the shown line.
    pointer: Option<Range<usize>>,
}

/// Write the table.
pub(super) fn write(
    failure: &CaptureFailure,
    rows: &[Row],
    lines: &[&[u8]],
    colour: Colour,
    text: &mut ReportText,
) {
    let counts = [failure.golden.text.count(), lines.len()];
    let width = |at: usize| counts[at].to_string().len().max(HEADS[at].len());
    let table = Table {
        failure,
        rows,
        lines,
        patterns: failure.golden.patterns().into_iter().collect(),
        palette: Palette::new(colour),
        colour,
        widths: [width(0), width(1)],
    };
    table.write(text);
}

impl<'t> Table<'t> {
    fn write(&self, text: &mut ReportText) {
        let items = cut(self.rows);
        let shown = items.iter().filter_map(|item| match item {
            Item::Row(at) => Some(*at),
            _ => None,
        });
        let mut changed = self.changed(shown);
        self.faint(&self.gutters(HEADS), text);
        for item in items {
            let note = |sides: [&str; 2], note: String, text: &mut ReportText| {
                self.faint(&format!("{} |{note}", self.gutters(sides)), text);
            };
            match item {
                Item::Row(at) => {
                    let Changed { line, pointer } = changed
                        .remove(&at)
                        .unwrap_or_else(|| Changed { line: self.line(at, 0), pointer: None });
                    self.row(&self.rows[at], &line, text);
                    if let Some(span) = pointer {
                        let _ = writeln!(text, "{} | {}", self.gutters(["", ""]), below(&line, &span));
                    }
                }
                Item::Left(sign, more) => {
                    let sides = match sign {
                        Sign::Golden => ["...", ""],
                        _ => ["", "..."],
                    };
                    note(sides, format!(" ({more} more such lines)"), text);
                }
                Item::Gap => note(["...", "..."], String::new(), text),
                Item::Rest(more) => {
                    note(["...", "..."], format!(" ({more} more lines of this hunk)"), text);
                }
                Item::Hunks(more) => {
                    let plural = if more == 1 { "" } else { "s" };
                    let _ = writeln!(text, "... and {more} more hunk{plural}");
                }
            }
        }
    }

    /// The lines that stand for each other, with what differs marked, by their rows.
    fn changed(&self, shown: impl IntoIterator<Item = usize>) -> BTreeMap<usize, Changed<'t>> {
        let mut changed = BTreeMap::new();
        for (minus, plus) in pairs(self.rows, shown) {
            let from = self.window(minus, plus);
            let (mut golden, mut capture) = (self.line(minus, from), self.line(plus, from));
            if self.pattern(minus).is_some() {
                mark(&mut golden, &mut capture, self.failure.format, &self.failure.bindings);
            }
            let [golden_pointer, capture_pointer] = match self.colour {
                Colour::Yes => [None, None],
                Colour::No => pointers(&golden, &capture),
            };
            changed.insert(minus, Changed { line: golden, pointer: golden_pointer });
            changed.insert(plus, Changed { line: capture, pointer: capture_pointer });
        }
        changed
    }

    /// From where on a pair of lines is shown: two long lines that begin alike would look alike.
    fn window(&self, minus: usize, plus: usize) -> usize {
        let Some(literal) = self.pattern(minus).and_then(|pattern| pattern.as_literal()) else { return 0 };
        let common = common_start(literal, self.capture(plus));
        if common < FAR {
            return 0;
        }
        // The golden is text: the window begins at one of its characters.
        let start = common - BEFORE;
        (start..common).find(|at| literal[*at] & 0xc0 != 0x80).unwrap_or(0)
    }

    fn pattern(&self, at: usize) -> Option<&'t Pattern> {
        self.patterns.get(&self.rows[at].golden?).copied()
    }

    fn capture(&self, at: usize) -> &'t [u8] {
        let line = self.rows[at].capture.and_then(|line| self.lines.get(line - 1));
        line.copied().unwrap_or_default()
    }

    fn line(&self, at: usize, from: usize) -> Line<'t> {
        let row = &self.rows[at];
        let Some(number) = row.golden.filter(|_| row.capture.is_none()) else {
            return Line::of_capture(self.capture(at), from);
        };
        let written = self.failure.golden.text.line(number);
        match self.pattern(at) {
            Some(pattern) => Line::of_golden(pattern, written, &self.failure.bindings, from),
            None => Line::of_directive(written),
        }
    }

    fn row(&self, row: &Row, line: &Line<'_>, text: &mut ReportText) {
        let number = |number: Option<usize>| number.map(|n| n.to_string()).unwrap_or_default();
        let (golden, capture) = (number(row.golden), number(row.capture));
        let faint = self.palette.faint;
        text.styled(faint, &format!("{} |", self.gutters([&golden, &capture])));
        let (style, stress) = match row.sign {
            Sign::Both => (Style::new(), Style::new()),
            Sign::Ignored => (faint, faint),
            Sign::Golden => (self.palette.golden, self.palette.golden_word),
            Sign::Capture => (self.palette.capture, self.palette.capture_word),
        };
        if row.sign != Sign::Both || !line.words.is_empty() {
            text.styled(style, &format!("{}{}", row.sign.char(), line.prefix()));
            for part in line.words.chunk_by(|a, b| a.differs == b.differs) {
                let words: String = part.iter().map(|word| word.text.as_str()).collect();
                text.styled(if part[0].differs { stress } else { style }, &words);
            }
            text.styled(style, &line.suffix());
        }
        text.end_line();
    }

    fn gutters(&self, [golden, capture]: [&str; 2]) -> String {
        let [left, right] = self.widths;
        format!("{golden:>left$} {capture:>right$}")
    }

    fn faint(&self, line: &str, text: &mut ReportText) {
        text.styled(self.palette.faint, line);
        text.end_line();
    }
}

/// Without colours a pair of lines gets one pointer at most, and none when more than one span
/// differs: it is below the capture's line, or below the golden's when only that has more.
fn pointers(golden: &Line<'_>, capture: &Line<'_>) -> [Option<Range<usize>>; 2] {
    match (spans(golden).as_slice(), spans(capture).as_slice()) {
        ([] | [_], [span]) => [None, Some(span.clone())],
        ([span], []) => [Some(span.clone()), None],
        _ => [None, None],
    }
}

/// `^^^` below a span of a line. Tabs before it stay, to be as wide as in the line.
fn below(line: &Line<'_>, span: &Range<usize>) -> String {
    let mut pointer = String::new();
    let mut column = 0;
    for c in line.prefix().chars().chain(line.words.iter().flat_map(|word| word.text.chars())) {
        if column >= span.start {
            break;
        }
        let width = columns_of(c);
        pointer.push_str(&if c == '\t' { "\t".to_owned() } else { " ".repeat(width) });
        column += width;
    }
    pointer.push_str(&"^".repeat(span.len().max(1)));
    pointer
}

/// How many bytes two texts begin with in common.
fn common_start(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
