//! Reading a golden: its header, and the tree of its lines and directives.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use camino::Utf8Path;
use diagnostic::{Diagnostic, Span};

use super::condition::Condition;
use super::directive::{self, Directive, START};
use super::header::Header;
use super::hole::Namespace;
use super::pattern::{Pattern, PatternBuilder, Segment};
use super::text::Text;
use super::tree::{Counts, Expression, Golden, Passage, PassageKind, Xfail};

const DEPTH_MAX: usize = 20;
/// The most lines that all counts of a golden may come to: matching keeps a state for each.
const COUNTED_MAX: usize = 100_000;

impl Golden {
    /// Read a golden. `file` is the name to show.
    ///
    /// # Errors
    /// Every error of the text, each with its span, in order.
    pub fn parse(file: &Utf8Path, bytes: impl Into<Vec<u8>>) -> Result<Golden, Vec<Diagnostic>> {
        let text = String::from_utf8(bytes.into())
            .map_err(|error| vec![not_utf8(file, error.as_bytes(), error.utf8_error().valid_up_to())])?;
        let text = Text::new(text);
        let mut parser = Parser {
            file,
            text: &text,
            errors: Vec::new(),
            names: BTreeMap::new(),
            builder: PatternBuilder::default(),
            open: Vec::new(),
            top: Vec::new(),
            counted: 0,
        };
        let header = parser.header();
        if let Some(last) = text.unterminated_line() {
            let at = text.count();
            let help = Some("end the file with a newline");
            parser.error(at, last.len()..last.len(), "the last line has no newline", help);
        }
        let passages = parser.passages();
        match header {
            Some(header) if parser.errors.is_empty() => {
                Ok(Golden { file: file.to_owned(), header, passages, text })
            }
            _ => {
                parser.errors.sort_by_key(|error| error.span);
                Err(parser.errors)
            }
        }
    }
}

/// A block that waits for its `#@ end`.
struct Open {
    line: usize,
    kind: OpenKind,
    passages: Vec<Passage>,
}

enum OpenKind {
    If { condition: Condition, then: Option<Vec<Passage>> },
    Repeat(Counts),
    Unordered(Option<Expression>),
    Xfail { reason: String, condition: Option<Condition>, right: Option<Vec<Passage>> },
}

impl OpenKind {
    fn name(&self) -> &'static str {
        match self {
            OpenKind::If { .. } => "if",
            OpenKind::Repeat(_) => "repeat",
            OpenKind::Unordered(_) => "unordered",
            OpenKind::Xfail { .. } => "xfail",
        }
    }

    /// What else it may hold, beside lines.
    fn holds_conditions(&self) -> bool {
        !matches!(self, OpenKind::Xfail { .. })
    }
}

struct Parser<'a> {
    file: &'a Utf8Path,
    text: &'a Text,
    errors: Vec<Diagnostic>,
    /// The kind of each name, and the line that has it first.
    names: BTreeMap<String, (Namespace, usize)>,
    builder: PatternBuilder,
    open: Vec<Open>,
    top: Vec<Passage>,
    /// The lines that the counts so far come to.
    counted: usize,
}

impl Parser<'_> {
    fn error(&mut self, line: usize, bytes: Range<usize>, message: &str, help: Option<&str>) {
        let text = self.text.line(line);
        let column = text[..bytes.start].chars().count() + 1;
        let width = text[bytes].chars().count().max(1);
        self.errors.push(Diagnostic {
            file: self.file.to_owned(),
            span: Span { line, column, width },
            message: message.to_owned(),
            help: help.map(str::to_owned),
            source_line: text.to_owned(),
        });
    }

    fn whole_line(&mut self, line: usize, message: &str, help: Option<&str>) {
        let length = self.text.line(line).len();
        self.error(line, 0..length, message, help);
    }

    fn header(&mut self) -> Option<Header> {
        match Header::parse(self.text.line(1)) {
            Ok(header) => Some(header),
            Err(_) if self.text.count() == 0 => {
                self.error(1, 0..0, "the golden is empty", Some(&Header::help()));
                None
            }
            Err(error) => {
                self.error(1, error.span, &error.message, error.help.as_deref());
                None
            }
        }
    }

    fn passages(&mut self) -> Vec<Passage> {
        let mut optional: Option<(usize, String)> = None;
        for (at, text) in self.text.numbered().skip(1) {
            if !text.starts_with(START) {
                let Some(pattern) = self.pattern(at, text) else { continue };
                match optional.take() {
                    Some((line, reason)) => {
                        self.add(Passage { line, end: at, kind: PassageKind::Optional { reason, pattern } });
                    }
                    None => self.line(at, pattern),
                }
                continue;
            }
            if let Some((line, _)) = optional.take() {
                self.whole_line(line, "`optional` must be followed by its line, not by a directive", None);
            }
            let read = directive::read(text);
            if let Some(error) = read.error {
                let end = error.span.end.min(text.len());
                self.error(at, error.span.start.min(end)..end, &error.message, error.help.as_deref());
            }
            match read.directive {
                Some(Directive::Optional(reason)) if self.may_stand(at, "optional") => {
                    optional = Some((at, reason));
                }
                Some(directive) => self.directive(at, directive),
                None => {}
            }
        }
        if let Some((line, _)) = optional {
            self.whole_line(line, "`optional` must be followed by its line", None);
        }
        for open in std::mem::take(&mut self.open) {
            let message = format!("this `{}` has no `end`", open.kind.name());
            self.whole_line(open.line, &message, Some("add `#@ end`"));
        }
        std::mem::take(&mut self.top)
    }

    fn siblings(&mut self) -> &mut Vec<Passage> {
        self.open.last_mut().map_or(&mut self.top, |open| &mut open.passages)
    }

    fn add(&mut self, passage: Passage) {
        self.siblings().push(passage);
    }

    fn line(&mut self, at: usize, pattern: Pattern) {
        match self.siblings().last_mut() {
            Some(Passage { end, kind: PassageKind::Lines(patterns), .. }) if *end + 1 == at => {
                patterns.push(pattern);
                *end = at;
            }
            _ => self.add(Passage { line: at, end: at, kind: PassageKind::Lines(vec![pattern]) }),
        }
    }

    /// Whether a directive may stand here: blocks that are matched as a whole hold lines, and those
    /// that are not an `xfail` conditions. If not, that is an error.
    fn may_stand(&mut self, at: usize, name: &str) -> bool {
        let holder = self.open.iter().rev().find(|open| !matches!(open.kind, OpenKind::If { .. }));
        let Some(Open { kind, .. }) = holder else { return true };
        if name == "if" && kind.holds_conditions() {
            return true;
        }
        let block = kind.name();
        let help = match kind {
            OpenKind::Xfail { .. } if name == "if" => {
                "both parts of an `xfail` are plain lines: put a whole `xfail` into each part of an `if`"
            }
            OpenKind::Xfail { .. } => "both parts of an `xfail` are plain lines: write them out",
            _ => "move it out of the block",
        };
        self.whole_line(at, &format!("`{name}` inside `{block}`"), Some(help));
        false
    }

    fn directive(&mut self, at: usize, directive: Directive) {
        match directive {
            Directive::If(condition) => self.open(at, OpenKind::If { condition, then: None }),
            Directive::Repeat(counts) => self.open(at, OpenKind::Repeat(counts)),
            Directive::Unordered(by) => self.open(at, OpenKind::Unordered(by)),
            Directive::Xfail { reason, condition } => {
                self.open(at, OpenKind::Xfail { reason, condition, right: None });
            }
            Directive::Any(counts) => {
                if !self.may_stand(at, "any") {
                    return;
                }
                if let Some(PassageKind::Any(_)) = self.siblings().last().map(|passage| &passage.kind) {
                    let message = "two `any` in a row: ambiguous, nothing marks where the first one ends";
                    return self.whole_line(at, message, Some("write one `any` with the sum of both"));
                }
                self.count(at, counts, 1);
                self.add(Passage { line: at, end: at, kind: PassageKind::Any(counts) });
            }
            Directive::Absent(expression) => {
                if self.may_stand(at, "absent") {
                    self.add(Passage { line: at, end: at, kind: PassageKind::Absent(expression) });
                }
            }
            // One that may not stand here has been reported.
            Directive::Optional(_) => {}
            Directive::Else => match self.open.last_mut() {
                Some(Open { kind: OpenKind::If { then: then @ None, .. }, passages, .. }) => {
                    *then = Some(std::mem::take(passages));
                }
                Some(Open { kind: OpenKind::Xfail { .. }, .. }) => {
                    self.whole_line(at, "`else` without `if`", Some("did you mean `actual`?"));
                }
                _ => self.whole_line(at, "`else` without `if`", None),
            },
            Directive::Actual => match self.open.last_mut() {
                Some(Open { kind: OpenKind::Xfail { right: right @ None, .. }, passages, .. }) => {
                    *right = Some(std::mem::take(passages));
                }
                Some(Open { kind: OpenKind::If { .. }, .. }) => {
                    self.whole_line(at, "`actual` without `xfail`", Some("did you mean `else`?"));
                }
                _ => self.whole_line(at, "`actual` without `xfail`", None),
            },
            Directive::End => self.close(at),
        }
    }

    fn open(&mut self, at: usize, kind: OpenKind) {
        self.may_stand(at, kind.name());
        if self.open.len() == DEPTH_MAX {
            let message = format!("blocks are nested deeper than {DEPTH_MAX}");
            return self.whole_line(at, &message, None);
        }
        self.open.push(Open { line: at, kind, passages: Vec::new() });
    }

    fn close(&mut self, end: usize) {
        let Some(Open { line, kind, passages }) = self.open.pop() else {
            return self.whole_line(end, "`end` without a block", None);
        };
        if passages.is_empty() && matches!(kind, OpenKind::Repeat(_) | OpenKind::Unordered(_)) {
            self.whole_line(line, &format!("this `{}` holds no line", kind.name()), None);
        }
        let kind = match kind {
            OpenKind::If { condition, then: Some(then) } => {
                PassageKind::If { condition, then, otherwise: Some(passages) }
            }
            OpenKind::If { condition, then: None } => {
                PassageKind::If { condition, then: passages, otherwise: None }
            }
            OpenKind::Repeat(counts) => {
                self.count(line, counts, end - line - 1);
                PassageKind::Repeat { counts, block: passages }
            }
            OpenKind::Unordered(by) => PassageKind::Unordered { by, block: passages },
            OpenKind::Xfail { reason, condition, right: Some(right) } => {
                let (right, actual) = (patterns(right), patterns(passages));
                let xfail = Xfail { reason, condition, right, actual };
                self.check_parts(line, &xfail);
                PassageKind::Xfail(xfail)
            }
            OpenKind::Xfail { .. } => {
                let help = "write `#@ actual`, and below it the lines that a kernel with the bug prints";
                return self.whole_line(line, "this `xfail` has no `actual`", Some(help));
            }
        };
        self.add(Passage { line, end, kind });
    }

    /// The parts of an `xfail` must differ, and the actual one must say what the bug prints.
    fn check_parts(&mut self, line: usize, xfail: &Xfail) {
        if xfail.right.is_empty() && xfail.actual.is_empty() {
            self.whole_line(line, "this `xfail` has neither right nor actual lines", None);
        } else if xfail.right == xfail.actual {
            self.whole_line(line, "both parts of this `xfail` are the same", Some("remove it"));
        }
        for (at, pattern) in xfail.actual_rows(line) {
            let literal =
                |segment: Segment<'_>| matches!(segment, Segment::Literal(text) if !text.trim().is_empty());
            if pattern.as_literal().is_none() && !pattern.segments().any(literal) {
                let help = "write the text that a kernel with the bug prints";
                self.whole_line(at, "a line below `actual` that is nothing but holes", Some(help));
            }
        }
    }

    /// Add the lines that a count comes to.
    fn count(&mut self, at: usize, counts: Counts, lines: usize) {
        let before = self.counted;
        self.counted = before.saturating_add(counts.most.unwrap_or(counts.least).saturating_mul(lines));
        if before <= COUNTED_MAX && self.counted > COUNTED_MAX {
            let message = format!("the counts of this golden come to more than {COUNTED_MAX} lines");
            self.whole_line(at, &message, Some("write `#@ any` or `#@ repeat 1..`"));
        }
    }

    fn pattern(&mut self, at: usize, text: &str) -> Option<Pattern> {
        let pattern = match Pattern::parse_with(text, &mut self.builder) {
            Ok(pattern) => pattern,
            Err(error) => {
                self.error(at, error.span, &error.message, error.help.as_deref());
                return None;
            }
        };
        for hole in pattern.holes() {
            let Some((namespace, name)) = hole.binds().or(hole.uses()) else { continue };
            let (known, line) = *self.names.entry(name.to_owned()).or_insert((namespace, at));
            if known != namespace {
                let shown = hole.to_string();
                let start = text.find(&shown).unwrap_or(0);
                let message =
                    format!("{name} is the name of a {known} in line {line}, and of a {namespace} here");
                let end = (start + shown.len()).min(text.len());
                self.error(at, start..end, &message, Some("use two names"));
            }
        }
        Some(pattern)
    }
}

/// The lines of a part of an `xfail`; what else it holds has been reported.
fn patterns(passages: Vec<Passage>) -> Vec<Pattern> {
    let lines = |passage: Passage| {
        if let PassageKind::Lines(patterns) = passage.kind { patterns } else { Vec::new() }
    };
    passages.into_iter().flat_map(lines).collect()
}

fn not_utf8(file: &Utf8Path, bytes: &[u8], valid: usize) -> Diagnostic {
    let before = String::from_utf8_lossy(&bytes[..valid]).into_owned();
    let line = before.split('\n').count();
    let rest = before.rsplit('\n').next().unwrap_or_default();
    Diagnostic {
        file: file.to_owned(),
        span: Span { line, column: rest.chars().count() + 1, width: 1 },
        message: format!("a golden is UTF-8 text, and the byte {:#04x} here is not", bytes[valid]),
        help: None,
        source_line: format!("{rest}\u{fffd}"),
    }
}
