//! Runs on a disk without space: a clear error, and never a pass.
//!
//! Each command gets a mount namespace of its own, in which one directory is a small disk. Only root can make one, so for
//! other users these tests check nothing, and say so.

use std::process::{Command, Output};

use crate::support::{TestProject, goldtrace, prepared};
use camino::Utf8Path;
use image::Store;

/// Run goldtrace where `directory` has room for so many KiB: its exit status, and what it printed. `None` without the rights to do so.
fn run_with_disk(
    (directory, room): (&Utf8Path, usize),
    project: &TestProject,
    arguments: &[&str],
) -> Option<(i32, String)> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not root: nothing was checked");
        return None;
    }
    std::fs::create_dir_all(directory).expect("made");
    // A tmpfs has at least a page.
    let script = format!(
        "mount -t tmpfs -o size={}k small \"$0\" && head -c 4k /dev/zero >\"$0/fill\" && exec \"$@\"",
        room + 4
    );
    let command = goldtrace(project, arguments);
    let mut unshared = Command::new("unshare");
    unshared.args(["--mount", "sh", "-c", &script, directory.as_str()]);
    unshared.arg(command.get_program()).args(command.get_args());
    unshared.current_dir(&project.root).env_remove("CI").env("TMPDIR", project.root.join("tmp"));
    std::fs::create_dir_all(project.root.join("tmp")).expect("made");
    let Output { status, stdout, stderr } = unshared.output().expect("runs");
    let text = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    Some((status.code().expect("a status"), text))
}

#[track_caller]
fn assert_output(output: Option<(i32, String)>, expected: i32, parts: &[&str]) {
    let Some((status, text)) = output else { return };
    assert_eq!(status, expected, "{text}");
    for part in parts {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
}

const WITH_MODULE: &str = "title: T\nguests: [x86_64]\nmodules:\n  - directory: m\nsteps:\n  - run: modprobe lives; echo right\n    capture: out\n";

/// A project with a case that needs a module, which has to be built, and one that needs none.
fn project_with_module(test: &str) -> TestProject {
    let project = TestProject::new(WITH_MODULE, &[("out", "right\n")]);
    project.write("cases/t/m/Kbuild", b"obj-m += lives.o\n");
    // Not built before, so that the cache does not have it.
    let source = format!(
        "#include <linux/module.h>\nint {test}_{};\nMODULE_LICENSE(\"GPL\");\nMODULE_DESCRIPTION(\"x\");\n",
        std::process::id()
    );
    project.write("cases/t/m/lives.c", source.as_bytes());
    project.write(
        "cases/u/case.yaml",
        b"title: U\nguests: [x86_64]\nsteps:\n  - run: echo right\n    capture: out\n",
    );
    project.write("cases/u/out.golden", b"#@ golden v1\nright\n");
    project
}

#[test]
fn capture_that_cannot_be_kept_is_an_error() {
    prepared();
    let case = "title: T\nguests: [x86_64]\nsteps:\n  - run: dd if=/dev/zero bs=64k count=4 2>/dev/null | tr '\\0' x\n    capture: out\n";
    let project = TestProject::new(case, &[("out", "x\n")]);
    let results = project.root.join("target/goldtrace");
    let output = run_with_disk((&results, 64), &project, &["run"]);
    assert_output(output, 3, &["ERROR t@x86_64", "No space left on device"]);
}

#[test]
fn module_that_cannot_be_built_for_want_of_space_fails_its_trial_alone() {
    prepared();
    let project = project_with_module("building");
    let building = Store::open_default().expect("a cache").root().join("building");
    let output = run_with_disk((&building, 64), &project, &["run"]);
    let parts =
        ["ERROR t@x86_64", "No space left on device", "PASS  u@x86_64", "1 passed, 0 failed, 1 errors"];
    assert_output(output, 3, &parts);
}

#[test]
fn full_temporary_directory_keeps_nothing_from_its_end() {
    prepared();
    let project = project_with_module("temporary");
    let output = run_with_disk((&project.root.join("tmp"), 0), &project, &["run"]);
    assert_output(output, 0, &["PASS  t@x86_64", "PASS  u@x86_64"]);
}
