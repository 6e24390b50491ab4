//! Splats, taint and lost messages beside everything else that a trial comes to.

use vm::SplatKind;
use vm::qemu::StopReason;

use super::*;
use crate::case::ExpectedAt;
use crate::testing;
use crate::testing::{facts, step, transcript};

use super::tests::*;

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
        message: None,
        step: at.map_or(ExpectedAt::Last, ExpectedAt::Step),
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
fn expected_warning_may_come_again_and_another_of_its_function_may_not() {
    let case = expecting(SplatKind::Warning, Some("f"), None);
    let verdict_of = |second: &str| {
        let warned = with_console(&format!("{WARNING}{second}"), transcript(&["1\n", "2\n"]));
        verdict(&case, &warned)
    };
    assert_eq!(verdict_of(WARNING), "xfail");
    assert_eq!(verdict_of("WARNING: kernel/x.c:1 at f+0x1/0x2, CPU#0: perf/7\n"), "xfail");
    assert_eq!(verdict_of("WARNING: kernel/x.c:2 at f+0x9/0x20, CPU#1: sh/1\n"), "fail: kernel");
    let called = format!("{WARNING}CPU: 1\nCall Trace:\n another_caller+0x1/0x2\n");
    assert_eq!(verdict_of(&called), "fail: kernel");
}

#[test]
fn expected_message_is_known_by_its_whole_line() {
    let mut case = expecting(SplatKind::Message, None, None);
    case.expected_splats[0].message = Some(guest::KnownMessage {
        pattern: "lost \\d+ events".to_owned(),
        reason: "R".to_owned(),
        sometimes: false,
        line: 9,
    });
    let verdict_of =
        |line: &str| verdict(&case, &with_console(&format!("{line}\n"), transcript(&["1\n", "2\n"])));
    assert_eq!(verdict_of("lost 7 events"), "xfail");
    assert_eq!(verdict_of("lost 7 events of 8"), "fail: kernel");
    assert_eq!(verdict_of("another message"), "fail: kernel");
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

#[test]
fn splat_that_any_step_may_bring_is_expected_in_each_and_missed_when_none_does() {
    let mut case = expecting(SplatKind::Warning, Some("f"), None);
    case.expected_splats[0].step = ExpectedAt::Any;
    let in_steps = |steps: &[u64]| {
        let splats = steps.iter().flat_map(|step| after(*step, scan(WARNING))).collect();
        Transcript { splats, ..transcript(&["1\n", "2\n"]) }
    };
    for steps in [&[0][..], &[1], &[0, 1], &[2]] {
        assert_eq!(verdict(&case, &in_steps(steps)), "xfail", "{steps:?}");
    }
    assert_eq!(verdict(&case, &in_steps(&[])), "xpass");
    let other = Transcript { splats: after(0, scan(&WARNING.replace("f+", "g+"))), ..in_steps(&[0]) };
    assert_eq!(verdict(&case, &other), "fail: kernel");
}
