//! Reading a golden: its header, lines and directives.

use std::collections::BTreeMap;
use std::ops::Range;

use camino::Utf8Path;
use regex::bytes::Regex;

use super::condition::Condition;
use super::header::Header;
use super::hole::Namespace;
use super::pattern::{Pattern, PatternBuilder};
use super::text::Text;
use super::tree::{Expression, Golden, Node, NodeKind};
use diagnostic::{Diagnostic, Span, did_you_mean};

const DIRECTIVE: &str = "#@ ";
const DIRECTIVES: [&str; 8] = ["if", "else", "end", "any", "unordered", "repeat", "absent", "optional"];
const REPEAT_MAX: usize = 1000;
const DEPTH_MAX: usize = 20;

impl Golden {
    /// Read a golden. `file` is the name to show.
    ///
    /// # Errors
    /// Every fault of the text, each with its place.
    pub fn parse(file: &Utf8Path, bytes: impl Into<Vec<u8>>) -> Result<Golden, Vec<Diagnostic>> {
        let text = String::from_utf8(bytes.into())
            .map_err(|error| vec![not_utf8(file, error.as_bytes(), error.utf8_error().valid_up_to())])?;
        let text = Text::new(text);
        let mut parser = Parser {
            file,
            text: &text,
            faults: Vec::new(),
            names: BTreeMap::new(),
            builder: PatternBuilder::default(),
        };
        let header = parser.header();
        if let Some(last) = text.unterminated_line() {
            let at = text.count();
            let help = Some("end the file with a newline");
            parser.fault(at, last.len()..last.len(), "the last line has no end", help);
        }
        let nodes = parser.nodes();
        match header {
            Some(header) if parser.faults.is_empty() => {
                Ok(Golden { file: file.to_owned(), header, nodes, text })
            }
            _ => {
                parser.faults.sort_by_key(|fault| fault.span);
                Err(parser.faults)
            }
        }
    }
}

/// A block that waits for its `#@ end`.
struct Open {
    line: usize,
    kind: OpenKind,
    nodes: Vec<Node>,
}

enum OpenKind {
    If { condition: Condition, then: Option<Vec<Node>> },
    Repeat { least: usize },
    Unordered { by: Option<Expression> },
}

impl OpenKind {
    fn name(&self) -> &'static str {
        match self {
            OpenKind::If { .. } => "if",
            OpenKind::Repeat { .. } => "repeat",
            OpenKind::Unordered { .. } => "unordered",
        }
    }
}

struct Parser<'a> {
    file: &'a Utf8Path,
    text: &'a Text,
    faults: Vec<Diagnostic>,
    /// The kind of each name, and where it was seen first.
    names: BTreeMap<String, (Namespace, usize)>,
    builder: PatternBuilder,
}

/// What the parse of a directive leaves to be done.
enum Step {
    Line(Pattern),
    Node(NodeKind),
    Open(OpenKind),
    Else,
    End,
    Optional(String),
}

impl Parser<'_> {
    fn fault(&mut self, line: usize, bytes: Range<usize>, message: &str, help: Option<&str>) {
        let text = self.text.line(line);
        let column = text[..bytes.start].chars().count() + 1;
        let width = text[bytes].chars().count().max(1);
        self.faults.push(Diagnostic {
            file: self.file.to_owned(),
            span: Span { line, column, width },
            message: message.to_owned(),
            help: help.map(str::to_owned),
            source_line: text.to_owned(),
        });
    }

    fn whole_line(&mut self, line: usize, message: &str, help: Option<&str>) {
        let length = self.text.line(line).len();
        self.fault(line, 0..length, message, help);
    }

    fn header(&mut self) -> Option<Header> {
        match Header::parse(self.text.line(1)) {
            Ok(header) => Some(header),
            Err(_) if self.text.count() == 0 => {
                self.fault(1, 0..0, "the golden is empty", Some(&Header::help()));
                None
            }
            Err(error) => {
                self.fault(1, error.span, &error.message, error.help.as_deref());
                None
            }
        }
    }

    fn nodes(&mut self) -> Vec<Node> {
        let mut open: Vec<Open> = Vec::new();
        let mut top: Vec<Node> = Vec::new();
        let mut optional: Option<(usize, String)> = None;
        for (at, text) in self.text.numbered().skip(1) {
            let step = match text.strip_prefix(DIRECTIVE) {
                None => {
                    let Some(pattern) = self.pattern(at, text) else { continue };
                    match optional.take() {
                        Some((line, reason)) => {
                            let kind = NodeKind::Optional { reason, pattern };
                            open.last_mut().map_or(&mut top, |open| &mut open.nodes).push(Node {
                                line,
                                end: at,
                                kind,
                            });
                            continue;
                        }
                        None => Step::Line(pattern),
                    }
                }
                Some(directive) => {
                    if let Some((line, _)) = optional.take() {
                        self.whole_line(
                            line,
                            "`optional` belongs to the line below it, which is a directive",
                            None,
                        );
                    }
                    match self.directive(at, text, directive) {
                        Some(step) => step,
                        None => continue,
                    }
                }
            };
            self.take(at, step, &mut open, &mut top, &mut optional);
        }
        if let Some((line, _)) = optional {
            self.whole_line(line, "`optional` belongs to the line below it, and there is none", None);
        }
        for open in open {
            let message = format!("this `{}` has no `end`", open.kind.name());
            self.whole_line(open.line, &message, Some("add `#@ end`"));
        }
        top
    }

    fn take(
        &mut self,
        at: usize,
        step: Step,
        open: &mut Vec<Open>,
        top: &mut Vec<Node>,
        optional: &mut Option<(usize, String)>,
    ) {
        // Blocks that are matched as a whole hold lines only.
        let block = open.iter().rev().find(|o| !matches!(o.kind, OpenKind::If { .. })).map(|o| o.kind.name());
        match step {
            Step::Line(pattern) => {
                let nodes = open.last_mut().map_or(top, |open| &mut open.nodes);
                match nodes.last_mut() {
                    Some(Node { end, kind: NodeKind::Lines(patterns), .. }) if *end + 1 == at => {
                        patterns.push(pattern);
                        *end = at;
                    }
                    _ => nodes.push(Node { line: at, end: at, kind: NodeKind::Lines(vec![pattern]) }),
                }
            }
            Step::Node(kind) => {
                if let Some(block) = block {
                    let message = format!("a `{block}` holds lines only");
                    return self.whole_line(at, &message, None);
                }
                let nodes = open.last_mut().map_or(top, |open| &mut open.nodes);
                let any = |node: Option<&Node>| matches!(node.map(|n| &n.kind), Some(NodeKind::Any { .. }));
                if matches!(kind, NodeKind::Any { .. }) && any(nodes.last()) {
                    let help = Some("write one `any` with the sum of both");
                    return self.whole_line(at, "two `any` in a row: where the first ends is not told", help);
                }
                nodes.push(Node { line: at, end: at, kind });
            }
            Step::Optional(reason) => match block {
                Some(block) => {
                    let message = format!("a `{block}` holds lines only");
                    self.whole_line(at, &message, None);
                }
                None => *optional = Some((at, reason)),
            },
            Step::Open(kind) => {
                if let (Some(block), false) = (block, matches!(kind, OpenKind::If { .. })) {
                    let message = format!("a `{}` inside a `{block}`", kind.name());
                    self.whole_line(at, &message, None);
                }
                if open.len() == DEPTH_MAX {
                    return self.whole_line(at, "directives are nested too deep", None);
                }
                open.push(Open { line: at, kind, nodes: Vec::new() });
            }
            Step::Else => match open.last_mut() {
                Some(Open { kind: OpenKind::If { then: then @ None, .. }, nodes, .. }) => {
                    *then = Some(std::mem::take(nodes));
                }
                _ => self.whole_line(at, "this `else` belongs to no `if`", None),
            },
            Step::End => match open.pop() {
                Some(closed) => {
                    if closed.nodes.is_empty() && !matches!(closed.kind, OpenKind::If { .. }) {
                        let message = format!("this `{}` holds no line", closed.kind.name());
                        self.whole_line(closed.line, &message, None);
                    }
                    let node = closed.into_node(at);
                    open.last_mut().map_or(top, |open| &mut open.nodes).push(node);
                }
                None => self.whole_line(at, "this `end` closes nothing", None),
            },
        }
    }

    fn pattern(&mut self, at: usize, text: &str) -> Option<Pattern> {
        let pattern = match Pattern::parse_with(text, &mut self.builder) {
            Ok(pattern) => pattern,
            Err(error) => {
                self.fault(at, error.span, &error.message, error.help.as_deref());
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
                self.fault(at, start..end, &message, Some("use two names"));
            }
        }
        Some(pattern)
    }

    fn directive(&mut self, at: usize, text: &str, directive: &str) -> Option<Step> {
        let (word, rest) = directive.split_once(' ').unwrap_or((directive, ""));
        let rest_at = text.len() - rest.len();
        let parsed = match (word, rest) {
            ("if", condition) => match Condition::parse(condition) {
                Ok(condition) => Ok(Step::Open(OpenKind::If { condition, then: None })),
                Err(error) => {
                    let error = error.shifted(rest_at);
                    let end = error.span.end.min(text.len());
                    self.fault(at, error.span.start..end, &error.message, error.help.as_deref());
                    // The block is opened all the same: its `end` is not at fault.
                    Ok(Step::Open(OpenKind::If { condition: Condition::Any(Vec::new()), then: None }))
                }
            },
            ("else", "") => Ok(Step::Else),
            ("end", "") => Ok(Step::End),
            ("any", "") => Ok(Step::Node(NodeKind::Any { least: 0, most: None })),
            ("any", range) => any_range(range)
                .map(|(least, most)| Step::Node(NodeKind::Any { least, most }))
                .ok_or("write `#@ any`, `#@ any 2..` or `#@ any 2..5`".to_owned()),
            ("repeat", count) => count
                .strip_suffix("..")
                .and_then(count_of)
                .filter(|least| *least <= REPEAT_MAX)
                .map(|least| Step::Open(OpenKind::Repeat { least }))
                .ok_or(format!("write `#@ repeat 1..`, with at most {REPEAT_MAX}")),
            ("unordered", "") => Ok(Step::Open(OpenKind::Unordered { by: None })),
            ("unordered", by) => match by.strip_prefix("by ") {
                Some(by) => expression(by).map(|by| Step::Open(OpenKind::Unordered { by: Some(by) })),
                None => Err("write `#@ unordered` or `#@ unordered by /re/`".to_owned()),
            },
            ("absent", source) => expression(source).map(|e| Step::Node(NodeKind::Absent(e))),
            ("optional", reason) => reason
                .strip_prefix('"')
                .and_then(|r| r.strip_suffix('"'))
                .filter(|r| !r.trim().is_empty() && !r.contains('"'))
                .map(|r| Step::Optional(r.to_owned()))
                .ok_or("write `#@ optional \"why the line may be missing\"`".to_owned()),
            (word, _) => {
                let known = DIRECTIVES.contains(&word);
                let message = if known {
                    format!("`{word}` takes nothing")
                } else {
                    format!("unknown directive `{word}`")
                };
                let help = did_you_mean(word, DIRECTIVES)
                    .filter(|_| !known)
                    .unwrap_or_else(|| format!("the directives are {}", DIRECTIVES.join(", ")));
                self.whole_line(at, &message, Some(&help));
                return None;
            }
        };
        parsed.map_err(|help| self.whole_line(at, &format!("this `{word}` cannot be read"), Some(&help))).ok()
    }
}

impl Open {
    fn into_node(self, end: usize) -> Node {
        let Open { line, kind, nodes } = self;
        let kind = match kind {
            OpenKind::If { condition, then: Some(then) } => {
                NodeKind::If { condition, then, otherwise: Some(nodes) }
            }
            OpenKind::If { condition, then: None } => {
                NodeKind::If { condition, then: nodes, otherwise: None }
            }
            OpenKind::Repeat { least } => NodeKind::Repeat { least, block: nodes },
            OpenKind::Unordered { by } => NodeKind::Unordered { by, block: nodes },
        };
        Node { line, end, kind }
    }
}

fn count_of(text: &str) -> Option<usize> {
    text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()))
}

fn any_range(text: &str) -> Option<(usize, Option<usize>)> {
    let (least, most) = text.split_once("..")?;
    let least = count_of(least)?;
    if most.is_empty() {
        return Some((least, None));
    }
    let most = count_of(most)?;
    (least <= most && most > 0).then_some((least, Some(most)))
}

/// `/re/`
fn expression(text: &str) -> Result<Expression, String> {
    let help = "write a regular expression between slashes: /re/".to_owned();
    let source =
        text.strip_prefix('/').and_then(|t| t.strip_suffix('/')).filter(|s| !s.is_empty()).ok_or(help)?;
    let regex = Regex::new(source).map_err(|e| {
        let text = e.to_string();
        format!("`{source}` is not a regular expression: {}", text.lines().last().unwrap_or_default().trim())
    })?;
    Ok(Expression { source: source.to_owned(), regex })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &[u8]) -> Vec<String> {
        let faults = Golden::parse(Utf8Path::new("g.golden"), text).expect_err("faulty");
        faults.iter().map(|f| format!("{}:{} {}", f.span.line, f.span.column, f.message)).collect()
    }

    fn body_faults(body: &str) -> Vec<String> {
        faults(format!("#@ golden v1\n{body}").as_bytes())
    }

    #[test]
    fn every_fault_is_told_with_its_place() {
        let body = "x {{ptr\n{{foo}}\n#@ repaet 1..\n#@ end\n#@ if arch == x86\n#@ repeat 2..\n";
        assert_eq!(
            body_faults(body),
            [
                "2:3 unclosed `{{`",
                "3:1 unknown hole `{{foo}}`",
                "4:1 unknown directive `repaet`",
                "5:1 this `end` closes nothing",
                "6:1 this `if` has no `end`",
                "6:15 unknown `x86`",
                "7:1 this `repeat` has no `end`",
            ]
        );
    }

    #[test]
    fn a_fault_covers_whole_characters() {
        assert_eq!(body_faults("#@ if arch == x86_64 && \u{7dc}\n#@ end\n"), ["2:25 unknown condition ``"]);
    }

    #[test]
    fn blocks_must_make_sense() {
        assert_eq!(
            body_faults("#@ any\n#@ any 1..\n"),
            ["3:1 two `any` in a row: where the first ends is not told"]
        );
        assert_eq!(body_faults("#@ else\n"), ["2:1 this `else` belongs to no `if`"]);
        assert_eq!(
            body_faults("#@ if config.A\n#@ else\n#@ else\n#@ end\n"),
            ["4:1 this `else` belongs to no `if`"]
        );
        assert_eq!(body_faults("#@ repeat 1..\n#@ any\na\n#@ end\n"), ["3:1 a `repeat` holds lines only"]);
        assert_eq!(body_faults("#@ repeat 1..\n#@ end\n"), ["2:1 this `repeat` holds no line"]);
        assert_eq!(
            body_faults("#@ unordered\n#@ repeat 1..\na\n#@ end\n#@ end\n"),
            ["3:1 a `repeat` inside a `unordered`"]
        );
        assert_eq!(
            body_faults("#@ optional \"x\"\n#@ any\n"),
            ["2:1 `optional` belongs to the line below it, which is a directive",]
        );
        assert_eq!(body_faults("#@ optional\na\n"), ["2:1 this `optional` cannot be read"]);
        assert_eq!(body_faults("#@ any 3..2\n"), ["2:1 this `any` cannot be read"]);
        assert_eq!(body_faults("#@ absent x\n"), ["2:1 this `absent` cannot be read"]);
        assert_eq!(body_faults("#@ absent /(/\n"), ["2:1 this `absent` cannot be read"]);
        assert_eq!(body_faults("#@ end now\n"), ["2:1 `end` takes nothing"]);
    }

    #[test]
    fn a_name_has_one_kind() {
        assert_eq!(
            body_faults("{{ptr:A}}\nx {{n:A}}\n"),
            ["3:3 A is the name of a ptr in line 2, and of a n here"]
        );
        assert_eq!(
            body_faults("{{ptr:A}} {{n==A}}\n"),
            ["2:11 A is the name of a ptr in line 2, and of a n here"]
        );
    }

    #[test]
    fn an_empty_file_is_no_golden() {
        assert_eq!(faults(b""), ["1:1 the golden is empty"]);
        assert_eq!(faults(b"#@ golden v1"), ["1:13 the last line has no end"]);
        assert_eq!(
            faults(b"#@ golden v1 cas=x"),
            ["1:14 unknown key `cas`", "1:19 the last line has no end"]
        );
    }

    #[test]
    fn text_that_is_not_utf8_is_placed() {
        assert_eq!(
            faults(b"#@ golden v1\nab\xff\n"),
            ["2:3 a golden is UTF-8 text, and the byte 0xff here is not"]
        );
    }

    #[test]
    fn the_head_alone_expects_nothing() {
        let golden = Golden::parse(Utf8Path::new("g"), b"#@ golden v1\n").expect("valid");
        assert!(golden.nodes.is_empty());
    }
}
