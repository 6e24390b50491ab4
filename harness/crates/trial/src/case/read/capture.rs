//! What a step captures, and its golden.

use super::Context;
use crate::case::find::GOLDEN_EXTENSION;
use crate::case::model::{Action, Capture, CapturePart};
use diagnostic::did_you_mean;
use formats::Format;
use golden::{Golden, HEADER};
use yaml::{Fields, Node};

impl Context<'_> {
    /// The outer option is for faults, the inner one for a step without capture.
    #[expect(clippy::option_option, reason = "the two absences differ")]
    pub(super) fn capture(&mut self, f: &Fields<'_>, action: Option<&Action>) -> Option<Option<Capture>> {
        let format = match f.get("format") {
            Some(node) => Some(self.format(&node)?),
            None => None,
        };
        let Some(node) = f.get("capture") else {
            for key in ["format", "part", "defined_by"] {
                if let Some(node) = f.get(key) {
                    self.reader.report(node.key_error(format!("`{key}` without `capture` has no effect")));
                }
            }
            if action.is_some_and(|action| !matches!(action, Action::Run { .. })) {
                let fault = f.node().error("something is read and not captured");
                self.reader.report(fault.with_help("add `capture: NAME`"));
            }
            return Some(None);
        };
        let name = self.reader.line(&node)?;
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) || name.starts_with('.') {
            let fault = node.error(format!("`{name}` cannot name a file"));
            self.reader.report(fault.with_help("use letters, digits, `.`, `_` and `-`"));
            return None;
        }
        if !self.captures.insert(name.clone()) {
            self.reader.report(node.error(format!("an earlier step captures `{name}` already")));
            return None;
        }
        let format = format.unwrap_or_else(|| match action {
            Some(Action::Read { path }) => Format::of_file(path),
            Some(Action::Decode { arguments, .. }) => decoded_format(arguments),
            _ => Format::Plain,
        });
        let part = match f.get("part") {
            Some(node) => self.part(&node, format)?,
            None => CapturePart::All,
        };
        let defined_by = match f.get("defined_by") {
            Some(node) => Some(self.defined_by(&node, format)?),
            None => None,
        };
        let golden = self.golden(&node, &name)?;
        Some(Some(Capture { name, format, part, defined_by, golden }))
    }

    fn defined_by(&mut self, node: &Node<'_>, format: Format) -> Option<String> {
        let module = self.reader.line(node)?;
        if format != Format::EventFormat {
            let fault = node.key_error("`defined_by` says which module's events the captured formats are");
            self.reader.report(
                fault.with_help("capture `format` files, several one after the other (format: event_format)"),
            );
        }
        Some(module)
    }

    fn part(&mut self, node: &Node<'_>, format: Format) -> Option<CapturePart> {
        let name = self.reader.line(node)?;
        let found = CapturePart::ALL.iter().find(|(known, _)| *known == name).map(|(_, part)| *part);
        if found.is_none() {
            let known = CapturePart::ALL.map(|(name, _)| name);
            let help = did_you_mean(&name, known).unwrap_or_else(|| format!("write {}", known.join(" or ")));
            self.reader.report(node.error(format!("unknown part `{name}`")).with_help(help));
        }
        if found.is_some_and(|part| part != CapturePart::All) && format != Format::PerfDump {
            let fault = node.error("only perf's dump has AUXTRACE records");
            self.reader.report(fault.with_help("it is what `decode: report -D` prints (format: perf_dump)"));
            return None;
        }
        found
    }

    fn format(&mut self, node: &Node<'_>) -> Option<Format> {
        let name = self.reader.line(node)?;
        let known = Format::ALL.map(|(name, _)| name);
        let found = Format::ALL.iter().find(|(known, _)| *known == name).map(|(_, format)| *format);
        if found.is_none() {
            let help =
                did_you_mean(&name, known).unwrap_or_else(|| format!("known formats: {}", known.join(", ")));
            self.reader.report(node.error(format!("unknown format `{name}`")).with_help(help));
        }
        found
    }

    fn golden(&mut self, node: &Node<'_>, name: &str) -> Option<Golden> {
        let (file, bytes) = (self.read_golden)(name);
        let bytes = match bytes {
            Ok(bytes) => bytes,
            Err(error) => {
                let fault = node.error(format!("the golden `{file}` cannot be read: {error}"));
                self.reader.report(fault.with_help(format!(
                    "`goldtrace run --bless` writes it from what is captured; a golden of the one line `{HEADER}` \
                     expects nothing (its name is that of the capture and `.{GOLDEN_EXTENSION}`)"
                )));
                return None;
            }
        };
        Golden::parse(&file, bytes).map_err(|faults| self.golden_faults.extend(faults)).ok()
    }
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
