//! `--patch` on real builds: each patch changes what is built from the files that it touches and nothing else, and
//! one that cannot be used ends the run before a guest boots.

use std::process::{Command, Output};

use crate::support::TestProject;

const CASE: &str = "\
title: T
guests: [x86_64]
steps:
  - run: |
      modprobe trace-events-sample
      sed -n 's/^print fmt: //p' events/sample-trace/foo_bar_with_cond/format
    capture: out
";
const GOLDEN: &str = "\"foo %s %d\", __get_str(foo), REC->bar\n";

/// A change to what one event of the kernel's sample module prints.
const SAMPLE: &str = "\
--- a/samples/trace_events/trace-events-sample.h
+++ b/samples/trace_events/trace-events-sample.h
@@ -432,7 +432,7 @@
 \t\t__entry->bar\t= bar;
 \t),
\u{20}
-\tTP_printk(\"foo %s %d\", __get_str(foo), __entry->bar)
+\tTP_printk(\"bar %s %d\", __get_str(foo), __entry->bar)
 );
\u{20}
 int foo_bar_reg(void);
";
const PERF: &str = "\
--- a/tools/perf/builtin-version.c
+++ b/tools/perf/builtin-version.c
@@ -38,5 +38,5 @@
 \t\t\t     PARSE_OPT_STOP_AT_NON_OPTION);
\u{20}
-\tprintf(\"perf version %s\\n\", perf_version_string);
+\tprintf(\"patched perf %s\\n\", perf_version_string);
\u{20}
 \tif (version.build_options || verbose > 0)
";

fn project() -> TestProject {
    TestProject::new(CASE, &[("out", GOLDEN)])
}

/// The exit status and the output of a run of the project with this text as its patch.
fn run(project: &TestProject, patch: Option<&str>) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_goldtrace"));
    command.arg("run").current_dir(&project.root).env_remove("CI");
    if let Some(patch) = patch {
        project.write("a.patch", patch.as_bytes());
        command.args(["--patch", "a.patch"]);
    }
    let Output { status, stdout, stderr } = command.output().expect("runs");
    let text = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    (status.code().expect("a status"), text)
}

#[track_caller]
fn assert_run(project: &TestProject, patch: Option<&str>, status: i32, parts: &[&str]) -> String {
    let (found, text) = run(project, patch);
    assert_eq!(found, status, "{text}");
    for part in parts {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
    assert!(!text.contains("kernel x86_64: begun"), "a kernel was built:\n{text}");
    text
}

#[test]
fn patch_to_a_sample_changes_the_module_and_fails_its_case() {
    let project = project();
    assert_run(&project, None, 0, &["1 passed"]);
    assert_run(&project, Some(SAMPLE), 1, &["bar %s %d", "1 failed"]);
    // What was built with the patch is not used without it.
    assert_run(&project, None, 0, &["1 passed"]);
}

#[test]
fn patch_that_does_not_apply_shows_the_rejected_hunk() {
    let patch = SAMPLE.replace("-\tTP_printk(\"foo %s", "-\tTP_printk(\"fool %s");
    let parts = [
        "failed to apply patch `a.patch` to linux-source-",
        "Hunk #1 FAILED at 432",
        "-\tTP_printk(\"fool %s %d\"",
        "help: a patch must apply without fuzz",
    ];
    assert_run(&project(), Some(&patch), 2, &parts);
}

#[test]
fn patch_to_a_file_that_is_not_there_names_it() {
    let patch = SAMPLE.replace("trace-events-sample.h", "trace-events-simple.h");
    let parts = ["can't find file to patch", "trace-events-simple.h"];
    assert_run(&project(), Some(&patch), 2, &parts);
}

#[test]
fn patch_that_does_not_compile_shows_the_compilers_error() {
    let patch = SAMPLE.replace("__entry->bar)\n );", "__entry->baz)\n );");
    let parts = [
        "failed to compile modules trace_events-x86_64: exit status",
        "has no member named",
        "baz",
        "the whole output: /",
    ];
    assert_run(&project(), Some(&patch), 4, &parts);
}

#[test]
fn file_without_a_diff_is_not_a_patch() {
    assert_run(
        &project(),
        Some("words\n"),
        2,
        &["`a.patch` is not a patch", "help: make one with `git diff`"],
    );
}

#[test]
fn patch_to_what_no_trial_boots_is_refused() {
    let documentation =
        "--- a/Documentation/trace/events.rst\n+++ b/Documentation/trace/events.rst\n@@ -1 +1 @@\n-a\n+b\n";
    let rename = "diff --git a/samples/bpf/a.c b/samples/bpf/b.c\nrename from samples/bpf/a.c\nrename to samples/bpf/b.c\n";
    for (patch, touched) in [
        (documentation, "Documentation/trace/events.rst"),
        (rename, "samples/bpf/a.c, samples/bpf/b.c"),
        (PERF, "tools/perf/builtin-version.c"),
    ] {
        let error = format!(
            "error: patch `a.patch` changes nothing of what these trials boot: it touches only {touched}\nhelp: "
        );
        assert_run(&project(), Some(patch), 2, &[error.as_str()]);
    }
}

#[test]
fn patch_to_perf_changes_perf_alone() {
    let case = "\
title: T
guests: [x86_64]
requires: [perf]
steps:
  - run: perf --version
    capture: out
";
    let project = TestProject::new(case, &[("out", "perf version {{re:[6-9][.][0-9]+[.][0-9]+}}\n")]);
    let text = assert_run(&project, Some(PERF), 1, &["patched perf "]);
    assert!(!text.contains("modules trace_events-x86_64: begun"), "modules were built:\n{text}");
}
