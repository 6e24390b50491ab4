use std::fmt::Write as _;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use expect_test::{Expect, expect};
use formats::Format;

use super::*;
use crate::case::ExpectedAt;
use crate::case::model::Action;
use vm::SplatKind;

/// Read a case whose goldens are all there and empty but for those named `absent` and `broken`.
fn read(text: &str) -> (Option<Case>, String) {
    let document = match Document::parse("case.yaml", text) {
        Ok(document) => document,
        Err(error) => return (None, format!("{error}\n")),
    };
    let guests = ["ppc64le", "x86_64"].map(GuestName::new);
    let golden = |name: &str| {
        let bytes = match name {
            "absent" => Err(io::Error::from(io::ErrorKind::NotFound)),
            "broken" => Ok(b"#@ golden v1\n{{\n".to_vec()),
            _ => Ok(b"#@ golden v1\nline\n".to_vec()),
        };
        (Utf8PathBuf::from(format!("{name}.golden")), bytes)
    };
    let id = CaseId::new("a/b");
    let (directory, file) = (Utf8Path::new("/"), Utf8Path::new("case.yaml"));
    let (case, _, errors) = read_case(&id, directory, file, &document, &guests, &golden);
    let mut shown = String::new();
    for error in errors {
        writeln!(shown, "{error}").expect("a string takes everything");
    }
    (case, shown)
}

fn valid(text: &str) -> Case {
    let (case, errors) = read(text);
    assert_eq!(errors, "");
    case.expect("a case without errors")
}

fn check(text: &str, expected: &Expect) {
    expected.assert_eq(&read(text).1);
}

/// A case with more keys after a step that captures something.
fn with_keys(keys: &str) -> String {
    format!("title: T\nsteps:\n  - read: f\n    capture: one\n{keys}")
}

/// A case with one step, of these keys.
fn with_step(keys: &str) -> String {
    format!("title: T\nrequires: [perf]\nsteps:\n  - {keys}\n")
}

#[test]
fn case_has_defaults() {
    let case = valid(
        "title: T\nsteps:\n  - run: |\n      echo 1\n    exit_status: 3\n  - read: events/a/b/hist_debug\n    capture: one\n",
    );
    assert_eq!(
        (case.title.as_str(), case.document.as_deref(), case.cwd.as_str()),
        ("T", None, "/sys/kernel/tracing")
    );
    assert_eq!(case.guests.len(), 2);
    assert!(case.expected_splats.is_empty());
    assert_eq!(
        case.steps[0].action,
        Action::Run { script: "echo 1\n".to_owned(), exit_status: 3, log: None }
    );
    assert_eq!((case.steps[0].line, case.steps[1].line), (3, 6));
    assert_eq!((case.steps[0].timeout, case.steps[0].output_limit), (Duration::from_secs(20), 8 << 20));
    assert_eq!(case.steps[1].capture.as_ref().expect("one").format, Format::HistDebug);
}

#[test]
fn limits_of_a_step_come_before_those_of_its_case() {
    let case = valid(
        "title: T\ntimeout: 1min\noutput_limit: 64MiB\nsteps:\n  - {read: f, capture: one}\n  \
         - {run: x, timeout: 500ms, output_limit: 1KiB}\n  - {run: x, output_limit: 256MiB}\n",
    );
    let limits: Vec<(Duration, u32)> =
        case.steps.iter().map(|step| (step.timeout, step.output_limit)).collect();
    let minute = Duration::from_secs(60);
    assert_eq!(limits, [(minute, 64 << 20), (Duration::from_millis(500), 1 << 10), (minute, 256 << 20)]);
}

#[test]
fn requirements_are_symbols_perf_and_tcg() {
    let case = valid(&with_keys("requires: [CONFIG_A, perf, CONFIG_B, tcg]\n"));
    assert_eq!(case.requires.words(), ["CONFIG_A", "CONFIG_B", "perf", "tcg"]);
    check(
        &with_keys("requires: [DTL, Perf, ftrace]\n"),
        &expect![[r#"
        case.yaml:5:12: a case cannot require `DTL` (did you mean `CONFIG_DTL`?)
        case.yaml:5:17: a case cannot require `Perf` (did you mean `perf`?)
        case.yaml:5:23: a case cannot require `ftrace` (write a kernel config symbol as CONFIG_NAME, perf or tcg)
    "#]],
    );
}

#[test]
fn expected_splats_are_read_with_their_places() {
    let case = valid(&with_keys(
        "xfail:\n  - {splat: panic, message: 'Kernel panic: .*', reason: R}\n  \
         - {splat: warning, symbol: f, step: 1, if: kernel < 7.3, reason: S}\n  \
         - {splat: leak, symbol: f, step: any, reason: T}\n",
    ));
    let [panic, warning, leak] = case.expected_splats.as_slice() else { panic!("three") };
    assert_eq!((panic.kind, panic.line, panic.file.as_str()), (SplatKind::Panic, 6, "case.yaml"));
    assert_eq!((&panic.symbol, panic.step, panic.condition.is_some()), (&None, ExpectedAt::Last, false));
    assert_eq!(panic.message.as_ref().map(|message| message.pattern.as_str()), Some("Kernel panic: .*"));
    assert!(warning.message.is_none());
    assert_eq!((warning.kind, warning.line, warning.step), (SplatKind::Warning, 7, ExpectedAt::Step(0)));
    assert_eq!((warning.symbol.as_deref(), warning.reason.as_str()), (Some("f"), "S"));
    assert!(warning.condition.is_some());
    assert_eq!(leak.step, ExpectedAt::Any);
}

#[test]
fn splats_are_checked() {
    check(
        &with_keys("xfail: {splat: oops}\n"),
        &expect![[r#"
        case.yaml:5:8: expected a list, found a mapping
    "#]],
    );
    check(
        &with_keys(
            "xfail:\n  - {splat: opps, symbol: f, reason: R}\n  - {splat: oops, reason: R}\n  \
             - {splat: warning, symbol: f}\n  - {splat: panic, symbol: f, step: 2, reason: R}\n  \
             - {splat: panic, symbol: f, if: kernel >= x, reason: R}\n  - {symbol: f, reason: R}\n  - {splat: panic, sybmol: f, reason: R}\n  \
             - {splat: leak, reason: R}\n  - {splat: message, message: '.*', reason: R}\n",
        ),
        &expect![[r#"
            case.yaml:6:13: unknown splat `opps` (did you mean `oops`?)
            case.yaml:7:13: an oops or a warning is identified by its function (add `symbol: FUNCTION`, as the report names it after RIP, NIP or `WARNING: ... at`)
            case.yaml:8:5: missing key `reason`
            case.yaml:9:37: 2 is not from 1 to 1
            case.yaml:10:35: invalid condition: `x` is not a version (write it as in a golden's `#@ if`, such as kernel >= 7.2)
            case.yaml:11:5: missing key `splat`
            case.yaml:12:13: any panic would be the expected one (add `symbol: FUNCTION`, or `message: PATTERN` for the report's own line)
            case.yaml:12:20: unknown key `sybmol` (did you mean `symbol`?)
            case.yaml:13:13: any leak would be the expected one (add `symbol: FUNCTION`, or `message: PATTERN` for the report's own line)
            case.yaml:14:31: `.*` matches any message
        "#]],
    );
}

#[test]
fn renamed_keys_are_errors_that_name_the_new_ones() {
    check(
        &with_keys("directory: /tmp\n"),
        &expect![[r#"
        case.yaml:5:1: `directory` has been renamed (write `cwd: DIRECTORY`)
    "#]],
    );
    check(
        &with_keys("limit: 2s\n"),
        &expect![[r#"
        case.yaml:5:1: `limit` has been renamed (write `timeout: TIME`)
    "#]],
    );
    check(
        &with_keys("expect: {complaint: oops, symbol: f, reason: R}\n"),
        &expect![[r#"
        case.yaml:5:1: `expect` has been renamed (write `xfail:` with an entry `- splat: KIND`)
    "#]],
    );
    check(
        &with_step("{run: x, capture: one, status: 1}"),
        &expect![[r#"
        case.yaml:4:28: `status` has been renamed (write `exit_status: N`)
    "#]],
    );
    check(
        &with_step("{run: x, capture: one, limit: 2s}"),
        &expect![[r#"
        case.yaml:4:28: `limit` has been renamed (write `timeout: TIME`)
    "#]],
    );
    check(
        &with_keys("xfail: [{complaint: panic, reason: R}]\n"),
        &expect![[r#"
        case.yaml:5:9: missing key `splat`
        case.yaml:5:10: `complaint` has been renamed (write `splat: KIND`)
    "#]],
    );
    check(
        &with_keys("xfail: [{splat: panic, symbol: f, when: kernel < 7.3, reason: R}]\n"),
        &expect![[r#"
            case.yaml:5:35: `when` has been renamed (write `if: CONDITION`)
        "#]],
    );
}

#[test]
fn keys_of_a_case_are_checked() {
    check(
        "steps: []\n",
        &expect![[r#"
        case.yaml:1:1: the case asserts nothing: no step has a `capture` (add a step such as `read: events/sched/sched_waking/hist_debug` with `capture: NAME`)
        case.yaml:1:1: missing key `title`
    "#]],
    );
    check(
        "[]\n",
        &expect![[r#"
        case.yaml:1:1: expected a mapping of keys to values, found a list
    "#]],
    );
    check(
        &with_keys("guest: [x86_64]\n"),
        &expect![[r#"
        case.yaml:5:1: unknown key `guest` (did you mean `guests`?)
    "#]],
    );
    check(
        &with_keys("guests: [x86, x86_64, x86_64, riscv]\n"),
        &expect![[r#"
        case.yaml:5:10: unknown guest `x86` (did you mean `x86_64`?)
        case.yaml:5:23: guest `x86_64` is listed twice
        case.yaml:5:31: unknown guest `riscv` (known: ppc64le, x86_64)
    "#]],
    );
    check(
        &with_keys("guests: []\n"),
        &expect![[r#"
        case.yaml:5:9: the list of guests is empty
    "#]],
    );
    check(
        &with_keys("document: 5\ncwd: ''\n"),
        &expect![[r#"
        case.yaml:5:11: expected text, found the number 5 (put the value in quotes)
        case.yaml:6:6: expected one line of text that is not empty
    "#]],
    );
    check(
        &with_keys("timeout: 3\noutput_limit: 512MiB\n"),
        &expect![[r#"
            case.yaml:5:10: expected a duration, found the number 3 (write a number and its unit (ns, us, ms, s or min), such as 10us, 1.5ms or 60s)
            case.yaml:6:15: 512MiB is not from 1KiB to 256MiB
        "#]],
    );
}

#[test]
fn text_that_is_not_yaml_is_an_error() {
    check(
        "title: T\n\tsteps: []\n",
        &expect![[r#"
        case.yaml:2:1: found a tab character that violates indentation at line 2 column 1, while scanning a plain scalar
    "#]],
    );
    check(
        "title: T\ntitle: U\nsteps: []\n",
        &expect![[r#"
        case.yaml:1:1: duplicate entry with key "title"
    "#]],
    );
}

#[test]
fn steps_are_checked() {
    check(
        "title: T\nsteps:\n  - run: echo 1\n",
        &expect![[r#"
        case.yaml:2:1: the case asserts nothing: no step has a `capture` (add a step such as `read: events/sched/sched_waking/hist_debug` with `capture: NAME`)
    "#]],
    );
    check(
        &with_step("{run: a, read: b, capture: one}"),
        &expect![[r#"
        case.yaml:4:14: a step has either `run` or `read` (write two steps)
    "#]],
    );
    check(
        &with_step("{timeout: 3s, capture: one}"),
        &expect![[r#"
        case.yaml:4:5: a step needs `run`, `read`, `decode` or `inspect`
    "#]],
    );
    check(
        &with_step("{run: '', capture: one}"),
        &expect![[r#"
        case.yaml:4:11: the script is empty
    "#]],
    );
    check(
        &with_step("{run: \"a\\0\", capture: one}"),
        &expect![[r#"
        case.yaml:4:11: a script cannot contain a NUL byte
    "#]],
    );
    check(
        &with_step("{run: [x], capture: one}"),
        &expect![[r#"
        case.yaml:4:11: expected text, found a list
    "#]],
    );
    let decode = |steps: &str| {
        format!("title: T\nrequires: [perf]\nsteps:\n{steps}  - {{decode: script --cpu 1, capture: one}}\n")
    };
    let log = "  - {run: cat, dispatch_log: [{cpu: 0, entries: [{dispatch: H_PROD, preempt: H_CEDE}]}]}\n";
    check(
        &decode(log),
        &expect![[r#"
        case.yaml:5:14: `--cpu` hides entries, and `decode` checks that perf shows all that were written (write `run: perf script ...` for a part of them)
    "#]],
    );
    check(&decode(""), &expect![[""]]);
    check(
        &with_step("{run: x, stderr: many, capture: one}"),
        &expect![[r#"
        case.yaml:4:22: unknown kind of standard error `many` (did you mean `any`?)
    "#]],
    );
    check(
        &with_step("{run: x, exit_status: 256, capture: one}"),
        &expect![[r#"
        case.yaml:4:27: 256 is not from 0 to 255
    "#]],
    );
    check(
        &with_step("{read: f, exit_status: 1, dispatch_log: [], data: d, capture: one}"),
        &expect![[r#"
        case.yaml:4:15: only `run` has `exit_status`: a file that cannot be read, and perf that fails, are failures
        case.yaml:4:31: only `run` has `dispatch_log`: the log is written while a command records
        case.yaml:4:49: only `decode` has `data`: it names the recording that is decoded
    "#]],
    );
    check(
        &with_step("{run: x, timeout: 2h, output_limit: 8, capture: one}"),
        &expect![[r#"
            case.yaml:4:23: `2h` is not a duration: unknown unit (write a number and its unit (ns, us, ms, s or min), such as 10us, 1.5ms or 60s)
            case.yaml:4:41: expected a size, found the number 8 (write a whole number and its unit (KiB or MiB), such as 64MiB)
        "#]],
    );
    check(
        &with_step("{run: x, dispatch_log: [{cpu: 0, count: 85, preempt: x}], capture: one}"),
        &expect![[r#"
        case.yaml:4:58: unknown reason `x` (write a code, or one of unused, firmware_internal_event, H_CEDE, H_CONFER, time_slice, migration_hibernation_page_fault, virtual_memory_page_fault, H_CONFER_ADJUNCT, hcall_adjunct, HDEC_adjunct)
    "#]],
    );
}

#[test]
fn decoding_is_checked() {
    check(
        "title: T\nsteps:\n  - {decode: script, capture: one}\n",
        &expect![[r#"
        case.yaml:3:6: `decode` runs perf, and the case does not require it (add `perf` to the case's `requires:`)
    "#]],
    );
    check(
        &with_step("{decode: record -a, capture: one}"),
        &expect![[r#"
        case.yaml:4:14: `decode` runs a perf command that prints a recording (begin with script, report or evlist)
    "#]],
    );
    check(
        &with_step("{decode: 'script -F \"x', capture: one}"),
        &expect![[r#"
        case.yaml:4:14: a quote is not closed
    "#]],
    );
    check(
        &with_step("{decode: script -i other.data, capture: one}"),
        &expect![[r#"
        case.yaml:4:14: `-i`: the recording is given by `data` (add `data: FILE` to the step (default: perf.data))
    "#]],
    );
}

#[test]
fn captures_are_checked() {
    check(
        "title: T\nsteps:\n  - {run: x, capture: two}\n  - {run: y, capture: two}\n  - {read: f}\n",
        &expect![[r#"
            case.yaml:4:23: an earlier step captures `two` already
            case.yaml:5:5: what this step reads is not captured (add `capture: NAME`)
        "#]],
    );
    check(
        &with_step("{run: x, capture: a/b}"),
        &expect![[r#"
            case.yaml:4:23: `a/b` cannot be a file's name (use letters, digits, `.`, `_` and `-`, and begin without `.`)
        "#]],
    );
    check(
        &with_step("{run: x, capture: .a}"),
        &expect![[r#"
            case.yaml:4:23: `.a` cannot be a file's name (use letters, digits, `.`, `_` and `-`, and begin without `.`)
        "#]],
    );
    check(
        &with_step("{run: x, capture: absent}"),
        &expect![[r#"
        case.yaml:4:23: failed to read the golden `absent.golden`: entity not found (`goldtrace run --bless` writes it from the capture; a golden with the one line `#@ golden v1` expects an empty capture)
    "#]],
    );
    check(
        &with_step("{run: x, capture: broken}"),
        &expect![[r#"
        broken.golden:2:1: unclosed `{{` (close it with `}}`, or write `{{lit:{{}}` for the text `{{`)
    "#]],
    );
    check(
        &with_step("{run: x, capture: one, format: hist_debag}"),
        &expect![[r#"
        case.yaml:4:36: unknown format `hist_debag` (did you mean `hist_debug`?)
    "#]],
    );
    check(
        &with_step("{run: x, capture: one, part: entries}"),
        &expect![[r#"
        case.yaml:4:34: only perf's dump has AUXTRACE records (capture what `decode: report -D` prints (format: perf_dump))
    "#]],
    );
    check(
        &with_step("{run: x, capture: one, format: perf_dump, part: entry}"),
        &expect![[r#"
        case.yaml:4:53: unknown part `entry` (did you mean `entries`?)
    "#]],
    );
    check(
        &with_step("{run: x, capture: one, defined_by: sample}"),
        &expect![[r#"
        case.yaml:4:28: `defined_by` needs a capture of `format` files (capture `format` files of events, and add `format: event_format`)
    "#]],
    );
    check(
        &with_keys("  - {run: x, format: hist, part: all, defined_by: m}\n"),
        &expect![[r#"
        case.yaml:5:14: `format` without `capture` has no effect
        case.yaml:5:28: `part` without `capture` has no effect
        case.yaml:5:39: `defined_by` without `capture` has no effect
    "#]],
    );
}

#[test]
fn every_error_of_a_file_is_reported_in_order() {
    check(
        "title: 5\nguest: [x86_64]\nsteps:\n  - {run: x, capture: broken, timeout: x}\n  - {read: f}\n",
        &expect![[r#"
            case.yaml:1:8: expected text, found the number 5 (put the value in quotes)
            case.yaml:2:1: unknown key `guest` (did you mean `guests`?)
            case.yaml:4:40: `x` is not a duration: it does not start with a decimal number (write a number and its unit (ns, us, ms, s or min), such as 10us, 1.5ms or 60s)
            case.yaml:5:5: what this step reads is not captured (add `capture: NAME`)
            broken.golden:2:1: unclosed `{{` (close it with `}}`, or write `{{lit:{{}}` for the text `{{`)
        "#]],
    );
}

#[test]
fn known_bugs_of_captures_belong_in_the_golden() {
    check(
        &with_keys("xfail:\n  - {capture: one, lines: [2], reason: R}\n  - {instead: x}\n"),
        &expect![[r#"
            case.yaml:6:5: a known bug that shows in a capture belongs in its golden (write `#@ xfail "REASON" if CONDITION`, the right lines, `#@ actual`, the lines that the kernel prints, `#@ end`)
            case.yaml:7:5: a known bug that shows in a capture belongs in its golden (write `#@ xfail "REASON" if CONDITION`, the right lines, `#@ actual`, the lines that the kernel prints, `#@ end`)
        "#]],
    );
}
