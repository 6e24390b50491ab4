use std::io;

use camino::{Utf8Path, Utf8PathBuf};

use super::*;
use crate::case::model::Action;
use formats::Format;

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
    let (case, _, faults) = read_case(
        &CaseId::new("a/b"),
        Utf8Path::new("/"),
        Utf8Path::new("case.yaml"),
        &document,
        &guests,
        &golden,
    );
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
    assert_eq!(case.steps[0].action, Action::Run { script: "echo 1".to_owned(), exit_status: 3, log: None });
    assert_eq!((case.steps[0].line, case.steps[1].line), (3, 6));
    assert_eq!(case.steps[1].capture.as_ref().expect("one").format, Format::HistDebug);
}

#[test]
fn what_a_case_requires() {
    let text = |list: &str| format!("title: T\nrequires: [{list}]\nsteps:\n  - read: f\n    capture: one\n");
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
        "case.yaml:7:5 a step needs `run`, `read`, `decode` or `inspect` | -",
        "case.yaml:7:12 expected a duration, found the number 3 | write a number and its unit (ns, us, ms, s or min), such as 10us, 1.5ms or 60s",
        "case.yaml:8:5 something is read and not captured | add `capture: NAME`",
        "case.yaml:11:13 unknown format `hist_debag` | did you mean `hist_debug`?",
        "case.yaml:15:14 an earlier step captures `two` already | -",
        "case.yaml:17:14 `a/b` cannot name a file | use letters, digits, `.`, `_` and `-`",
        "case.yaml:19:14 the golden `absent.golden` cannot be read: entity not found | `goldtrace run --bless` \
         writes it from what is captured; a golden of the one line `#@ golden v1` expects nothing (its name is that \
         of the capture and `.golden`)",
        "case.yaml:22:10 expected text, found a list | -",
        "case.yaml:24:5 `status` belongs to `run`: a file that cannot be read, and perf that fails, are errors | -",
        "broken.golden:2:1 unclosed `{{` | close it with `}}`, or write `{{lit:{{}}` for the text `{{`",
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
        "    instead: (x\n",
        "expect:\n",
        "  complaint: oops\n",
        "  reason: R\n",
    ));
    assert_eq!(
        faults,
        [
            "case.yaml:6:14 no step captures `on` | did you mean `one`?",
            "case.yaml:10:12 line 7 of `one.golden` holds no line of the capture | -",
            "case.yaml:11:11 this condition cannot be read: `x` is not a version | write it as in a golden's `#@ if`, \
         such as kernel >= 7.2",
            "case.yaml:13:5 missing key `reason` | -",
            "case.yaml:14:13 expected the number of a golden's line | write a number, or a range such as 7..9",
            "case.yaml:15:14 this regular expression cannot be read: unclosed group | -",
            "case.yaml:17:14 an oops and a warning are told by their `symbol` | -",
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
