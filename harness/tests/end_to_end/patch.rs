//! `--patch` on real builds: each patch changes what is built from the files that it touches and nothing else, and
//! one that cannot be used ends the run before a guest boots.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Output};

use camino::{Utf8Path, Utf8PathBuf};
use image::Store;

use crate::support::{TestProject, goldtrace, prepared};

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

/// A change to what a kernel prints when it restarts.
const KERNEL: &str = "\
--- a/kernel/reboot.c
+++ b/kernel/reboot.c
@@ -288,7 +288,7 @@
 \tmigrate_to_reboot_cpu();
 \tsyscore_shutdown();
 \tif (!cmd)
-\t\tpr_emerg(\"Restarting system\\n\");
+\t\tpr_emerg(\"Starting the system again\\n\");
 \telse
 \t\tpr_emerg(\"Restarting system with command '%s'\\n\", cmd);
 \tkmsg_dump(KMSG_DUMP_SHUTDOWN);
";
/// A change to a header that many files include.
const HEADER: &str = "\
--- a/include/linux/reboot.h
+++ b/include/linux/reboot.h
@@ -9,7 +9,7 @@
 struct device;
 struct sys_off_handler;
\u{20}
-#define SYS_DOWN\t0x0001\t/* Notify of system down */
+#define SYS_DOWN\t0x0011\t/* Notify of system down */
 #define SYS_RESTART\tSYS_DOWN
 #define SYS_HALT\t0x0002\t/* Notify of system halt */
 #define SYS_POWER_OFF\t0x0003\t/* Notify of system power off */
";

/// The files of the kernel that is built with a patch in a cache, and in which directory they are.
fn kernel_of(cache: &Utf8Path, patch: &str) -> Utf8PathBuf {
    let project = project();
    project.write("a.patch", patch.as_bytes());
    let kernels = || -> BTreeSet<Utf8PathBuf> {
        let products = cache.join("products").read_dir_utf8().expect("there");
        let paths = products.map(|entry| entry.expect("an entry").into_path());
        paths.filter(|path| path.file_name().is_some_and(|name| name.starts_with("kernel-x86_64-"))).collect()
    };
    let before = kernels();
    let mut command = goldtrace(&project, &["build", "--guest", "x86_64", "--patch", "a.patch"]);
    let output = command.env("GOLDTRACE_CACHE", cache).output().expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let made: Vec<Utf8PathBuf> = kernels().difference(&before).cloned().collect();
    let [made] = made.try_into().expect("one kernel");
    made
}

#[test]
#[ignore = "builds four kernels: cargo test --test end_to_end kept_tree -- --ignored"]
fn kept_tree_makes_the_kernel_that_a_new_one_makes() {
    prepared();
    let default = Store::open_default().expect("a cache").root().to_owned();
    // On its file system, so that a link to a file will do for a copy.
    let caches = tempfile::tempdir_in(default.parent().expect("a directory")).expect("a directory");
    let caches = Utf8Path::from_path(caches.path()).expect("UTF-8");
    let cache = |name: &str| {
        let cache = caches.join(name);
        fs::create_dir_all(cache.join("products")).expect("made");
        let script = "cp -al \"$0/apt\" \"$0/sources\" \"$1\" && cp -al \"$0\"/products/package-* \"$1/products\" && \
                      cp -a \"$0/ccache\" \"$1\"";
        let copied = Command::new("sh").args(["-c", script, default.as_str(), cache.as_str()]).status();
        assert!(copied.expect("runs").success());
        cache
    };
    let (new, kept) = (cache("new"), cache("kept"));
    let clean = kernel_of(&new, KERNEL);
    let added = HEADER.replace("0x0011", "0x0021");
    for patch in [HEADER, &format!("{KERNEL}{added}")] {
        kernel_of(&kept, patch);
    }
    let again = kernel_of(&kept, KERNEL);
    assert_eq!(clean.file_name(), again.file_name(), "the same inputs");
    for file in ["kernel", "System.map", "config", "release"] {
        let same =
            fs::read(clean.join(file)).expect("readable") == fs::read(again.join(file)).expect("readable");
        assert!(same, "{file} differs: {clean} and {again}");
    }
    // What modules are built against, but for the times of its files, and for objtool, whose build writes the path of its
    // tree into it.
    let unpack = |kernel: &Utf8Path, to: &str| {
        let to = caches.join(to);
        fs::create_dir(&to).expect("made");
        let mut tar = Command::new("tar");
        tar.args(["-xzf", kernel.join("kbuild.tar.gz").as_str(), "-C"]).arg(&to);
        assert!(tar.status().expect("runs").success());
        to
    };
    let diff = Command::new("diff").arg("-rq").args([unpack(&clean, "a"), unpack(&again, "b")]).output();
    let diff = String::from_utf8(diff.expect("runs").stdout).expect("text");
    let differences: Vec<&str> =
        diff.lines().filter(|line| !line.ends_with("/tools/objtool/objtool differ")).collect();
    assert_eq!(differences, [""; 0], "of what modules are built against");
}
