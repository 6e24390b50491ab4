//! perf in real guests and on the host, and when it is made.

mod support;

use std::process::Command;

use goldtrace::guest::{Guest, GuestName};
use goldtrace::run::{Outcome, PerfFor, Plan};
use support::{TestProject, prepare, shown};

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
fn perf_runs_in_the_guests_and_on_the_host() {
    let lab = prepare(PerfFor::Everything);
    for guest in GUESTS {
        let finished = case(CASE).run(guest, &lab);
        assert!(matches!(finished.outcome, Outcome::Pass), "{}", shown(&finished));
    }
    let program = lab.host_perf().expect("made");
    let output = Command::new(program).arg("--version").output().expect("runs");
    assert!(output.status.success() && output.stdout.starts_with(b"perf version "), "{output:?}");
}

#[test]
fn a_trial_is_skipped_where_perf_has_no_libtraceevent() {
    for guest in GUESTS {
        let lab = prepare(PerfFor::AllGuests).with_changed(&GuestName::new(guest), |bench| {
            bench.image.perf.as_mut().expect("made").perf.features.libtraceevent = false;
        });
        let finished = case(CASE).run(guest, &lab);
        let text = shown(&finished);
        assert!(matches!(finished.outcome, Outcome::Skip(_)), "{text}");
        assert!(text.contains(&format!("perf of guest {guest} was built without libtraceevent")), "{text}");
    }
}

#[test]
fn no_perf_is_made_for_trials_that_need_none_or_are_skipped_anyway() {
    let lab = prepare(PerfFor::Nothing);
    let plain = case(&CASE.replace("requires: [perf]\n", ""));
    let skipped = case(&CASE.replace("[perf]", "[perf, CONFIG_NO_SUCH_THING]"));
    for project in [&plain, &skipped] {
        let cases = project.cases(&lab);
        let guests: Vec<&Guest> = lab.benches().map(|bench| &bench.guest).collect();
        let trials = Plan::make(&cases, &guests, &[]).expect("a plan").trials;
        assert_eq!(trials.len(), GUESTS.len());
        let lab = prepare(PerfFor::Trials(&trials));
        assert!(lab.benches().all(|bench| bench.image.perf.is_none()));
        assert!(lab.host_perf().is_none());
    }
    let finished = skipped.run("ppc64le", &lab);
    assert!(shown(&finished).contains("has no CONFIG_NO_SUCH_THING"), "{}", shown(&finished));
}
