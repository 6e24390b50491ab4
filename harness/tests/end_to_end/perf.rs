//! perf in real guests, and when it is made.

use crate::support::{TestProject, prepared, shown};
use guest::Guest;
use trial::{Outcome, TrialPlan, Unprepared};
use vm::qemu::Accel;

const GUESTS: [&str; 2] = ["x86_64", "ppc64le"];

const CASE: &str = "\
title: T
requires: [perf]
steps:
  - run: perf --version
    capture: version
  - run: perf stat -x, -e dummy true 2>&1 | cut -d, -f1,3
    capture: stat
  - run: perf list --raw-dump tracepoint | tr ' ' '\\n' | grep -x sched:sched_waking
    capture: tracepoint
";

fn case(text: &str) -> TestProject {
    let goldens = [
        ("version", "perf version {{re:[6-9][.][0-9]+[.][0-9]+}}\n"),
        ("stat", "0,dummy\n"),
        ("tracepoint", "sched:sched_waking\n"),
    ];
    TestProject::new(text, &goldens)
}

#[test]
fn perf_runs_in_the_guests() {
    for guest in GUESTS {
        let finished = case(CASE).run(guest);
        assert!(matches!(finished.outcome, Outcome::Pass), "{}", shown(&finished));
    }
}

#[test]
fn a_trial_is_skipped_where_perf_has_no_libtraceevent() {
    for guest in GUESTS {
        let finished = case(CASE).run_changed(guest, |ready| {
            ready.rootfs.perf.as_mut().expect("made").features.libtraceevent = false;
        });
        let text = shown(&finished);
        assert!(matches!(finished.outcome, Outcome::Skip(_)), "{text}");
        assert!(text.contains(&format!("perf of guest {guest} was built without libtraceevent")), "{text}");
    }
}

#[test]
fn no_perf_is_made_for_trials_that_need_none_or_are_skipped_anyway() {
    let plain = case(&CASE.replace("requires: [perf]\n", ""));
    let skipped = case(&CASE.replace("[perf]", "[perf, CONFIG_NO_SUCH_THING]"));
    let guests: Vec<&Guest> = crate::support::guests().iter().collect();
    for (project, is_skipped) in [(&plain, false), (&skipped, true)] {
        let cases = project.cases();
        let trials = TrialPlan::make(&cases, &guests, &[]).expect("a plan").trials;
        assert_eq!(trials.len(), GUESTS.len());
        for trial in &trials {
            match prepared().trial(trial) {
                Ok(ready) => assert!(!is_skipped && ready.rootfs.perf.is_none() && ready.decoder.is_none()),
                Err(Unprepared::Skip(_)) => assert!(is_skipped),
                Err(Unprepared::Failed(error)) => panic!("{error}"),
            }
        }
    }
    let finished = skipped.run("ppc64le");
    assert!(shown(&finished).contains("has no CONFIG_NO_SUCH_THING"), "{}", shown(&finished));
}

/// A case that records on ppc64le while this log is written.
fn recording(script: &str, log: &str) -> TestProject {
    let text = format!(
        "title: T\nrequires: [perf]\ncwd: /tmp\nsteps:\n  - run: {script}\n    dispatch_log: {log}\n    capture: out\n"
    );
    TestProject::new(&text, &[("out", "")])
}

#[track_caller]
fn assert_error(project: &TestProject, guest: &str, part: &str) {
    let finished = project.run(guest);
    let text = shown(&finished);
    assert!(matches!(finished.outcome, Outcome::Error(_)) && text.contains(part), "no `{part}` in:\n{text}");
}

#[track_caller]
fn assert_fail(project: &TestProject, guest: &str, part: &str) {
    let finished = project.run(guest);
    let text = shown(&finished);
    assert!(matches!(finished.outcome, Outcome::Fail(_)) && text.contains(part), "no `{part}` in:\n{text}");
}

#[test]
fn recording_that_ends_before_the_log_is_written_is_a_failure() {
    let record = "perf record -o p.data -C 1 -e vpa_dtl/dtl_all/ -c 1000000";
    let ended = recording(&format!("{record} true 2> /dev/null"), "[{cpu: 1, count: 1, at: 20s}]");
    assert_fail(&ended, "ppc64le", "ended early: the command ended before the time of an entry");
    let off = recording("true 1", "[{cpu: 1, count: 1}]");
    assert_fail(
        &off,
        "ppc64le",
        "ended early: the command ended before the guest asked for the log of CPU 1: exit status 0",
    );
}

#[test]
fn log_that_cannot_be_written_as_planned_is_an_error() {
    let record = "perf record -o p.data -C 1 -e vpa_dtl/dtl_all/ -c 1000000";
    let other = recording(&format!("{record} cat 2> /dev/null"), "[{cpu: 7, count: 1}]");
    assert_error(&other, "ppc64le", "cannot write the log of CPU 7: the guest has 2 CPUs");
    let symbol = recording(&format!("{record} cat"), "[{cpu: 1, count: 1, srr0: plpar_hcal_norets}]");
    assert_error(&symbol, "ppc64le", "the kernel has no symbol `plpar_hcal_norets`");
    let x86 = recording("cat", "[{cpu: 0, count: 1}]");
    assert_error(&x86, "x86_64", "the guest's processor has no timebase");
}

#[test]
fn a_second_recording_in_between_is_never_written() {
    let record = "perf record -o p.data -C 1 -e vpa_dtl/dtl_all/ -c 1000000";
    let script = format!("\"{record} sleep 0.5 2> /dev/null; {record} sleep 20 2> /dev/null\"");
    let again = recording(&script, "[{cpu: 1, count: 1}, {cpu: 1, count: 1, at: 2500ms}]");
    assert_fail(&again, "ppc64le", "unread: CPU 1: the log is no longer the one that was being written");
}

#[test]
fn a_trial_that_requires_tcg_is_skipped_under_kvm() {
    let project = TestProject::new(
        "title: T\nrequires: [tcg]\nsteps:\n  - run: echo 1\n    capture: out\n",
        &[("out", "1\n")],
    );
    let finished = project.run_changed("ppc64le", |ready| ready.accel.accel = Accel::Kvm);
    let text = shown(&finished);
    assert!(matches!(finished.outcome, Outcome::Skip(_)), "{text}");
    assert!(text.contains("guest ppc64le runs under kvm, and the case requires tcg"), "{text}");
    let finished = project.run("x86_64");
    assert!(matches!(finished.outcome, Outcome::Pass), "{}", shown(&finished));
}
