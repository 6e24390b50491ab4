//! The command `goldtrace` as a user meets it: messages, exit statuses, and what it leaves on the machine.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;

use crate::support::waiting::Waiting;
use crate::support::{TestProject, goldtrace, output, prepared};

const CASE: &str = "title: T\nsteps:\n  - run: echo right\n    capture: out\n";

#[track_caller]
fn assert_refused(project: &TestProject, arguments: &[&str], parts: &[&str]) {
    let (status, text) = output(project, arguments);
    assert_eq!(status, 2, "{text}");
    for part in parts {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
}

#[test]
fn errors_of_all_files_are_reported_before_anything_runs() {
    let project = TestProject::new("titel: T\nguests: [ppc64]\nsteps:\n  - run: true\n", &[("left", "")]);
    project.write("cases/u/case.yaml", CASE.as_bytes());
    project.write("cases/u/out.golden", b"#@ golden v1\n\xff\n");
    project.write("cases/stray.txt", b"");
    assert_refused(
        &project,
        &["run"],
        &[
            "unknown key `titel`",
            "cases/t/case.yaml:1:1",
            "did you mean `title`?",
            "missing key `title`",
            "unknown guest `ppc64`",
            "did you mean `ppc64le`?",
            "expected text, found the boolean true",
            "the case asserts nothing",
            "cases/t/left.golden",
            "the byte 0xff here is not",
            "cases/u/out.golden:2:1",
            "cases/stray.txt",
            "nothing was run",
        ],
    );
}

#[test]
fn pass_failure_and_error_have_statuses_of_their_own() {
    prepared();
    let pass = TestProject::new(CASE, &[("out", "right\n")]);
    let (status, text) = output(&pass, &["run", "--guest", "x86_64"]);
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("1 passed, 0 failed, 0 errors, 0 skipped"), "{text}");
    let fail = TestProject::new(CASE, &[("out", "wrong\n")]);
    assert_eq!(output(&fail, &["run", "--guest", "x86_64"]).0, 1);
    // More than a frame of the agent's protocol holds: nothing is said of the kernel.
    let large = format!("title: T\nsteps:\n  - run: ': {}'\n    capture: out\n", "x".repeat(1 << 20));
    let error = TestProject::new(&large, &[("out", "")]);
    assert_eq!(output(&error, &["run", "--guest", "x86_64"]).0, 3);
}

#[test]
fn recording_is_drawn() {
    let project = TestProject::without_cases();
    project.write("a.perf_script", include_bytes!("../../crates/formats/src/testdata/dispatch.perf_script"));
    let plot = ["dtl-plot", "a.perf_script", "-o", "a.svg"];
    for _ in ["new", "written over"] {
        let (status, text) = output(&project, &plot);
        assert!(status == 0 && text.contains("3 entries of the dispatch trace log: wrote a.svg"), "{text}");
    }
    let picture = || std::fs::read_to_string(project.root.join("a.svg")).expect("a picture");
    assert!(picture().contains(">a.perf_script</text>") && picture().contains("2000 us (1024000 ticks)"));
    assert_eq!(output(&project, &[&plot[..], &["--frequency", "1024000"]].concat()).0, 0);
    assert!(picture().contains("1000000 us (1024000 ticks)"));
    let (status, text) = output(&project, &["dtl-plot", "a.perf_script", "-o", "absent/a.svg"]);
    let why = "failed to write the picture of `a.perf_script` to `absent/a.svg`: No such file or directory";
    assert!(status == 3 && text.contains(why), "{text}");
}

#[test]
fn text_without_samples_is_not_drawn() {
    let project = TestProject::without_cases();
    let dump = include_str!("../../crates/formats/src/testdata/dispatch.perf_dump");
    let script = include_str!("../../crates/formats/src/testdata/dispatch.perf_script");
    project.write("other", b"a\nb\n");
    project.write("dump", dump.as_bytes());
    project.write("bad_dump", dump.replace("time:16,", "time:x,").as_bytes());
    project.write("broken", script.replace("processor_id: 3", "processor_id: x").as_bytes());
    let refused = |capture: &str, parts: &[&str]| {
        assert_refused(&project, &["dtl-plot", capture, "-o", "a.svg"], parts);
    };
    refused("absent", &["failed to read capture `absent`: No such file"]);
    refused("other", &["`other` has no vpa-dtl sample in its 2 lines", "`perf script` prints"]);
    refused(
        "dump",
        &["in its 32 lines", "`perf report -D`", "4 entries have no times", "`perf script` prints"],
    );
    refused(
        "bad_dump",
        &[
            "`perf report -D`",
            "have no times (failed to read line 24 of the dispatch trace log",
            "`perf script` prints",
        ],
    );
    refused(
        "broken",
        &["failed to read capture `broken`: failed to read line 4 ", "processor_id: NUMBER", "unchanged"],
    );
    assert_refused(&project, &["dtl-plot", "other", "-o", "./other"], &["is the capture itself"]);
    assert_refused(&project, &["dtl-plot", "other", "-o", "a.svg", "--frequency", "0"], &["--frequency"]);
    assert!(!project.root.join("a.svg").exists());
}

#[test]
fn killed_goldtrace_leaves_no_qemu() {
    let mut waiting = Waiting::start(&[]);
    waiting.signal("-KILL");
    waiting.wait_for_end_of_qemu();
    assert_eq!(waiting.child.wait().expect("ended").signal(), Some(9));
}

#[test]
fn interrupted_goldtrace_exits_with_130_and_leaves_no_qemu() {
    for (signal, more) in [("-INT", &[][..]), ("-TERM", &["--bless"])] {
        let mut waiting = Waiting::start(more);
        waiting.signal(signal);
        waiting.wait_for_end_of_qemu();
        let out = waiting.child.stdout.take().expect("piped");
        let text: String =
            BufReader::new(out).lines().map_while(Result::ok).map(|line| line + "\n").collect();
        assert_eq!(waiting.child.wait().expect("ended").code(), Some(130), "{text}");
        assert!(text.contains("1 interrupted"), "{text}");
    }
}

fn goldens(project: &TestProject) -> String {
    std::fs::read_to_string(project.root.join("cases/t/out.golden")).expect("a golden")
}

/// `CI` may be set around the tests, and a person's commands are what is tested here.
fn by_hand(project: &TestProject, arguments: &[&str]) -> (i32, String) {
    let output = goldtrace(project, arguments).output().expect("runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().expect("a status"), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn bless_writes_goldens_of_the_last_run_only_when_they_differ() {
    prepared();
    let case = "title: T\nguests: [x86_64]\nsteps:\n  - run: echo right; cat /proc/version > /dev/null\n    capture: out\n";
    let project = TestProject::new(case, &[("out", "wrong\n")]);
    let (status, text) = by_hand(&project, &["bless"]);
    assert!(status == 1 && text.contains("there is no last run"), "{text}");
    assert_eq!(by_hand(&project, &["run"]).0, 1);
    let (status, text) = by_hand(&project, &["bless"]);
    assert_eq!(status, 0, "{text}");
    assert!(goldens(&project).contains(" capture=out steps=") && goldens(&project).ends_with("\nright\n"));
    assert_eq!(by_hand(&project, &["run"]).0, 0);
    let (_, text) = by_hand(&project, &["bless"]);
    assert!(text.contains("t: unchanged"), "{text}");

    // An edited case makes its golden and its artefacts stale.
    project.write("cases/t/case.yaml", case.replace("right;", "right  ;").as_bytes());
    let (_, text) = by_hand(&project, &["bless"]);
    assert!(text.contains("the case has changed since the last run"), "{text}");
    let (status, text) = by_hand(&project, &["lint"]);
    assert!(
        status == 1 && text.contains("the case's steps have changed since this golden was written"),
        "{text}"
    );
    let (status, text) = by_hand(&project, &["run"]);
    assert!(status == 0 && text.contains("warning: cases/t/out.golden:1"), "{text}");
    let in_ci = goldtrace(&project, &["run"]).env("CI", "true").output().expect("runs");
    assert_eq!(in_ci.status.code(), Some(2));
}

#[test]
fn bless_is_refused_after_a_failed_step_or_a_splat() {
    prepared();
    for (script, why) in [
        ("echo a; exit 3", "`echo a; exit 3` was refused: exit status 3"),
        ("echo a; echo '<4>BUG: made up' > /dev/kmsg", "the kernel printed a splat: BUG: made up"),
    ] {
        let case = format!("title: T\nguests: [x86_64]\nsteps:\n  - run: \"{script}\"\n    capture: out\n");
        let project = TestProject::new(&case, &[("out", "wrong\n")]);
        by_hand(&project, &["run"]);
        let (status, text) = by_hand(&project, &["bless"]);
        assert!(status == 1 && text.contains(why), "{text}");
        assert_eq!(goldens(&project), "#@ golden v1\nwrong\n");
    }
}

#[test]
fn run_that_blesses_writes_a_missing_golden() {
    prepared();
    let project =
        TestProject::new("title: T\nguests: [ppc64le]\nsteps:\n  - run: uname -m\n    capture: out\n", &[]);
    assert_refused(
        &project,
        &["run"],
        &["failed to read the golden `cases/t/out.golden`", "goldtrace run --bless"],
    );
    let (status, text) = by_hand(&project, &["run", "--bless"]);
    assert_eq!(status, 0, "{text}");
    assert!(goldens(&project).ends_with("\nppc64le\n"));
    assert_eq!(by_hand(&project, &["run"]).0, 0);
}
