//! The steps of a case's file.

use yaml::{Fields, Node, Reader};

use super::{CaseReader, Limits, limits};
use crate::case::model::{Action, Stderr, Step};
use crate::case::{dispatch_log, renamed};

/// The file that `decode` reads without `data`.
const DATA: &str = "perf.data";

/// What a step does, by its key.
const ACTIONS: [&str; 4] = ["run", "read", "decode", "inspect"];

const KEYS: [&str; 10] = [
    "data",
    "dispatch_log",
    "exit_status",
    "timeout",
    "output_limit",
    "stderr",
    "capture",
    "format",
    "part",
    "defined_by",
];

/// Keys that only one action has, with that action and the reason.
const OWN_KEYS: [(&str, &str, &str); 3] = [
    ("exit_status", "run", "a file that cannot be read, and perf that fails, are failures"),
    ("dispatch_log", "run", "the log is written while a command records"),
    ("data", "decode", "it names the recording that is decoded"),
];

impl CaseReader<'_> {
    pub(super) fn steps(&mut self, r: &mut Reader, node: &Node<'_>, defaults: Limits) -> Option<Vec<Step>> {
        let mut asserts = false;
        let steps = r.each(node, |r, node| {
            asserts |= node.has("capture");
            self.step(r, node, defaults)
        });
        if !asserts {
            let error = node.key_error("the case asserts nothing: no step has a `capture`");
            r.report(error.with_help(
                "add a step such as `read: events/sched/sched_waking/hist_debug` with `capture: NAME`",
            ));
        }
        steps
    }

    fn step(&mut self, r: &mut Reader, node: Node<'_>, defaults: Limits) -> Option<Step> {
        let line = node.line();
        let keys: Vec<&str> = ACTIONS.into_iter().chain(KEYS).collect();
        let f = r.fields_with_renames(node, &keys, &renamed::STEP)?;
        let action = self.action(r, &f);
        let limits = limits(r, &f, defaults);
        let stderr =
            f.optional(r, "stderr", |r, node| r.choice(node, "kind of standard error", &Stderr::ALL));
        let capture = self.capture(r, &f, action.as_ref());
        let Limits { timeout, output_limit } = limits?;
        Some(Step {
            line,
            action: action?,
            timeout,
            output_limit,
            stderr: stderr?.unwrap_or(Stderr::Empty),
            capture: capture?,
        })
    }

    fn action(&mut self, r: &mut Reader, f: &Fields<'_>) -> Option<Action> {
        let given: Vec<(&str, Node<'_>)> =
            ACTIONS.iter().filter_map(|kind| Some((*kind, f.get(kind)?))).collect();
        let (kind, node) = match given.as_slice() {
            [(kind, node)] => (*kind, node),
            [] => {
                r.report(f.node().error("a step needs `run`, `read`, `decode` or `inspect`"));
                return None;
            }
            [(first, _), (second, node), ..] => {
                let error = node.key_error(format!("a step has either `{first}` or `{second}`"));
                r.report(error.with_help("write two steps"));
                return None;
            }
        };
        for (key, of, why) in OWN_KEYS {
            if let Some(node) = f.get(key).filter(|_| kind != of) {
                r.report(node.key_error(format!("only `{of}` has `{key}`: {why}")));
            }
        }
        match kind {
            "run" => {
                let action = run(r, node, f);
                self.writes_log |= matches!(action, Some(Action::Run { log: Some(_), .. }));
                action
            }
            "read" => Some(Action::Read { path: r.line(node)? }),
            "decode" => self.decode(r, node, f),
            _ => Some(Action::Inspect { module: r.line(node)? }),
        }
    }

    fn decode(&mut self, r: &mut Reader, node: &Node<'_>, f: &Fields<'_>) -> Option<Action> {
        let data = f.optional(r, "data", Reader::line);
        let line = r.line(node)?;
        if !self.perf {
            let error = node.key_error("`decode` runs perf, and the case does not require it");
            r.report(error.with_help("add `perf` to the case's `requires:`"));
        }
        let Ok(arguments) = shell_words::split(&line) else {
            r.report(node.error("a quote is not closed"));
            return None;
        };
        if !matches!(arguments.first().map(String::as_str), Some("script" | "report" | "evlist")) {
            let error = node.error("`decode` runs a perf command that prints a recording");
            r.report(error.with_help("begin with script, report or evlist"));
            return None;
        }
        if self.writes_log {
            if let Some(word) = arguments.iter().find(|word| hides_entries(word)) {
                let error = node.error(format!(
                    "`{word}` hides entries, and `decode` checks that perf shows all that were written"
                ));
                r.report(error.with_help("write `run: perf script ...` for a part of them"));
                return None;
            }
        }
        if let Some(word) =
            arguments.iter().find(|word| word.starts_with("-i") || word.starts_with("--input"))
        {
            let error = node.error(format!("`{word}`: the recording is given by `data`"));
            r.report(error.with_help(format!("add `data: FILE` to the step (default: {DATA})")));
            return None;
        }
        Some(Action::Decode { arguments, data: data?.unwrap_or_else(|| DATA.to_owned()) })
    }
}

/// Whether an argument of perf-script(1) or perf-report(1) leaves out samples, or parts of the AUX area.
fn hides_entries(word: &str) -> bool {
    const SHORT: [&str; 3] = ["-C", "-c", "-S"];
    const LONG: [&str; 13] = [
        "--cpu",
        "--time",
        "--no-itrace",
        "--itrace",
        "--comm",
        "--pid",
        "--tid",
        "--dso",
        "--symbol",
        "--switch-on",
        "--switch-off",
        "--percent-limit",
        "--sample-filter",
    ];
    SHORT.iter().chain(&LONG).any(|option| word.starts_with(option))
}

fn run(r: &mut Reader, node: &Node<'_>, f: &Fields<'_>) -> Option<Action> {
    let exit_status = f.optional(r, "exit_status", |r, node| u32::try_from(r.number(node, 0..=255)?).ok());
    let log = f.optional(r, "dispatch_log", dispatch_log::plan);
    let script = r.text(node)?;
    if script.trim().is_empty() {
        r.report(node.error("the script is empty"));
        return None;
    }
    if script.contains('\0') {
        r.report(node.error("a script cannot contain a NUL byte"));
        return None;
    }
    Some(Action::Run { script, exit_status: exit_status?.unwrap_or(0), log: log? })
}
