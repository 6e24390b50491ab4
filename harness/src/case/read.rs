//! Case files.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::dispatch_log;
use super::excuse::{Excuse, ExpectedDeath};
use super::find::GOLDEN_EXTENSION;
use super::model::{Action, Capture, Case, CaseId, Part, Requires, Step};
use super::names;
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::golden::{Condition, Golden, HEAD};
use crate::guest::GuestName;
use crate::normalise::Format;
use crate::yaml::{Document, Fields, Node, Reader};

/// Where a case's steps start from when it does not say.
const DIRECTORY: &str = "/sys/kernel/tracing";
/// The file that `decode` reads when it does not say.
const DATA: &str = "perf.data";
/// How long a step may take when neither it nor its case says.
const LIMIT: Duration = Duration::from_secs(20);

const CASE_KEYS: [&str; 9] =
    ["title", "document", "guests", "requires", "directory", "limit", "steps", "xfail", "expect"];
const STEP_KEYS: [&str; 10] =
    ["run", "read", "decode", "data", "dispatch_log", "status", "limit", "capture", "format", "part"];

/// Gives a golden's shown name and its bytes for a capture's name.
pub(super) type ReadGolden<'r> = dyn Fn(&str) -> (Utf8PathBuf, io::Result<Vec<u8>>) + 'r;

struct Context<'c> {
    reader: Reader,
    golden_faults: Vec<Diagnostic>,
    captures: BTreeSet<String>,
    read_golden: &'c ReadGolden<'c>,
}

/// Read a case: the case when it can be made out, the names of its captures, and all faults.
pub(super) fn read_case(
    id: &CaseId,
    file: &Utf8Path,
    document: &Document,
    guests: &[GuestName],
    read_golden: &ReadGolden<'_>,
) -> (Option<Case>, BTreeSet<String>, Vec<Diagnostic>) {
    let mut context =
        Context { reader: Reader::new(), golden_faults: Vec::new(), captures: BTreeSet::new(), read_golden };
    let case = context.case(id, file, document.root(), guests);
    let mut faults = context.reader.into_faults();
    faults.extend(context.golden_faults);
    faults.extend(case.iter().flat_map(|case| names::faults(&case.steps)));
    (case, context.captures, faults)
}

impl Context<'_> {
    fn case(&mut self, id: &CaseId, file: &Utf8Path, root: Node<'_>, known: &[GuestName]) -> Option<Case> {
        let f = self.reader.fields(root, &CASE_KEYS)?;
        let title = f.need(&mut self.reader, "title").and_then(|node| self.reader.line(&node));
        let document = f.get("document").map(|node| self.reader.line(&node));
        let guests = match f.get("guests") {
            Some(node) => self.guests(&node, known),
            None => Some(known.to_vec()),
        };
        let requires = f.get("requires").map_or(Some(Requires::default()), |node| self.requires(&node));
        let directory = f.get("directory").map_or(Some(DIRECTORY.to_owned()), |node| self.reader.line(&node));
        let limit = f.get("limit").map_or(Some(LIMIT), |node| self.reader.duration(&node));
        let steps =
            f.need(&mut self.reader, "steps").and_then(|node| self.steps(&node, limit.unwrap_or(LIMIT)));
        let xfail = f.get("xfail").map_or(Some(Vec::new()), |node| self.excuses(&node, steps.as_deref()));
        let expect_death = f.get("expect").map(|node| self.expected_death(node));
        Some(Case {
            id: id.clone(),
            title: title?,
            document: document.flatten(),
            file: file.to_owned(),
            digest: String::new(),
            guests: guests?,
            requires: requires?,
            directory: directory?,
            xfail: xfail?,
            expect_death: expect_death.flatten(),
            steps: steps?,
        })
    }

    fn guests(&mut self, node: &Node<'_>, known: &[GuestName]) -> Option<Vec<GuestName>> {
        let mut guests = Vec::new();
        for item in self.reader.list(node)? {
            let Some(name) = self.reader.line(&item) else { continue };
            let guest = GuestName::new(&name);
            if !known.contains(&guest) {
                let help = did_you_mean(&name, known.iter().map(GuestName::as_str)).unwrap_or_else(|| {
                    let names: Vec<&str> = known.iter().map(GuestName::as_str).collect();
                    format!("known guests: {}", names.join(", "))
                });
                self.reader.report(item.fault(format!("unknown guest `{name}`")).with_help(help));
            } else if guests.contains(&guest) {
                self.reader.report(item.fault(format!("guest `{name}` is named twice")));
            } else {
                guests.push(guest);
            }
        }
        if guests.is_empty() {
            self.reader.report(node.fault("the case would run on no guest"));
        }
        Some(guests)
    }

    fn excuses(&mut self, node: &Node<'_>, steps: Option<&[Step]>) -> Option<Vec<Excuse>> {
        let items = self.reader.list(node)?;
        // All of them are read before any is given up, so that all faults are told.
        let excuses: Vec<Option<Excuse>> = items.into_iter().map(|item| self.excuse(item, steps)).collect();
        excuses.into_iter().collect()
    }

    fn excuse(&mut self, node: Node<'_>, steps: Option<&[Step]>) -> Option<Excuse> {
        let line = node.line();
        let f = self.reader.fields(node, &["capture", "lines", "when", "reason"])?;
        let capture =
            f.need(&mut self.reader, "capture").and_then(|node| Some((self.reader.line(&node)?, node)));
        let lines =
            f.need(&mut self.reader, "lines").and_then(|node| Some((self.line_numbers(&node)?, node)));
        let when = self.when(&f);
        let reason = f.need(&mut self.reader, "reason").and_then(|node| self.reader.line(&node));
        let ((capture, capture_node), (lines, lines_node)) = (capture?, lines?);
        let captures = || steps.unwrap_or_default().iter().filter_map(|step| step.capture.as_ref());
        let Some(found) = captures().find(|known| known.name == capture) else {
            if steps.is_some() {
                let help = did_you_mean(&capture, captures().map(|known| known.name.as_str()));
                let fault = capture_node.fault(format!("no step captures `{capture}`"));
                self.reader.report(help.map_or(fault.clone(), |help| fault.with_help(help)));
            }
            return None;
        };
        let held: BTreeSet<usize> = found.golden.patterns().iter().map(|(line, _)| *line).collect();
        if let Some(line) = lines.iter().find(|line| !held.contains(line)) {
            let message = format!("line {line} of `{}` holds no line of the capture", found.golden.file);
            self.reader.report(lines_node.fault(message));
        }
        Some(Excuse { line, capture, lines, when: when?, reason: reason? })
    }

    /// `[3, 7..9]`
    fn line_numbers(&mut self, node: &Node<'_>) -> Option<BTreeSet<usize>> {
        let mut lines = BTreeSet::new();
        for item in self.reader.list(node)? {
            let Some((from, to)) = item.range() else {
                let fault = item.fault("expected the number of a golden's line");
                self.reader.report(fault.with_help("write a number, or a range such as 7..9"));
                return None;
            };
            lines.extend(from..=to);
        }
        if lines.is_empty() {
            self.reader.report(node.fault("an excuse for no line"));
        }
        Some(lines)
    }

    /// The outer option is for faults.
    #[expect(clippy::option_option, reason = "the two absences differ")]
    fn when(&mut self, f: &Fields<'_>) -> Option<Option<Condition>> {
        let Some(node) = f.get("when") else { return Some(None) };
        let text = self.reader.line(&node)?;
        match text.parse() {
            Ok(condition) => Some(Some(condition)),
            Err(why) => {
                let fault = node.fault(format!("this condition cannot be read: {why}"));
                self.reader
                    .report(fault.with_help("write it as in a golden's `#@ if`, such as kernel >= 7.2"));
                None
            }
        }
    }

    fn expected_death(&mut self, node: Node<'_>) -> Option<ExpectedDeath> {
        let line = node.line();
        let f = self.reader.fields(node, &["death", "symbol", "when", "reason"])?;
        let kind = f.need(&mut self.reader, "death").and_then(|node| Some((self.reader.line(&node)?, node)));
        let symbol = f.get("symbol").map(|node| self.reader.line(&node));
        let when = self.when(&f);
        let reason = f.need(&mut self.reader, "reason").and_then(|node| self.reader.line(&node));
        let (kind, kind_node) = kind?;
        match (kind.as_str(), &symbol) {
            ("panic", _) | ("oops", Some(_)) => {}
            ("oops", None) => self.reader.report(kind_node.fault("an oops is told by its `symbol`")),
            _ => {
                let help = did_you_mean(&kind, ["panic", "oops"])
                    .unwrap_or_else(|| "write panic or oops".to_owned());
                self.reader.report(kind_node.fault(format!("unknown death `{kind}`")).with_help(help));
            }
        }
        Some(ExpectedDeath { line, symbol: symbol.flatten(), when: when?, reason: reason? })
    }

    fn requires(&mut self, node: &Node<'_>) -> Option<Requires> {
        let mut requires = Requires::default();
        for item in self.reader.list(node)? {
            let Some(word) = self.reader.line(&item) else { continue };
            if word.starts_with("CONFIG_") {
                requires.symbols.push(word);
            } else if word == Requires::PERF {
                requires.perf = true;
            } else if word == Requires::TCG {
                requires.tcg = true;
            } else {
                let bare = word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
                let help = if bare {
                    format!("did you mean `CONFIG_{word}`?")
                } else {
                    did_you_mean(&word, [Requires::PERF, Requires::TCG]).unwrap_or_else(|| {
                        "write a kernel config symbol as CONFIG_NAME, perf or tcg".to_owned()
                    })
                };
                self.reader.report(item.fault(format!("a case cannot require `{word}`")).with_help(help));
            }
        }
        Some(requires)
    }

    fn steps(&mut self, node: &Node<'_>, limit: Duration) -> Option<Vec<Step>> {
        let items = self.reader.list(node)?;
        let steps: Vec<Option<Step>> = items.into_iter().map(|item| self.step(item, limit)).collect();
        if self.captures.is_empty() {
            let fault = node.key_fault("the case asserts nothing: no step has a capture");
            self.reader.report(fault.with_help(
                "add a step such as `read: events/sched/sched_waking/hist_debug` with a `capture:`",
            ));
        }
        steps.into_iter().collect()
    }

    fn step(&mut self, node: Node<'_>, default_limit: Duration) -> Option<Step> {
        let line = node.line();
        let f = self.reader.fields(node, &STEP_KEYS)?;
        let action = self.action(&f);
        let limit = f.get("limit").map_or(Some(default_limit), |node| self.reader.duration(&node));
        let capture = self.capture(&f, action.as_ref());
        Some(Step { line, action: action?, limit: limit?, capture: capture? })
    }

    fn action(&mut self, f: &Fields<'_>) -> Option<Action> {
        let kinds = ["run", "read", "decode"];
        let given: Vec<(&str, Node<'_>)> =
            kinds.iter().filter_map(|kind| Some((*kind, f.get(kind)?))).collect();
        let (kind, node) = match given.as_slice() {
            [(kind, node)] => (*kind, node),
            [] => {
                self.reader.report(f.node().fault("a step needs `run`, `read` or `decode`"));
                return None;
            }
            [(first, _), (second, node), ..] => {
                let fault = node.key_fault(format!("a step is either `{first}` or `{second}`"));
                self.reader.report(fault.with_help("make two steps of it"));
                return None;
            }
        };
        for (key, of, why) in [
            ("status", "run", "a file that cannot be read, and perf that fails, are errors"),
            ("dispatch_log", "run", "the log is written while a command records"),
            ("data", "decode", "it names what is decoded"),
        ] {
            if let Some(node) = f.get(key).filter(|_| kind != of) {
                self.reader.report(node.key_fault(format!("`{key}` belongs to `{of}`: {why}")));
            }
        }
        match kind {
            "run" => self.run(node, f),
            "read" => Some(Action::Read { path: self.reader.line(node)? }),
            _ => self.decode(node, f),
        }
    }

    fn run(&mut self, node: &Node<'_>, f: &Fields<'_>) -> Option<Action> {
        let status = f.get("status").map_or(Some(0), |node| self.reader.number(&node, 0..=255));
        let log = match f.get("dispatch_log") {
            Some(node) => Some(dispatch_log::plan(&mut self.reader, &node)?),
            None => None,
        };
        let script = self.reader.text(node)?;
        if script.trim().is_empty() {
            self.reader.report(node.fault("an empty script"));
            return None;
        }
        if script.contains('\0') {
            self.reader.report(node.fault("a script cannot hold a NUL"));
            return None;
        }
        Some(Action::Run { script, status: u32::try_from(status?).unwrap_or(0), log })
    }

    fn decode(&mut self, node: &Node<'_>, f: &Fields<'_>) -> Option<Action> {
        let data = f.get("data").map_or(Some(DATA.to_owned()), |node| self.reader.line(&node));
        let line = self.reader.line(node)?;
        let Ok(arguments) = shell_words::split(&line) else {
            self.reader.report(node.fault("a quote is not closed"));
            return None;
        };
        if !matches!(arguments.first().map(String::as_str), Some("script" | "report" | "evlist")) {
            let fault = node.fault("`decode` runs perf's subcommands that read recorded data and print it");
            self.reader.report(fault.with_help("begin with script, report or evlist"));
            return None;
        }
        if let Some(word) =
            arguments.iter().find(|word| word.starts_with("-i") || word.starts_with("--input"))
        {
            let fault = node.fault(format!("`{word}`: the file is given by `data`"));
            self.reader
                .report(fault.with_help(format!("add `data: FILE` to the step; without it, {DATA} is read")));
            return None;
        }
        Some(Action::Decode { arguments, data: data? })
    }

    /// The outer option is for faults, the inner one for a step without capture.
    #[expect(clippy::option_option, reason = "the two absences differ")]
    fn capture(&mut self, f: &Fields<'_>, action: Option<&Action>) -> Option<Option<Capture>> {
        let format = match f.get("format") {
            Some(node) => Some(self.format(&node)?),
            None => None,
        };
        let Some(node) = f.get("capture") else {
            for key in ["format", "part"] {
                if let Some(node) = f.get(key) {
                    self.reader.report(node.key_fault(format!("`{key}` without `capture` has no effect")));
                }
            }
            if matches!(action, Some(Action::Read { .. } | Action::Decode { .. })) {
                let fault = f.node().fault("something is read and not captured");
                self.reader.report(fault.with_help("add `capture: NAME`"));
            }
            return Some(None);
        };
        let name = self.reader.line(&node)?;
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) || name.starts_with('.') {
            let fault = node.fault(format!("`{name}` cannot name a file"));
            self.reader.report(fault.with_help("use letters, digits, `.`, `_` and `-`"));
            return None;
        }
        if !self.captures.insert(name.clone()) {
            self.reader.report(node.fault(format!("an earlier step captures `{name}` already")));
            return None;
        }
        let format = format.unwrap_or_else(|| match action {
            Some(Action::Read { path }) => Format::of_file(path),
            Some(Action::Decode { arguments, .. }) => decoded_format(arguments),
            _ => Format::Plain,
        });
        let part = match f.get("part") {
            Some(node) => self.part(&node, format)?,
            None => Part::All,
        };
        let golden = self.golden(&node, &name)?;
        Some(Some(Capture { name, format, part, golden }))
    }

    fn part(&mut self, node: &Node<'_>, format: Format) -> Option<Part> {
        let name = self.reader.line(node)?;
        let found = Part::ALL.iter().find(|(known, _)| *known == name).map(|(_, part)| *part);
        if found.is_none() {
            let known = Part::ALL.map(|(name, _)| name);
            let help = did_you_mean(&name, known).unwrap_or_else(|| format!("write {}", known.join(" or ")));
            self.reader.report(node.fault(format!("unknown part `{name}`")).with_help(help));
        }
        if found.is_some_and(|part| part != Part::All) && format != Format::PerfDump {
            let fault = node.fault("only perf's dump has AUXTRACE records");
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
            self.reader.report(node.fault(format!("unknown format `{name}`")).with_help(help));
        }
        found
    }

    fn golden(&mut self, node: &Node<'_>, name: &str) -> Option<Golden> {
        let (file, bytes) = (self.read_golden)(name);
        let bytes = match bytes {
            Ok(bytes) => bytes,
            Err(error) => {
                let fault = node.fault(format!("the golden `{file}` cannot be read: {error}"));
                self.reader.report(fault.with_help(format!(
                    "`goldtrace run --bless` writes it from what is captured; a golden of the one line `{HEAD}` \
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Option<Case>, Vec<String>) {
        let document = match Document::parse("case.yaml", text) {
            Ok(document) => document,
            Err(fault) => {
                return (None, vec![format!("{}:{} {}", fault.span.line, fault.span.column, fault.message)]);
            }
        };
        let guests = ["ppc64le", "x86_64"].map(GuestName::new);
        let golden = |name: &str| {
            let bytes = match name {
                "absent" => Err(io::Error::from(io::ErrorKind::NotFound)),
                "broken" => Ok(b"#@ golden v1\n{{\n".to_vec()),
                _ => Ok(b"#@ golden v1\n".to_vec()),
            };
            (Utf8PathBuf::from(format!("{name}.golden")), bytes)
        };
        let (case, _, faults) =
            read_case(&CaseId::new("a/b"), Utf8Path::new("case.yaml"), &document, &guests, &golden);
        let shown = faults.iter().map(|f| {
            format!(
                "{}:{}:{} {} | {}",
                f.file,
                f.span.line,
                f.span.column,
                f.message,
                f.help.as_deref().unwrap_or("-")
            )
        });
        (case, shown.collect())
    }

    #[test]
    fn a_case() {
        let (case, faults) = read(
            "title: T\nsteps:\n  - run: echo 1\n    status: 3\n    limit: 2s\n  - read: events/a/b/hist_debug\n    capture: one\n",
        );
        assert_eq!(faults, Vec::<String>::new());
        let case = case.expect("a case");
        assert_eq!(case.guests.len(), 2);
        assert_eq!(case.steps[0].action, Action::Run { script: "echo 1".to_owned(), status: 3, log: None });
        assert_eq!((case.steps[0].line, case.steps[1].line), (3, 6));
        assert_eq!(case.steps[1].capture.as_ref().expect("one").format, Format::HistDebug);
    }

    #[test]
    fn what_a_case_requires() {
        let text =
            |list: &str| format!("title: T\nrequires: [{list}]\nsteps:\n  - read: f\n    capture: one\n");
        let (case, faults) = read(&text("CONFIG_A, perf, CONFIG_B"));
        assert_eq!(faults, Vec::<String>::new());
        let requires = case.expect("a case").requires;
        assert!(requires.perf);
        assert_eq!(requires.words(), ["CONFIG_A", "CONFIG_B", "perf"]);
        let (_, faults) = read(&text("DTL, Perf, ftrace"));
        assert_eq!(
            faults,
            [
                "case.yaml:2:12 a case cannot require `DTL` | did you mean `CONFIG_DTL`?",
                "case.yaml:2:17 a case cannot require `Perf` | did you mean `perf`?",
                "case.yaml:2:23 a case cannot require `ftrace` | write a kernel config symbol as CONFIG_NAME, perf or tcg",
            ]
        );
    }

    #[test]
    fn every_fault_is_told_with_its_place() {
        let (_, faults) = read(concat!(
            "title: 5\n",
            "guest: [x86_64]\n",
            "guests: [x86, x86_64, x86_64]\n",
            "steps:\n",
            "  - run: a\n",
            "    read: b\n",
            "  - limit: 3\n",
            "  - read: f\n",
            "  - read: f\n",
            "    capture: one\n",
            "    format: hist_debag\n",
            "  - read: f\n",
            "    capture: two\n",
            "  - run: x\n",
            "    capture: two\n",
            "  - run: x\n",
            "    capture: a/b\n",
            "  - run: x\n",
            "    capture: absent\n",
            "  - run: x\n",
            "    capture: broken\n",
            "  - run: [x]\n",
            "  - read: f\n",
            "    status: 1\n",
            "    capture: three\n",
        ));
        let expected = [
            "case.yaml:1:8 expected text, found the number 5 | put the value in quotes",
            "case.yaml:2:1 unknown key `guest` | did you mean `guests`?",
            "case.yaml:3:10 unknown guest `x86` | did you mean `x86_64`?",
            "case.yaml:3:23 guest `x86_64` is named twice | -",
            "case.yaml:6:5 a step is either `run` or `read` | make two steps of it",
            "case.yaml:7:5 a step needs `run`, `read` or `decode` | -",
            "case.yaml:7:12 expected a time, found the number 3 | write a number with ms, s or min, such as 500ms or 10s",
            "case.yaml:8:5 something is read and not captured | add `capture: NAME`",
            "case.yaml:11:13 unknown format `hist_debag` | did you mean `hist_debug`?",
            "case.yaml:15:14 an earlier step captures `two` already | -",
            "case.yaml:17:14 `a/b` cannot name a file | use letters, digits, `.`, `_` and `-`",
            "case.yaml:19:14 the golden `absent.golden` cannot be read: entity not found | `goldtrace run --bless` \
             writes it from what is captured; a golden of the one line `#@ golden v1` expects nothing (its name is that \
             of the capture and `.golden`)",
            "case.yaml:22:10 expected text, found a list | -",
            "case.yaml:24:5 `status` belongs to `run`: a file that cannot be read, and perf that fails, are errors | -",
            "broken.golden:2:1 this `{{` is not closed | close it with `}}`, or write `{{lit:{{}}` for the text `{{`",
        ];
        assert_eq!(faults, expected);
    }

    #[test]
    fn faults_of_excuses_are_told() {
        let (_, faults) = read(concat!(
            "title: T\n",
            "steps:\n",
            "  - read: f\n",
            "    capture: one\n",
            "xfail:\n",
            "  - capture: on\n",
            "    lines: [1]\n",
            "    reason: R\n",
            "  - capture: one\n",
            "    lines: [7..9]\n",
            "    when: kernel >= x\n",
            "    reason: R\n",
            "  - capture: one\n",
            "    lines: [a]\n",
            "expect:\n",
            "  death: oops\n",
            "  reason: R\n",
        ));
        assert_eq!(
            faults,
            [
                "case.yaml:6:14 no step captures `on` | did you mean `one`?",
                "case.yaml:10:12 line 7 of `one.golden` holds no line of the capture | -",
                "case.yaml:11:11 this condition cannot be read: `x` is no version | write it as in a golden's `#@ if`, \
             such as kernel >= 7.2",
                "case.yaml:13:5 missing key `reason` | -",
                "case.yaml:14:13 expected the number of a golden's line | write a number, or a range such as 7..9",
                "case.yaml:16:10 an oops is told by its `symbol` | -",
            ]
        );
    }

    #[test]
    fn a_case_without_an_assertion_is_refused() {
        let (_, faults) = read("title: T\nsteps:\n  - run: echo 1\n");
        assert!(faults[0].starts_with("case.yaml:2:1 the case asserts nothing"), "{faults:?}");
    }

    #[test]
    fn text_that_is_no_yaml_is_placed() {
        let (_, faults) = read("title: T\n\tsteps: []\n");
        assert!(faults[0].starts_with("2:"), "{faults:?}");
        let (_, faults) = read("title: T\ntitle: U\nsteps: []\n");
        assert!(faults[0].contains("duplicate entry with key \"title\""), "{faults:?}");
    }
}
