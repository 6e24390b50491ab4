use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use camino::Utf8PathBuf;
use guest::GuestName;
use vm::dispatch_log::{LogError, WriteError};
use vm::qemu::StopReason;
use vm::{SessionError, StepEnd};

use super::*;
use crate::case::Step;
use crate::execute::{DispatchLogError, HarnessError, Inspected, SecondDecoding};
use crate::testing;
use crate::testing::{facts, step, transcript};

pub(super) fn case() -> Case {
    testing::case(vec![step(3, "out", "right\n")])
}

pub(super) fn judged(case: &Case, transcript: &Transcript) -> Outcome {
    judge(case, &facts("ppc64le", &[7, 2, 13]), transcript, &TrialDir { dir: Utf8PathBuf::from("d") })
}

pub(super) fn verdict(case: &Case, transcript: &Transcript) -> &'static str {
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

pub(super) fn aborted(abort: Abort, transcript: Transcript) -> Transcript {
    Transcript { abort: Some(abort), ..transcript }
}

pub(super) fn step_error(problem: StepProblem) -> Abort {
    Abort::Step(StepError { problem, stderr: String::new() })
}

pub(super) fn stopped(reason: StopReason) -> Abort {
    SessionError::Stopped(reason).into()
}

pub(super) fn timeout() -> Abort {
    stopped(StopReason::TimedOut { what: "x".to_owned(), timeout: Duration::from_secs(1) })
}

pub(super) fn splat(fatal: bool) -> Splat {
    scan(if fatal { "Kernel panic - not syncing: x\n" } else { "WARNING: x\n" }).remove(0)
}

/// The splats in lines that the kernel logs.
pub(super) fn scan(text: &str) -> Vec<Splat> {
    let line = |(at, line): (usize, &str)| format!("<4>[    1.{at:06}] {line}\n");
    Splat::scan(text.lines().enumerate().map(line).collect::<String>().as_bytes())
}

/// They came when this request had ended.
pub(super) fn after(request: u64, splats: Vec<Splat>) -> Vec<Splat> {
    splats.into_iter().map(|splat| Splat { after: Some(request), ..splat }).collect()
}

pub(super) fn with_splats(splats: &[Splat], transcript: Transcript) -> Transcript {
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
