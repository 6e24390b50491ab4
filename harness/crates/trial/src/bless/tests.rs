use std::fs;

use super::*;
use crate::judge::{Outcome, TrialError};
use crate::record::ConsoleRecord;
use crate::testing::{TestRun, case, facts, step};

/// A case of two captures, whose goldens the last run does not fit.
fn two_captures() -> Case {
    case(vec![step(3, "one", "old one\n"), step(5, "two", "old two\n")])
}

const NEW: [(&str, &str); 2] = [("one", "new one\n"), ("two", "new two\n")];
const KERNEL: &[u32] = &[7, 2, 13];

fn refusal(test: &TestRun, case: &Case) -> String {
    let blessing = bless_case(&test.project, case).expect("files are readable");
    let goldens = fs::read_dir(test.project.path("cases/a/b")).expect("readable").count();
    assert_eq!(goldens, 0, "a refusal writes nothing");
    match blessing {
        Blessing::Refused(refusal) => refusal.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn goldens_are_written_from_captures() {
    let (test, case) = (TestRun::new(), two_captures());
    test.ran(&case, "ppc64le", KERNEL, &NEW);
    test.ran(&case, "x86_64", KERNEL, &NEW);
    let files = ["cases/a/b/one.golden", "cases/a/b/two.golden"].map(Utf8PathBuf::from);
    assert_eq!(bless_case(&test.project, &case).expect("written"), Blessing::Written(files.to_vec()));
    let one = fs::read_to_string(test.project.path("cases/a/b/one.golden")).expect("written");
    let (header, body) = one.split_once('\n').expect("a header");
    assert!(header.contains("blessed=ppc64le,x86_64/7.2.13"), "{header}");
    assert_eq!(body, "new one\n");
}

#[test]
fn golden_that_cannot_be_written_leaves_the_others_as_they_are() {
    let (test, case) = (TestRun::new(), two_captures());
    test.ran(&case, "ppc64le", KERNEL, &NEW);
    test.ran(&case, "x86_64", KERNEL, &NEW);
    let dir = test.project.path("cases/a/b");
    fs::write(dir.join("one.golden"), "as it was").expect("written");
    // The second golden cannot take its place.
    fs::create_dir(dir.join("two.golden")).expect("made");
    let error = bless_case(&test.project, &case).expect_err("not written");
    assert!(error.to_string().contains("two.golden` is a directory"), "{error}");
    assert_eq!(fs::read_to_string(dir.join("one.golden")).expect("there"), "as it was");
    assert_eq!(fs::read_dir(&dir).expect("readable").count(), 2, "nothing is left beside them");
}

#[test]
fn no_last_run_is_refused() {
    let (test, case) = (TestRun::new(), two_captures());
    fs::remove_file(test.project.results().join("last")).expect("removed");
    assert_eq!(refusal(&test, &case), "there is no last run: run the case first");
}

#[test]
fn missing_guest_is_refused() {
    let (test, case) = (TestRun::new(), two_captures());
    test.ran(&case, "ppc64le", KERNEL, &NEW);
    assert_eq!(
        refusal(&test, &case),
        "the last run has no trial of it on x86_64: a golden must fit all guests of its case"
    );
}

#[test]
fn different_kernels_are_refused() {
    let (test, case) = (TestRun::new(), two_captures());
    test.ran(&case, "ppc64le", KERNEL, &NEW);
    test.ran(&case, "x86_64", &[7, 2, 14], &NEW);
    assert_eq!(refusal(&test, &case), "its guests ran different kernels: 7.2.13, 7.2.14");
}

#[test]
fn changed_case_is_refused() {
    let (test, case) = (TestRun::new(), two_captures());
    test.ran(&case, "ppc64le", KERNEL, &NEW);
    test.ran(&case, "x86_64", KERNEL, &NEW);
    let case = Case { digest: "another".to_owned(), ..case };
    assert_eq!(refusal(&test, &case), "the case has changed since the last run: run it again");
}

/// The refusal after a trial of this outcome on one of two guests.
fn refusal_after(outcome: &Outcome) -> String {
    let (test, case) = (TestRun::new(), two_captures());
    test.ran(&case, "ppc64le", KERNEL, &NEW);
    let record = TrialRecord::new(&case, Some(ran_on(Vec::new())), outcome, ConsoleRecord::default());
    test.recorded(&case, "x86_64", &record, &NEW);
    refusal(&test, &case)
}

fn ran_on(changes: Vec<String>) -> RanOn {
    RanOn { release: "7.2.13-x".to_owned(), facts: facts("x86_64", KERNEL), changes }
}

#[test]
fn changed_kernel_is_refused() {
    let (test, case) = (TestRun::new(), two_captures());
    test.ran(&case, "ppc64le", KERNEL, &NEW);
    let patched = ran_on(vec!["patch fix.patch".to_owned()]);
    let record = TrialRecord::new(&case, Some(patched), &Outcome::Pass, ConsoleRecord::default());
    test.recorded(&case, "x86_64", &record, &NEW);
    assert_eq!(
        refusal(&test, &case),
        "the last run's kernel is not the project's own (patch fix.patch): run the case without that"
    );
}

#[test]
fn error_and_interrupt_are_refused() {
    let error = TrialError { what: "QEMU exited".to_owned(), ..TrialError::default() };
    assert_eq!(
        refusal_after(&Outcome::Error(Box::new(error))),
        "on x86_64, the trial was an error: QEMU exited"
    );
    assert_eq!(refusal_after(&Outcome::Interrupted), "on x86_64, the trial was interrupted");
}

#[test]
fn case_that_is_skipped_on_every_guest_is_refused() {
    let (test, case) = (TestRun::new(), two_captures());
    let record =
        TrialRecord::new(&case, None, &Outcome::Skip("no CONFIG_X".to_owned()), ConsoleRecord::default());
    for guest in ["ppc64le", "x86_64"] {
        test.recorded(&case, guest, &record, &[]);
    }
    assert_eq!(refusal(&test, &case), "on each of its guests the trial was skipped: no CONFIG_X");
}

#[test]
fn case_that_is_skipped_on_one_guest_is_blessed_from_the_other() {
    let (test, case) = (TestRun::new(), two_captures());
    let record =
        TrialRecord::new(&case, None, &Outcome::Skip("no CONFIG_X".to_owned()), ConsoleRecord::default());
    test.recorded(&case, "ppc64le", &record, &[]);
    test.ran(&case, "x86_64", KERNEL, &NEW);
    let blessing = bless_case(&test.project, &case).expect("written");
    assert!(matches!(blessing, Blessing::Written(files) if files.len() == 2));
}

#[test]
fn trial_that_ended_before_a_capture_is_refused() {
    let (test, case) = (TestRun::new(), two_captures());
    test.ran(&case, "ppc64le", KERNEL, &NEW);
    test.ran(&case, "x86_64", KERNEL, &NEW[..1]);
    assert_eq!(refusal(&test, &case), "on x86_64, the trial ended before `two` was captured");
}

#[test]
fn capture_that_no_golden_can_be_written_for_is_left_to_a_person() {
    let (test, case) = (TestRun::new(), two_captures());
    test.ran(&case, "ppc64le", KERNEL, &NEW);
    test.ran(&case, "x86_64", KERNEL, &[("one", "new one\n"), ("two", "no line end")]);
    let why = refusal(&test, &case);
    assert!(why.starts_with("cases/a/b/two.golden: ") && why.ends_with("; edit it by hand"), "{why}");
}
