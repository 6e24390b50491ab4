//! A golden file.

use camino::{Utf8Path, Utf8PathBuf};

use super::pattern::Pattern;
use crate::diagnostic::{Diagnostic, Span, did_you_mean};

/// The first line of every golden.
pub const HEAD: &str = "#@ golden v1";

const DIRECTIVE: &str = "#@ ";
const DIRECTIVES: [&str; 2] = ["repeat", "end"];

/// A golden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Golden {
    /// The file, as it is shown.
    pub file: Utf8PathBuf,
    /// What is expected, in order.
    pub items: Vec<Item>,
    /// The golden's own lines, for showing.
    pub lines: Vec<String>,
}

/// One expected line, or one line that comes again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its line in the golden, from 1.
    pub line: usize,
    /// What the line must be.
    pub pattern: Pattern,
    /// How often at least; `None` for exactly once.
    pub repeat: Option<usize>,
}

impl Golden {
    /// Read a golden. `file` is the name to show.
    ///
    /// # Errors
    /// Every fault of the text, each with its place.
    pub fn parse(file: &Utf8Path, bytes: &[u8]) -> Result<Golden, Vec<Diagnostic>> {
        let text =
            std::str::from_utf8(bytes).map_err(|error| vec![not_utf8(file, bytes, error.valid_up_to())])?;
        let mut parser = Parser { file, items: Vec::new(), faults: Vec::new(), open: None };
        let mut lines = text.split('\n').collect::<Vec<_>>();
        if lines.pop() != Some("") {
            let line = lines.len() + 1;
            parser.faults.push(no_final_newline(file, text, line));
        }
        if lines.first() != Some(&HEAD) {
            let found = lines.first().copied().unwrap_or_default();
            let message =
                if text.is_empty() { "the golden is empty" } else { "a golden begins with another line" };
            let help = format!(
                "the first line is `{HEAD}`; a golden of that line alone says that nothing is expected"
            );
            parser.fault(1, 0..found.len(), found, message, Some(help));
        }
        for (at, line) in lines.iter().enumerate().skip(1) {
            parser.line(at + 1, line);
        }
        if let Some(open) = parser.open.take() {
            let text = lines[open.line - 1];
            parser.fault(
                open.line,
                0..text.len(),
                text,
                "this `repeat` has no `end`",
                Some("add `#@ end`".to_owned()),
            );
        }
        if parser.faults.is_empty() {
            let lines = lines.into_iter().map(str::to_owned).collect();
            Ok(Golden { file: file.to_owned(), items: parser.items, lines })
        } else {
            Err(parser.faults)
        }
    }
}

struct Open {
    line: usize,
    least: usize,
    body: Vec<Item>,
}

struct Parser<'a> {
    file: &'a Utf8Path,
    items: Vec<Item>,
    faults: Vec<Diagnostic>,
    open: Option<Open>,
}

impl Parser<'_> {
    fn fault(
        &mut self,
        line: usize,
        bytes: std::ops::Range<usize>,
        text: &str,
        message: &str,
        help: Option<String>,
    ) {
        let column = text[..bytes.start].chars().count() + 1;
        let width = text[bytes].chars().count().max(1);
        self.faults.push(Diagnostic {
            file: self.file.to_owned(),
            span: Span { line, column, width },
            message: message.to_owned(),
            help,
            source_line: text.to_owned(),
        });
    }

    fn line(&mut self, at: usize, text: &str) {
        if let Some(directive) = text.strip_prefix(DIRECTIVE) {
            return self.directive(at, text, directive);
        }
        match Pattern::parse(text) {
            Ok(pattern) => {
                let item = Item { line: at, pattern, repeat: None };
                match &mut self.open {
                    Some(open) => open.body.push(item),
                    None => self.items.push(item),
                }
            }
            Err(fault) => {
                self.fault(at, fault.at..fault.at + fault.length, text, &fault.message, fault.help);
            }
        }
    }

    fn directive(&mut self, at: usize, text: &str, directive: &str) {
        let all = 0..text.len();
        let mut words = directive.split(' ');
        match (words.next().unwrap_or_default(), words.next(), words.next()) {
            ("repeat", Some(count), None) => match count.strip_suffix("..").and_then(|n| n.parse().ok()) {
                Some(least) if self.open.is_none() && least <= 1000 => {
                    self.open = Some(Open { line: at, least, body: Vec::new() });
                }
                Some(_) => {
                    self.fault(at, all, text, "a `repeat` inside another, or of more than 1000 lines", None)
                }
                None => {
                    let help = Some("write `#@ repeat 1..`".to_owned());
                    self.fault(at, all, text, "this `repeat` has no least count", help);
                }
            },
            ("end", None, None) => match self.open.take() {
                Some(Open { least, mut body, .. }) if body.len() == 1 => {
                    let mut item = body.remove(0);
                    item.repeat = Some(least);
                    self.items.push(item);
                }
                Some(_) => self.fault(at, all, text, "a `repeat` holds exactly one line", None),
                None => self.fault(at, all, text, "this `end` closes nothing", None),
            },
            (word, ..) => {
                let help = did_you_mean(word, DIRECTIVES)
                    .filter(|_| !DIRECTIVES.contains(&word))
                    .unwrap_or_else(|| "the directives are `#@ repeat N..` and `#@ end`".to_owned());
                self.fault(at, all, text, &format!("unknown directive `{directive}`"), Some(help));
            }
        }
    }
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

fn no_final_newline(file: &Utf8Path, text: &str, line: usize) -> Diagnostic {
    let last = text.rsplit('\n').next().unwrap_or_default();
    Diagnostic {
        file: file.to_owned(),
        span: Span { line, column: last.chars().count() + 1, width: 1 },
        message: "the last line has no end".to_owned(),
        help: Some("end the file with a newline".to_owned()),
        source_line: last.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &[u8]) -> Vec<String> {
        let faults = Golden::parse(Utf8Path::new("g.golden"), text).expect_err("faulty");
        faults.iter().map(|f| format!("{}:{} {}", f.span.line, f.span.column, f.message)).collect()
    }

    #[test]
    fn lines_and_a_repeat() {
        let text = "#@ golden v1\nfirst\n#@ repeat 1..\n{ pid: {{n}} }\n#@ end\n\n";
        let golden = Golden::parse(Utf8Path::new("g"), text.as_bytes()).expect("valid");
        let shape: Vec<_> = golden.items.iter().map(|i| (i.line, i.repeat)).collect();
        assert_eq!(shape, [(2, None), (4, Some(1)), (6, None)]);
    }

    #[test]
    fn every_fault_is_told_with_its_place() {
        let text = b"#@ golden v1\nx {{ptr\n{{foo}}\n#@ repaet 1..\n#@ end\n#@ repeat 1..\na\nb\n#@ end\n#@ repeat 2..\n";
        assert_eq!(
            faults(text),
            [
                "2:3 this `{{` is not closed",
                "3:1 unknown hole `{{foo}}`",
                "4:1 unknown directive `repaet 1..`",
                "5:1 this `end` closes nothing",
                "9:1 a `repeat` holds exactly one line",
                "10:1 this `repeat` has no `end`",
            ]
        );
    }

    #[test]
    fn an_empty_file_is_no_golden() {
        assert_eq!(faults(b""), ["1:1 the golden is empty"]);
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
        assert!(golden.items.is_empty());
    }
}
