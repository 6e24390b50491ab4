//! What a step captures, and its golden.

use super::CaseReader;
use crate::case::model::{Action, Capture, CapturePart};
use formats::Format;
use golden::{Golden, HEADER};
use yaml::{Fields, Node, Reader};

impl CaseReader<'_> {
    /// The outer option is for errors, the inner one for a step without capture.
    #[expect(clippy::option_option, reason = "the two absences differ")]
    pub(super) fn capture(
        &mut self,
        r: &mut Reader,
        f: &Fields<'_>,
        action: Option<&Action>,
    ) -> Option<Option<Capture>> {
        let format = f.optional(r, "format", |r, node| r.choice(node, "format", Format::BY_NAME));
        let Some(node) = f.get("capture") else {
            for key in ["format", "part", "defined_by"] {
                if let Some(node) = f.get(key) {
                    r.report(node.key_error(format!("`{key}` without `capture` has no effect")));
                }
            }
            if action.is_some_and(|action| !matches!(action, Action::Run { .. })) {
                let error = f.node().error("what this step reads is not captured");
                r.report(error.with_help("add `capture: NAME`"));
            }
            return Some(None);
        };
        let name = r.line(&node)?;
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) || name.starts_with('.') {
            let error = node.error(format!("`{name}` cannot be a file's name"));
            r.report(error.with_help("use letters, digits, `.`, `_` and `-`, and begin without `.`"));
            return None;
        }
        if !self.captures.insert(name.clone()) {
            r.report(node.error(format!("an earlier step captures `{name}` already")));
            return None;
        }
        let golden = self.golden(r, &node, &name);
        let format = format?.unwrap_or_else(|| match action {
            Some(Action::Read { path }) => Format::of_file(path),
            Some(Action::Decode { arguments, .. }) => decoded_format(arguments),
            _ => Format::Plain,
        });
        let part = f.optional(r, "part", |r, node| part(r, node, format));
        let defined_by = f.optional(r, "defined_by", |r, node| defined_by(r, node, format));
        Some(Some(Capture {
            name,
            format,
            part: part?.unwrap_or(CapturePart::All),
            defined_by: defined_by?,
            golden: golden?,
        }))
    }

    fn golden(&mut self, r: &mut Reader, node: &Node<'_>, name: &str) -> Option<Golden> {
        let (file, bytes) = (self.read_golden)(name);
        let bytes = match bytes {
            Ok(bytes) => bytes,
            Err(error) => {
                let error = node.error(format!("failed to read the golden `{file}`: {error}"));
                r.report(error.with_help(format!(
                    "`goldtrace run --bless` writes it from the capture; a golden with the one line `{HEADER}` \
                     expects an empty capture"
                )));
                return None;
            }
        };
        Golden::parse(&file, bytes).map_err(|errors| self.golden_errors.extend(errors)).ok()
    }
}

fn part(r: &mut Reader, node: &Node<'_>, format: Format) -> Option<CapturePart> {
    let part = r.choice(node, "part", &CapturePart::ALL)?;
    if part != CapturePart::All && format != Format::PerfDump {
        let error = node.error("only perf's dump has AUXTRACE records");
        r.report(error.with_help("capture what `decode: report -D` prints (format: perf_dump)"));
        return None;
    }
    Some(part)
}

fn defined_by(r: &mut Reader, node: &Node<'_>, format: Format) -> Option<String> {
    let module = r.line(node)?;
    if format != Format::EventFormat {
        let error = node.key_error("`defined_by` needs a capture of `format` files");
        r.report(error.with_help("capture `format` files of events, and add `format: event_format`"));
    }
    Some(module)
}

/// The format of what perf prints.
fn decoded_format(arguments: &[String]) -> Format {
    let dump = |word: &String| matches!(word.as_str(), "-D" | "--dump-raw-trace");
    match arguments.first().map(String::as_str) {
        Some("script" | "report") if arguments.iter().any(dump) => Format::PerfDump,
        Some("script") => Format::PerfScript,
        _ => Format::Plain,
    }
}
