//! `--config`: a user's addition to the kernels' configuration. Nothing here builds a kernel or boots one of a test's own.

use std::process::Output;

use crate::support::{TestProject, goldtrace};

const CASE: &str = "title: T\nguests: [x86_64]\nsteps:\n  - run: uname -m\n    capture: out\n";

/// A project with the fragment `my.config`.
fn project(fragment: &str) -> TestProject {
    let project = TestProject::new(CASE, &[("out", "x86_64\n")]);
    project.write("my.config", fragment.as_bytes());
    project
}

/// Its exit status, and what it prints on both streams, outside of CI.
fn output(project: &TestProject, arguments: &[&str]) -> (i32, String) {
    let Output { status, stdout, stderr } =
        goldtrace(project, arguments).env_remove("CI").output().expect("runs");
    let text = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    (status.code().expect("a status"), text)
}

#[track_caller]
fn assert_run(project: &TestProject, arguments: &[&str], status: i32, parts: &[&str]) {
    let arguments = [&["run", "--config", "my.config"], arguments].concat();
    let (found, text) = output(project, &arguments);
    assert_eq!(found, status, "{text}");
    for part in parts {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
}

#[test]
fn symbol_that_the_kernel_does_not_honour_is_named_with_its_file() {
    let project = project("CONFIG_GOLDTRACE_NO_SUCH=y\nCONFIG_SMP=n\n");
    let parts = [
        "kernel x86_64: the kernel's configuration is not what was asked for:\n",
        "my.config asks for CONFIG_GOLDTRACE_NO_SUCH=y, and it is not there: it is unknown to this kernel",
    ];
    assert_run(&project, &[], 2, &parts);
}

#[test]
fn fragment_that_asks_for_what_is_there_changes_no_kernel() {
    // A golden that does not fit shows the command line that runs the trial again.
    let project = project("# as in images/kernel/common.config\nCONFIG_IKCONFIG=y\n");
    assert_run(&project, &[], 0, &["1 passed"]);
    project.write("cases/t/out.golden", b"#@ golden v1\nppc64le\n");
    assert_run(&project, &[], 1, &["goldtrace run --config my.config t@x86_64"]);
    // What was run with a fragment describes no kernel of the project.
    let (status, text) = output(&project, &["bless"]);
    assert_eq!(status, 1, "{text}");
    let refusal = "t: refused: the last run's kernel is not the project's own (config my.config)";
    assert!(text.contains(refusal), "{text}");
}

#[test]
fn invalid_fragment_is_refused_before_anything_is_built() {
    for (fragment, error) in [
        ("CONFIG_A=y\nCONFG_B=y\n", "my.config:2: neither CONFIG_NAME=value nor a comment: `CONFG_B=y`"),
        ("# CONFIG of nothing\n", "config fragment `my.config` sets nothing"),
    ] {
        assert_run(&project(fragment), &[], 2, &[error]);
    }
    let project = project("");
    let (status, text) = output(&project, &["run", "--config", "absent.config"]);
    assert_eq!(status, 2, "{text}");
    assert!(text.contains("failed to read config fragment `absent.config`"), "{text}");
}

#[test]
fn blessing_of_a_changed_kernel_is_refused_at_once() {
    let project = project("CONFIG_IKCONFIG=y\n");
    let error =
        "goldens are not written from another kernel than the project's own (config my.config)\nhelp: ";
    assert_run(&project, &["--bless"], 2, &[error]);
    let new = ["new", "module", "mine", "--directory", "cases", "--config", "my.config"];
    let (status, text) = output(&project, &new);
    assert_eq!(status, 2, "{text}");
    assert!(text.contains(error), "{text}");
}
