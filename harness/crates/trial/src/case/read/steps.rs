//! The steps of a case's file.

use std::time::Duration;

use super::Context;
use crate::case::dispatch_log;
use crate::case::model::{Action, Step};
use yaml::{Fields, Node};

/// The file that `decode` reads when it does not say.
const DATA: &str = "perf.data";

const STEP_KEYS: [&str; 12] = [
    "run",
    "read",
    "decode",
    "inspect",
    "data",
    "dispatch_log",
    "status",
    "limit",
    "capture",
    "format",
    "part",
    "defined_by",
];

impl Context<'_> {
    pub(super) fn steps(&mut self, node: &Node<'_>, timeout: Duration) -> Option<Vec<Step>> {
        let items = self.reader.list(node)?;
        let steps: Vec<Option<Step>> = items.into_iter().map(|item| self.step(item, timeout)).collect();
        if self.captures.is_empty() {
            let fault = node.key_error("the case asserts nothing: no step has a capture");
            self.reader.report(fault.with_help(
                "add a step such as `read: events/sched/sched_waking/hist_debug` with a `capture:`",
            ));
        }
        steps.into_iter().collect()
    }

    fn step(&mut self, node: Node<'_>, default_timeout: Duration) -> Option<Step> {
        let line = node.line();
        let f = self.reader.fields(node, &STEP_KEYS)?;
        let action = self.action(&f);
        let timeout = f.get("limit").map_or(Some(default_timeout), |node| self.reader.duration(&node));
        let capture = self.capture(&f, action.as_ref());
        Some(Step { line, action: action?, timeout: timeout?, capture: capture? })
    }

    fn action(&mut self, f: &Fields<'_>) -> Option<Action> {
        let kinds = ["run", "read", "decode", "inspect"];
        let given: Vec<(&str, Node<'_>)> =
            kinds.iter().filter_map(|kind| Some((*kind, f.get(kind)?))).collect();
        let (kind, node) = match given.as_slice() {
            [(kind, node)] => (*kind, node),
            [] => {
                self.reader.report(f.node().error("a step needs `run`, `read`, `decode` or `inspect`"));
                return None;
            }
            [(first, _), (second, node), ..] => {
                let fault = node.key_error(format!("a step is either `{first}` or `{second}`"));
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
                self.reader.report(node.key_error(format!("`{key}` belongs to `{of}`: {why}")));
            }
        }
        match kind {
            "run" => self.run(node, f),
            "read" => Some(Action::Read { path: self.reader.line(node)? }),
            "decode" => self.decode(node, f),
            _ => Some(Action::Inspect { module: self.reader.line(node)? }),
        }
    }

    fn run(&mut self, node: &Node<'_>, f: &Fields<'_>) -> Option<Action> {
        let exit_status = f.get("status").map_or(Some(0), |node| self.reader.number(&node, 0..=255));
        let log = match f.get("dispatch_log") {
            Some(node) => Some(dispatch_log::plan(&mut self.reader, &node)?),
            None => None,
        };
        let script = self.reader.text(node)?;
        if script.trim().is_empty() {
            self.reader.report(node.error("an empty script"));
            return None;
        }
        if script.contains('\0') {
            self.reader.report(node.error("a script cannot hold a NUL"));
            return None;
        }
        Some(Action::Run { script, exit_status: u32::try_from(exit_status?).unwrap_or(0), log })
    }

    fn decode(&mut self, node: &Node<'_>, f: &Fields<'_>) -> Option<Action> {
        let data = f.get("data").map_or(Some(DATA.to_owned()), |node| self.reader.line(&node));
        let line = self.reader.line(node)?;
        if !self.perf {
            let fault = node.key_error("`decode` runs perf, and the case does not require it");
            self.reader.report(fault.with_help("add `perf` to the case's `requires:`"));
        }
        let Ok(arguments) = shell_words::split(&line) else {
            self.reader.report(node.error("a quote is not closed"));
            return None;
        };
        if !matches!(arguments.first().map(String::as_str), Some("script" | "report" | "evlist")) {
            let fault = node.error("`decode` runs perf's subcommands that read recorded data and print it");
            self.reader.report(fault.with_help("begin with script, report or evlist"));
            return None;
        }
        if let Some(word) =
            arguments.iter().find(|word| word.starts_with("-i") || word.starts_with("--input"))
        {
            let fault = node.error(format!("`{word}`: the file is given by `data`"));
            self.reader
                .report(fault.with_help(format!("add `data: FILE` to the step; without it, {DATA} is read")));
            return None;
        }
        Some(Action::Decode { arguments, data: data? })
    }
}
