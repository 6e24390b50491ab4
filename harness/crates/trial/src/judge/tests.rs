use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use camino::Utf8PathBuf;
use guest::GuestName;
use vm::dispatch_log::{LogError, WriteError};
use vm::qemu::StopReason;
use vm::{SessionError, SplatKind, StepEnd};

use super::*;
use crate::case::Step;
use crate::execute::{DispatchLogError, HarnessError, Inspected, SecondDecoding};
use crate::testing;
use crate::testing::{facts, step, transcript};

fn case() -> Case {
    testing::case(vec![step(3, "out", "right\n")])
}

fn judged(case: &Case, transcript: &Transcript) -> Outcome {
    judge(case, &facts("ppc64le", &[7, 2, 13]), transcript, &TrialDir { dir: Utf8PathBuf::from("d") })
}

fn verdict(case: &Case, transcript: &Transcript) -> &'static str {
    match judged(case, transcript) {
        Outcome::Pass => "pass",
        Outcome::Fail(failures) => match failures[0] {
            Failure::Kernel { .. } => "fail: kernel",
            Failure::Tainted { .. } => "fail: tainted",
            Failure::Capture(_) => "fail: capture",
            Failure::Decoded(_) => "fail: decoded",
            Failure::Module(_) => "fail: module",
            Failure::Step(ref failure) => failure.error.problem.word(),
        },
        Outcome::Xfail(_) => "xfail",
        Outcome::Xpass { .. } => "xpass",
        Outcome::Skip(_) => "skip",
        Outcome::Error(_) => "error",
        Outcome::Interrupted => "interrupted",
    }
}

fn aborted(abort: Abort, transcript: Transcript) -> Transcript {
    Transcript { abort: Some(abort), ..transcript }
}

fn step_error(problem: StepProblem) -> Abort {
    Abort::Step(StepError { problem, stderr: String::new() })
}

fn stopped(reason: StopReason) -> Abort {
    SessionError::Stopped(reason).into()
}

fn timeout() -> Abort {
    stopped(StopReason::TimedOut { what: "x".to_owned(), timeout: Duration::from_secs(1) })
}

fn splat(fatal: bool) -> Splat {
    scan(if fatal { "Kernel panic - not syncing: x\n" } else { "WARNING: x\n" }).remove(0)
}

/// The splats in lines that the kernel logs.
fn scan(text: &str) -> Vec<Splat> {
    let line = |(at, line): (usize, &str)| format!("<4>[    1.{at:06}] {line}\n");
    Splat::scan(text.lines().enumerate().map(line).collect::<String>().as_bytes())
}

/// They came when this request had ended.
fn after(request: u64, splats: Vec<Splat>) -> Vec<Splat> {
    splats.into_iter().map(|splat| Splat { after: Some(request), ..splat }).collect()
}

fn with_splats(splats: &[Splat], transcript: Transcript) -> Transcript {
    Transcript { splats: splats.to_vec(), ..transcript }
}

#[test]
fn right_captures_on_a_clean_console_pass() {
    assert_eq!(verdict(&case(), &transcript(&["right\n"])), "pass");
    assert_eq!(verdict(&case(), &transcript(&["wrong\n"])), "fail: capture");
}

#[test]
fn splat_fails_a_trial_whose_captures_are_right() {
    assert_eq!(verdict(&case(), &with_splats(&[splat(false)], transcript(&["right\n"]))), "fail: kernel");
}

#[test]
fn what_qemu_the_agent_the_harness_or_the_host_did_not_do_is_an_error() {
    let harness = HarnessError::Copy { path: "p".to_owned(), end: StepEnd::TimedOut };
    let start = Abort::Start(io::Error::other("no memory"));
    let crashed = stopped(StopReason::Exited(ExitStatus::from_raw(139)));
    let port = stopped(StopReason::Port("closed".to_owned()));
    let suspended = stopped(StopReason::Suspended("x".to_owned()));
    let protocol = SessionError::Protocol(vm::ProtocolError::UnknownRequest).into();
    let log = DispatchLogError::Write(WriteError::NoCpu { cpu: 2, cpus: 2 }).into();
    for abort in [harness.into(), start, crashed, port, suspended, protocol, log] {
        let aborted = aborted(abort, transcript(&["right\n"]));
        assert_eq!(verdict(&case(), &aborted), "error", "{:?}", aborted.abort);
    }
    assert_eq!(verdict(&case(), &aborted(Abort::Interrupted, transcript(&["right\n"]))), "interrupted");
}

#[test]
fn what_the_kernel_did_not_do_is_its_failure() {
    let unread = |error| Abort::from(DispatchLogError::Write(error));
    let gone = LogError::Gone { cpu: 0, what: "x".to_owned() };
    let timed_out = WriteError::TimedOut { what: "x".to_owned(), timeout: Duration::from_secs(1) };
    let ended = DispatchLogError::Ended {
        error: WriteError::Ended("x".to_owned()),
        end: StepEnd::Exited(1),
        stderr: String::new(),
    };
    let aborts = [
        (step_error(StepProblem::ExitStatus { found: 1, expected: 0 }), "refused"),
        (step_error(StepProblem::Signal(11)), "killed"),
        (step_error(StepProblem::TimedOut(Duration::from_secs(1))), "hung"),
        (step_error(StepProblem::Flooded(8)), "flooded"),
        (step_error(StepProblem::Read { path: "p".to_owned(), errno: 5 }), "refused"),
        (timeout(), "hung"),
        (stopped(StopReason::Exited(ExitStatus::default())), "shut down"),
        (unread(WriteError::Log(gone)), "unread"),
        (unread(timed_out), "unread"),
        (ended.into(), "ended early"),
    ];
    for (abort, word) in aborts {
        let aborted = aborted(abort, transcript(&["right\n"]));
        assert_eq!(verdict(&case(), &aborted), word);
        // Before the greeting nothing is known of the kernel.
        assert_eq!(verdict(&case(), &Transcript { boot_time: None, ..aborted }), "error", "{word}");
    }
}

#[test]
fn captures_before_a_failed_step_are_compared_and_its_own_is_not() {
    let case = testing::case(vec![step(3, "one", "1\n"), step(5, "two", "2\n")]);
    let refused = || step_error(StepProblem::Signal(11));
    let failures = |transcript: Transcript| match judged(&case, &transcript) {
        Outcome::Fail(failures) => failures.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!(failures(aborted(refused(), transcript(&["1\n", "x\n"]))), 1);
    assert_eq!(failures(aborted(refused(), transcript(&["x\n", "x\n"]))), 2);
    assert_eq!(failures(aborted(timeout(), transcript(&["x\n"]))), 2);
    assert_eq!(failures(aborted(timeout(), transcript(&["x\n", "x\n"]))), 3);
}

#[test]
fn standard_error_is_empty_unless_the_case_allows_it() {
    let mut noisy = transcript(&["right\n"]);
    noisy.steps[0].output.stderr = b"lost 1 chunks!\n".to_vec();
    assert_eq!(verdict(&case(), &noisy), "noisy");
    let allowing = testing::case(vec![Step { stderr: Stderr::Any, ..step(3, "out", "right\n") }]);
    assert_eq!(verdict(&allowing, &noisy), "pass");
    // What a refused step says is a part of its own message.
    let case = testing::case(vec![step(3, "out", "right\n")]);
    assert_eq!(verdict(&case, &aborted(step_error(StepProblem::Signal(11)), noisy)), "killed");
}

#[test]
fn capture_that_a_process_left_behind_may_add_to_is_a_failure() {
    let mut open = transcript(&["right\n"]);
    open.steps[0].held_open = true;
    assert_eq!(verdict(&case(), &open), "left open");
    let asserts_elsewhere = testing::case(vec![Step { capture: None, ..step(3, "out", "") }]);
    assert_eq!(verdict(&asserts_elsewhere, &open), "pass");
}

#[test]
fn abort_after_a_splat_is_the_kernels_failure() {
    for abort in [timeout(), step_error(StepProblem::Signal(11))] {
        let aborted = aborted(abort, with_splats(&[splat(false)], transcript(&["right\n"])));
        assert_eq!(verdict(&case(), &aborted), "fail: kernel");
    }
}

#[test]
fn panic_is_an_error_before_the_greeting_and_a_failure_after_it() {
    let panicked = |transcript| aborted(Abort::Panic, with_splats(&[splat(true)], transcript));
    assert_eq!(verdict(&case(), &panicked(Transcript::default())), "error");
    assert_eq!(verdict(&case(), &panicked(transcript(&[]))), "fail: kernel");
}

#[test]
fn panic_without_a_line_on_the_console_is_an_error() {
    assert_eq!(verdict(&case(), &aborted(Abort::Panic, transcript(&[]))), "error");
}

#[test]
fn failure_names_the_step_that_was_cut_short() {
    let case = testing::case(vec![step(3, "one", "1\n"), step(5, "two", "2\n")]);
    let line = |transcript: Transcript| match judged(&case, &transcript) {
        Outcome::Error(error) => error.step.map(|step| step.line),
        Outcome::Fail(failures) => match &failures[0] {
            Failure::Step(failure) => failure.step.as_ref().map(|step| step.line),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    assert_eq!(line(aborted(timeout(), transcript(&["1\n"]))), Some(5));
    let port = || stopped(StopReason::Port("closed".to_owned()));
    assert_eq!(line(aborted(port(), transcript(&["1\n"]))), Some(5));
    assert_eq!(line(aborted(step_error(StepProblem::Signal(11)), transcript(&["1\n"]))), Some(3));
    assert_eq!(line(aborted(timeout(), transcript(&["1\n", "2\n"]))), None);
    assert_eq!(line(aborted(timeout(), Transcript::default())), None);
}

fn with_known_bug(body: &str) -> Case {
    testing::case(vec![step(3, "out", body)])
}

#[test]
fn known_bug_in_a_golden_is_xfail_and_its_end_is_xpass() {
    let case = with_known_bug("#@ xfail \"R\" if kernel < 7.3\nright\n#@ actual\nwrong\n#@ end\nrest\n");
    assert_eq!(verdict(&case, &transcript(&["wrong\nrest\n"])), "xfail");
    assert_eq!(verdict(&case, &transcript(&["other\nrest\n"])), "fail: capture");
    assert_eq!(verdict(&case, &transcript(&["wrong\nrest\nmore\n"])), "fail: capture");
    assert_eq!(verdict(&case, &with_splats(&[splat(false)], transcript(&["wrong\nrest\n"]))), "fail: kernel");
    let outcome = judged(&case, &transcript(&["right\nrest\n"]));
    let Outcome::Xpass { gone, failures } = outcome else { panic!("{outcome:?}") };
    assert!(failures.is_empty());
    let entry = ExpectedFailure { file: "cases/a/b/out.golden".into(), line: 2, reason: "R".to_owned() };
    assert_eq!(gone, [entry]);
    // Elsewhere only the right text counts.
    let newer = |text| {
        let dir = TrialDir { dir: Utf8PathBuf::from("d") };
        judge(&case, &facts("ppc64le", &[7, 3, 0]), &transcript(&[text]), &dir)
    };
    assert!(matches!(newer("right\nrest\n"), Outcome::Pass));
    assert!(matches!(newer("wrong\nrest\n"), Outcome::Fail(_)));
}

#[test]
fn known_line_too_many_or_too_few_is_xfail() {
    let extra = with_known_bug("a\n#@ xfail \"R\"\n#@ actual\nextra\n#@ end\nb\n");
    assert_eq!(verdict(&extra, &transcript(&["a\nextra\nb\n"])), "xfail");
    assert_eq!(verdict(&extra, &transcript(&["a\nb\n"])), "xpass");
    assert_eq!(verdict(&extra, &transcript(&["a\nextra\nextra\nb\n"])), "fail: capture");
    let lost = with_known_bug("a\n#@ xfail \"R\"\nlost\n#@ actual\n#@ end\nb\n");
    assert_eq!(verdict(&lost, &transcript(&["a\nb\n"])), "xfail");
    assert_eq!(verdict(&lost, &transcript(&["a\nlost\nb\n"])), "xpass");
    assert_eq!(verdict(&lost, &transcript(&["a\n"])), "fail: capture");
}

#[test]
fn gone_bug_beside_another_difference_is_a_failure_that_shows_the_difference() {
    let case = with_known_bug("#@ xfail \"R\"\nright\n#@ actual\nwrong\n#@ end\nrest\n");
    assert_eq!(verdict(&case, &transcript(&["right\nother\n"])), "fail: capture");
}

#[test]
fn module_that_is_not_as_its_source_defines_is_a_failure_that_blesses_nothing() {
    let inspected = |undefined: &[&str]| {
        let undefined = undefined.iter().map(|what| (*what).to_owned()).collect();
        let mut transcript = transcript(&["right\n"]);
        transcript.steps[0].inspected = Some(Inspected { module: kmod::for_tests(), undefined });
        transcript
    };
    assert_eq!(verdict(&case(), &inspected(&[])), "pass");
    let outcome = judged(&case(), &inspected(&["foo_bar: no class"]));
    assert!(matches!(&outcome, Outcome::Fail(failures) if matches!(failures[0], Failure::Module(_))));
    let why = outcome.unusable().expect("nothing to bless");
    assert!(why.contains("does not define what its file holds"), "{why}");
}

#[test]
fn formats_that_cannot_be_read_are_a_violation_at_their_line() {
    let mut case = case();
    let capture = case.steps[0].capture.as_mut().expect("one");
    capture.defined_by = Some("some".to_owned());
    let text = "name: foo_bar\nID: none\n";
    capture.golden = testing::golden("out.golden", text);
    let mut transcript = transcript(&[text]);
    transcript.steps[0].inspected = Some(Inspected { module: kmod::for_tests(), undefined: Vec::new() });
    let outcome = judged(&case, &transcript);
    assert!(!outcome.only_captures_differ());
    let Outcome::Fail(failures) = &outcome else { panic!("{outcome:?}") };
    let [Failure::Capture(failure)] = failures.as_slice() else { panic!("{failures:?}") };
    let [violation] = failure.comparison.violations.as_slice() else { panic!("{failure:?}") };
    assert_eq!(violation.line, 2);
    assert_eq!(violation.message, "expected `ID: NUMBER`, found `ID: none`");
    assert_eq!(
        outcome.unusable().expect("nothing to bless"),
        "`out` contradicts itself or what is known, at line 2: expected `ID: NUMBER`, found `ID: none`"
    );
}

#[test]
fn second_decoding_that_prints_something_else_is_a_failure_that_blesses_nothing() {
    let decoded = |stdout: &str, failed: Option<&str>| {
        let mut transcript = transcript(&["right\n"]);
        transcript.steps[0].second = Some(SecondDecoding {
            guest: GuestName::new("other"),
            command: "perf script".to_owned(),
            dir: Utf8PathBuf::from("decoder"),
            stdout: stdout.as_bytes().to_vec(),
            failed: failed.map(str::to_owned),
        });
        transcript
    };
    assert_eq!(verdict(&case(), &decoded("right\n", None)), "pass");
    assert_eq!(verdict(&case(), &decoded("right\n", Some("exit status: 1"))), "fail: decoded");
    let outcome = judged(&case(), &decoded("other\n", None));
    assert!(matches!(&outcome, Outcome::Fail(failures) if matches!(failures[0], Failure::Decoded(_))));
    assert!(!outcome.only_captures_differ());
    let why = outcome.unusable().expect("nothing to bless");
    assert_eq!(why, "perf in guest other and in this one do not agree on the output of `cat out`");
}

#[test]
fn difference_alone_can_be_blessed() {
    let outcome = judged(&case(), &transcript(&["wrong\n"]));
    assert!(outcome.only_captures_differ());
    assert_eq!(outcome.unusable(), None);
}

#[test]
fn splat_blesses_nothing() {
    let outcome = judged(&case(), &with_splats(&[splat(false)], transcript(&["wrong\n"])));
    assert_eq!(outcome.unusable().as_deref(), Some("the kernel printed a splat: WARNING: x"));
}

/// An oops and the panic that it leads to.
const OOPS: &str = "BUG: Kernel NULL pointer dereference on write at 0x00000004\n\
                    Oops: Kernel access of bad area, sig: 11 [#1]\n\
                    NIP [c00000000012f070] event_add+0x70/0x178\nLR [c0000000001] caller+0x1/0x2\n\
                    ---[ end trace 0000000000000000 ]---\nKernel panic - not syncing: Fatal exception\n";
const WARNING: &str = "WARNING: kernel/x.c:1 at f+0x1/0x2, CPU#1: sh/1\n";

/// A case of two steps that expects this splat.
fn expecting(kind: SplatKind, symbol: Option<&str>, at: Option<usize>) -> Case {
    let expected = ExpectedSplat {
        file: "cases/a/b/case.yaml".into(),
        line: 9,
        kind,
        symbol: symbol.map(str::to_owned),
        step: at,
        condition: "kernel < 7.3".parse().ok(),
        reason: "R".to_owned(),
    };
    let steps = vec![step(3, "one", "1\n"), step(5, "two", "2\n")];
    Case { expected_splats: vec![expected], ..testing::case(steps) }
}

/// The splats of this console came after the last step that was answered, or in the one that was cut short.
fn with_console(console: &str, transcript: Transcript) -> Transcript {
    let splats = after(transcript.steps.len() as u64, scan(console));
    Transcript { splats, console: console.to_owned(), ..transcript }
}

/// Dead after these steps were answered.
fn dead(console: &str, outputs: &[&str]) -> Transcript {
    aborted(Abort::Panic, with_console(console, transcript(outputs)))
}

#[test]
fn expected_oops_is_xfail_and_clean_run_is_xpass() {
    let case = expecting(SplatKind::Oops, Some("event_add"), None);
    assert_eq!(verdict(&case, &dead(OOPS, &["1\n"])), "xfail");
    assert_eq!(verdict(&case, &transcript(&["1\n", "2\n"])), "xpass");
    let newer =
        judge(&case, &facts("ppc64le", &[7, 3]), &dead(OOPS, &["1\n"]), &TrialDir { dir: "d".into() });
    assert!(matches!(newer, Outcome::Fail(_)));
}

#[test]
fn wrong_capture_before_an_expected_oops_is_a_failure() {
    let case = expecting(SplatKind::Oops, Some("event_add"), None);
    assert_eq!(verdict(&case, &dead(OOPS, &["wrong\n"])), "fail: capture");
}

#[test]
fn splat_beside_an_expected_oops_is_a_failure() {
    let case = expecting(SplatKind::Oops, Some("event_add"), None);
    let other = "BUG: KASAN: slab-use-after-free in quite_another+0x1/0x2\n";
    assert_eq!(verdict(&case, &dead(&format!("{other}{OOPS}"), &["1\n"])), "fail: kernel");
    assert_eq!(verdict(&case, &dead(&format!("{WARNING}{OOPS}"), &["1\n"])), "fail: kernel");
}

#[test]
fn panic_is_not_an_expected_oops() {
    let case = expecting(SplatKind::Oops, None, None);
    let panic = "Kernel panic - not syncing: sysrq triggered crash\n event_add+0x70/0x178\n";
    assert_eq!(verdict(&case, &dead(panic, &["1\n"])), "fail: kernel");
}

#[test]
fn function_elsewhere_on_the_console_is_not_the_expected_one() {
    let case = expecting(SplatKind::Oops, Some("caller"), None);
    assert_eq!(verdict(&case, &dead(OOPS, &["1\n"])), "fail: kernel");
    let case = expecting(SplatKind::Oops, Some("quoted"), None);
    assert_eq!(verdict(&case, &dead(&format!("echo quoted+0x1/0x2\n{OOPS}"), &["1\n"])), "fail: kernel");
}

#[test]
fn expected_oops_in_another_step_is_a_failure() {
    let case = expecting(SplatKind::Oops, Some("event_add"), Some(1));
    assert_eq!(verdict(&case, &dead(OOPS, &["1\n"])), "xfail");
    assert_eq!(verdict(&case, &dead(OOPS, &[])), "fail: kernel");
}

#[test]
fn lost_guest_beside_an_expected_warning_is_a_failure() {
    let case = expecting(SplatKind::Warning, Some("f"), None);
    for (abort, word) in [
        (timeout(), "hung"),
        (step_error(StepProblem::Signal(11)), "killed"),
        (stopped(StopReason::Port("closed".to_owned())), "fail: kernel"),
    ] {
        let lost = aborted(abort, with_console(WARNING, transcript(&["1\n"])));
        assert_eq!(verdict(&case, &lost), word);
    }
}

#[test]
fn captures_count_after_an_expected_warning() {
    let case = expecting(SplatKind::Warning, Some("f"), None);
    let warned = |console: &str, last: &str| with_console(console, transcript(&["1\n", last]));
    assert_eq!(verdict(&case, &warned(WARNING, "2\n")), "xfail");
    assert_eq!(verdict(&case, &warned(WARNING, "wrong\n")), "fail: capture");
    assert_eq!(verdict(&case, &warned("WARNING: kernel/x.c:1 at g+0x1/0x2\n", "2\n")), "fail: kernel");
    assert_eq!(verdict(&case, &warned("", "2\n")), "xpass");
}

#[test]
fn expected_warning_is_that_of_its_step_only() {
    let warned = |step: usize, request: Option<u64>| {
        let splats = scan(WARNING).into_iter().map(|splat| Splat { after: request, ..splat }).collect();
        let case = expecting(SplatKind::Warning, Some("f"), Some(step));
        verdict(&case, &Transcript { splats, ..transcript(&["1\n", "2\n"]) })
    };
    // In the first step, in the second, and after it.
    assert_eq!(
        [warned(0, Some(0)), warned(0, Some(1)), warned(0, Some(2))],
        ["xfail", "fail: kernel", "fail: kernel"]
    );
    assert_eq!(
        [warned(1, Some(0)), warned(1, Some(1)), warned(1, Some(2))],
        ["fail: kernel", "xfail", "fail: kernel"]
    );
    // In the boot, and after a request that was not made.
    assert_eq!([warned(0, None), warned(0, Some(77))], ["fail: kernel", "fail: kernel"]);
    // Without a step it is that of the last one, or of what the kernel did after it.
    let case = expecting(SplatKind::Warning, Some("f"), None);
    let last = |request| {
        verdict(&case, &Transcript { splats: after(request, scan(WARNING)), ..transcript(&["1\n", "2\n"]) })
    };
    assert_eq!([last(0), last(1), last(2)], ["fail: kernel", "xfail", "xfail"]);
}

#[test]
fn step_of_several_requests_ends_with_the_last() {
    let mut transcript = transcript(&["1\n", "2\n"]);
    transcript.steps[0].requests = vec![10, 11, 12];
    let step = |request| step_of(&after(request, scan(WARNING))[0], &transcript.steps);
    assert_eq!(
        [step(0), step(10), step(11), step(12), step(2)],
        [Some(0), Some(0), Some(0), Some(1), Some(2)]
    );
    // A step that does nothing in the guest has none.
    let mut host = testing::transcript(&["1\n", "2\n"]);
    host.steps[0].requests.clear();
    assert_eq!(step_of(&after(0, scan(WARNING))[0], &host.steps), Some(1));
}

#[test]
fn failure_names_the_step_of_its_splat() {
    let case = testing::case(vec![step(3, "one", "1\n"), step(5, "two", "2\n")]);
    let line = |request| {
        let splats = after(request, scan(WARNING));
        match judged(&case, &Transcript { splats, ..transcript(&["1\n", "2\n"]) }) {
            Outcome::Fail(failures) => match &failures[0] {
                Failure::Kernel { step, .. } => step.as_ref().map(|step| step.line),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    };
    assert_eq!([line(0), line(1), line(2)], [Some(3), Some(5), None]);
}

/// A trial whose kernel is in this state after its last step.
fn in_state(tainted: u64, console_level: u32, message_level: u32, mut transcript: Transcript) -> Transcript {
    let last = transcript.steps.last_mut().expect("a step");
    last.kernel = Some(KernelState { tainted, console_level, message_level });
    transcript
}

#[test]
fn taint_without_a_splat_is_a_failure_that_blesses_nothing() {
    let tainted = |bit: u32| in_state(1 << bit, 5, 4, transcript(&["right\n"]));
    for bit in [4, 5, 7, 9, 14] {
        assert_eq!(verdict(&case(), &tainted(bit)), "fail: tainted", "{bit}");
    }
    let Outcome::Fail(failures) = judged(&case(), &tainted(9)) else { panic!("a failure") };
    assert!(matches!(&failures[0], Failure::Tainted { step, .. } if step.line == 3), "{failures:?}");
    // Modules out of the tree taint, and no kernel is worse for it.
    assert_eq!(verdict(&case(), &tainted(12)), "pass");
    let why = judged(&case(), &tainted(9)).unusable().expect("nothing to bless");
    assert_eq!(why, "the kernel is tainted: W (a warning)");
    // An expected warning accounts for its own taint alone.
    let expecting = expecting(SplatKind::Warning, Some("f"), None);
    let warned = |tainted| in_state(tainted, 5, 4, with_console(WARNING, transcript(&["1\n", "2\n"])));
    assert_eq!(verdict(&expecting, &warned(1 << 9)), "xfail");
    assert_eq!(verdict(&expecting, &warned(1 << 9 | 1 << 7)), "fail: tainted");
}

/// The message of an error.
#[track_caller]
fn message(case: &Case, transcript: &Transcript) -> String {
    match judged(case, transcript) {
        Outcome::Error(error) => error.what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn silenced_console_is_an_error_that_names_the_taint() {
    let silenced = |tainted| in_state(tainted, 1, 4, transcript(&["right\n"]));
    let what = "the levels in /proc/sys/kernel/printk are 1 4 after the step at cases/a/b/case.yaml:3, expected 5 4: the \
                console may not have shown every splat";
    assert_eq!(message(&case(), &silenced(0)), what);
    let expected = format!("{what}; the kernel is tainted: W (a warning)");
    assert_eq!(message(&case(), &silenced(1 << 9)), expected);
    // As is one that was silenced in between.
    let two = testing::case(vec![step(3, "one", "1\n"), step(5, "two", "2\n")]);
    let mut between = transcript(&["1\n", "2\n"]);
    between.steps[0].kernel = Some(KernelState { tainted: 0, console_level: 1, message_level: 4 });
    assert_eq!(message(&two, &between), what);
    // As is one that shows no message without a level of its own.
    assert_eq!(verdict(&case(), &in_state(0, 5, 7, transcript(&["right\n"]))), "error");
    // A splat that it did show is the kernel's failure all the same.
    assert_eq!(verdict(&case(), &with_splats(&[splat(false)], silenced(0))), "fail: kernel");
}

#[test]
fn lost_messages_are_an_error_unless_there_is_a_splat() {
    let lost = |transcript| Transcript { lost_messages: 7, ..transcript };
    assert_eq!(
        message(&case(), &lost(transcript(&["right\n"]))),
        "the kernel's log overflowed: 7 messages are missing on the console"
    );
    assert_eq!(
        verdict(&case(), &lost(with_splats(&[splat(false)], transcript(&["right\n"])))),
        "fail: kernel"
    );
    let expecting = expecting(SplatKind::Oops, Some("event_add"), None);
    assert_eq!(verdict(&expecting, &lost(dead(OOPS, &["1\n"]))), "error");
}

#[test]
fn guest_that_is_not_fit_is_an_error_whatever_it_printed() {
    let line = "tsc: PIT calibration deviates from HPET: 46983 1996038".to_owned();
    let boot = Abort::Boot { line, reason: "R".to_owned() };
    let unfit = aborted(boot, with_splats(&[splat(false)], transcript(&[])));
    let what =
        "the guest is not fit for a trial: tsc: PIT calibration deviates from HPET: 46983 1996038\n  R";
    assert_eq!(message(&case(), &unfit), what);
}
