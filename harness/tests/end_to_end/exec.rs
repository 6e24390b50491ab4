//! `goldtrace exec` on real guests: what a command prints and how it ends, byte for byte, and files in and out.

use std::fs;
use std::process::{Output, Stdio};

use crate::support::{TestProject, goldtrace, prepared};

fn exec(arguments: &[&str]) -> (i32, Vec<u8>, String) {
    exec_in(&TestProject::without_cases(), arguments)
}

/// The exit status, standard output and standard error.
fn exec_in(project: &TestProject, arguments: &[&str]) -> (i32, Vec<u8>, String) {
    exec_with(project, arguments, Stdio::null())
}

fn exec_with(project: &TestProject, arguments: &[&str], stdin: Stdio) -> (i32, Vec<u8>, String) {
    prepared();
    let mut command = goldtrace(project, &[&["exec"], arguments].concat());
    let Output { status, stdout, stderr } = command.stdin(stdin).output().expect("runs");
    let stderr = String::from_utf8(stderr).expect("text");
    // Builds, the first time, are reported there.
    let stderr = stderr.lines().filter(|line| !line.ends_with(": begun") && !line.contains(": done in "));
    (status.code().expect("a status"), stdout, stderr.map(|line| format!("{line}\n")).collect())
}

#[test]
fn streams_are_apart_and_the_status_is_the_commands() {
    for guest in ["x86_64", "ppc64le"] {
        let (status, stdout, stderr) =
            exec(&["--guest", guest, "--", "printf 'a\\0b\\377\\n'; echo problem >&2; false; pwd; exit 7"]);
        assert_eq!((status, stderr.as_str()), (7, "problem\n"));
        assert_eq!(stdout, b"a\0b\xff\n/sys/kernel/tracing\n");
    }
}

#[test]
fn standard_input_is_passed_on_to_its_end() {
    let project = TestProject::without_cases();
    let content: Vec<u8> = (0..700_000_u32).map(|at| (at % 251) as u8).collect();
    project.write("in", &content);
    let input = || Stdio::from(fs::File::open(project.root.join("in")).expect("there"));
    for guest in ["x86_64", "ppc64le"] {
        let (status, stdout, stderr) = exec_with(&project, &["--guest", guest, "--", "cat; exit 4"], input());
        assert_eq!((status, stderr.as_str()), (4, ""));
        assert!(stdout == content, "{} bytes", stdout.len());
        // A command that does not read all of it ends all the same, and one that reads none.
        let (status, stdout, _) = exec_with(&project, &["--guest", guest, "--", "head -c 3"], input());
        assert_eq!((status, stdout.as_slice()), (0, &content[..3]));
        let (read, _write) = rustix::pipe::pipe().expect("a pipe");
        assert_eq!(exec_with(&project, &["--guest", guest, "--", "exit 5"], read.into()).0, 5);
    }
    let directory = fs::File::open("/").expect("opened");
    let (status, _, stderr) = exec_with(&project, &["--guest", "x86_64", "--", "cat"], directory.into());
    let expected = "error: failed to read standard input: Is a directory (os error 21)\n";
    assert_eq!((status, stderr.as_str()), (125, expected));
}

#[test]
fn words_are_arguments_and_one_word_is_a_script() {
    let (status, stdout, _) = exec(&["--guest", "x86_64", "--", "echo", "a  b", "$HOME", "'"]);
    assert_eq!((status, stdout.as_slice()), (0, &b"a  b $HOME '\n"[..]));
    let (status, stdout, _) = exec(&["--guest", "x86_64", "--", "echo a  b | tr a c; false | true"]);
    assert_eq!((status, stdout.as_slice()), (0, &b"c b\n"[..]));
}

#[test]
fn command_that_does_not_end_by_itself_has_a_status_that_says_so() {
    assert_eq!(exec(&["--guest", "x86_64", "--", "kill -TERM $$"]).0, 128 + 15);
    let (status, stdout, stderr) =
        exec(&["--guest", "x86_64", "--timeout", "1s", "--", "echo begun; sleep 1000"]);
    assert_eq!((status, stdout.as_slice()), (124, &b"begun\n"[..]));
    assert_eq!(stderr, "error: the command was killed: it took longer than 1s\n");
    // Standard input has ended: nothing is waited for.
    assert_eq!(exec(&["--guest", "x86_64", "--", "cat"]).0, 0);
}

#[test]
fn what_is_not_the_commands_failure_is_125() {
    let (status, _, stderr) = exec(&["--guest", "s390", "--", "true"]);
    assert_eq!(
        (status, stderr.as_str()),
        (125, "error: unknown guest `s390` (known guests: ppc64le, x86_64)\n")
    );
    let (status, _, stderr) = exec(&["--", "true"]);
    assert!(status == 125 && stderr.contains("choose it with --guest: ppc64le, x86_64"), "{stderr}");
    let (status, stdout, stderr) =
        exec(&["--guest", "x86_64", "--", "echo before; sleep 1; echo c > /proc/sysrq-trigger; sleep 1000"]);
    assert_eq!((status, stdout.as_slice()), (125, &b"before\n"[..]));
    let panic = "error: the kernel panicked: Kernel panic - not syncing: sysrq triggered crash\n";
    assert!(stderr.starts_with(panic) && stderr.contains("the console's last lines:"), "{stderr}");
}

#[test]
fn splat_is_reported() {
    let script = "echo '<4>BUG: made up' > /dev/kmsg";
    let (status, _, stderr) = exec(&["--guest", "ppc64le", "--", script]);
    assert_eq!((status, stderr.as_str()), (0, "warning: the kernel printed a splat: BUG: made up\n"));
}

#[test]
fn files_are_copied_in_and_out() {
    let project = TestProject::without_cases();
    let content: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    project.write("in", &content);
    project.write("run.sh", b"#!/bin/sh\ncp /tmp/in /tmp/out\n");
    let program = project.root.join("run.sh");
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
    let files = ["--put", "in", "--put", "run.sh:/bin/copy", "--get", "/tmp/out", "--get", "/tmp/out:again"];
    let arguments = [&["--guest", "ppc64le"], &files[..], &["--", "copy"]].concat();
    let (status, _, stderr) = exec_in(&project, &arguments);
    assert_eq!((status, stderr.as_str()), (0, ""));
    for name in ["out", "again"] {
        assert!(fs::read(project.root.join(name)).expect("there") == content, "{name}");
    }
    let (status, _, stderr) = exec_in(&project, &["--guest", "ppc64le", "--get", "/tmp/none", "--", "true"]);
    let missing = "error: failed to read /tmp/none in the guest: No such file or directory (os error 2)\n";
    assert_eq!((status, stderr.as_str()), (125, missing));
    let (status, _, stderr) = exec_in(&project, &["--guest", "ppc64le", "--put", "none", "--", "true"]);
    assert!(status == 125 && stderr.starts_with("error: failed to read `none`: No such file"), "{stderr}");
}
