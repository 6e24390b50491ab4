//! What `goldtrace` prints and how it exits where no guest is booted: help, errors in the command line and in files, and the
//! commands that only look.

use std::process::Output;

use crate::support::{TestProject, goldtrace, output};

const CASE: &str = "title: T\nsteps:\n  - run: echo right\n    capture: out\n";

fn project() -> TestProject {
    TestProject::new(CASE, &[("out", "right\n")])
}

/// The exit status is 2 and all parts are in what is printed.
#[track_caller]
fn assert_refused(project: &TestProject, arguments: &[&str], parts: &[&str]) {
    assert_output(output(project, arguments), 2, parts);
}

#[track_caller]
fn assert_output((status, text): (i32, String), expected: i32, parts: &[&str]) {
    assert_eq!(status, expected, "{text}");
    for part in parts {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
}

#[test]
fn help_of_run_lists_the_exit_statuses() {
    let help = output(&project(), &["run", "--help"]);
    let parts = [
        "Boot the guests, run the cases, compare their output",
        "Exit status:\n  0    every trial passed",
        "  4    the kernel, a module or perf does not compile\n",
        "  130  interrupted",
        "--deny-skips",
    ];
    assert_output(help.clone(), 0, &parts);
    assert!(!help.1.contains("--no-skip"), "{}", help.1);
}

#[test]
fn help_texts_begin_with_a_verb() {
    let (status, text) = output(&project(), &["--help"]);
    assert_eq!(status, 0, "{text}");
    for line in [
        "run       Boot the guests",
        "list      Print cases and guests",
        "bless     Write goldens",
        "lint      Find stale goldens",
        "new       Write a new case",
        "build     Build kernels",
        "exec      Run one command",
        "shell     Open a shell",
        "bench     Measure how long",
        "doctor    Print what the host has",
        "dtl-plot  Draw the dispatches",
    ] {
        assert!(text.contains(line), "no `{line}` in:\n{text}");
    }
}

#[test]
fn unknown_words_are_usage_errors() {
    let project = project();
    assert_refused(&project, &["rum"], &["unrecognized subcommand 'rum'", "'run'"]);
    assert_refused(&project, &["run", "--jobs", "0"], &["--jobs"]);
    assert_refused(&project, &["run", "--accel", "xen"], &["invalid value 'xen'", "auto, tcg, kvm"]);
    assert_refused(&project, &["dtl-plot"], &["<CAPTURE>", "--output"]);
    assert_refused(&project, &[], &["Usage: goldtrace"]);
}

#[test]
fn old_options_name_the_new_ones() {
    let project = project();
    assert_refused(&project, &["run", "--no-skip"], &["error: `--no-skip` is now called `--deny-skips`"]);
    assert_refused(
        &project,
        &["new", "module", "n", "--folder", "."],
        &["error: `--folder` is now called `--directory`"],
    );
}

#[test]
fn unknown_guest_is_refused_by_every_command_with_guests() {
    let project = project();
    let message = ["error: unknown guest `s390x` (known guests: ppc64le, x86_64)"];
    for command in ["run", "list", "build"] {
        assert_refused(&project, &[command, "--guest", "s390x"], &message);
    }
    assert_output(output(&project, &["shell", "--guest", "s390x"]), 125, &message);
    assert_output(output(&project, &["exec", "--guest", "s390x", "--", "true"]), 125, &message);
    project.write("m/Kbuild", b"obj-m += m.o\n");
    let new = ["new", "module", "n", "--directory", "m", "--guest", "s390x"];
    assert_refused(&project, &new, &message);
}

#[test]
fn filter_that_selects_nothing_is_refused() {
    let project = project();
    assert_refused(&project, &["run", "x86_46"], &["no trial matches `x86_46`", "did you mean `x86_64`?"]);
    assert_refused(&project, &["run", "t@x86_64", "u"], &["no trial matches `u`"]);
    assert_refused(&project, &["list", "absent"], &["no trial matches `absent`"]);
    for (filter, help) in [
        ("absent", "`goldtrace list` prints all cases"),
        ("@x86_64", "`goldtrace list` prints all cases"),
        ("t@x86", "goldens belong to cases, which have no guest in their name: `goldtrace bless t`"),
    ] {
        let bless = goldtrace(&project, &["bless", filter]).output().expect("runs");
        assert_eq!(bless.status.code(), Some(2));
        let text = String::from_utf8_lossy(&bless.stderr).into_owned();
        assert_eq!(text, format!("error: no case matches `{filter}`\nhelp: {help}\n"));
    }
}

#[test]
fn patch_that_cannot_be_read_is_refused() {
    let project = project();
    let parts = ["failed to read", "/absent.patch", "No such file or directory"];
    assert_refused(&project, &["run", "--patch", "/absent.patch"], &parts);
    assert_refused(&project, &["build", "--patch", "/absent.patch"], &parts);
}

#[test]
fn directory_that_is_not_a_project_is_refused() {
    let project = project();
    assert_refused(&project, &["--project", "/", "list"], &["`/` is", "goldtrace project", "guests/"]);
    assert_refused(&project, &["--project", "/absent", "list"], &["failed to open project `/absent`"]);
    let outside = goldtrace(&project, &["list"]).current_dir("/").output().expect("runs");
    assert_eq!(outside.status.code(), Some(2));
    let text = String::from_utf8_lossy(&outside.stderr).into_owned();
    assert!(text.contains("no goldtrace project in `/` or above it") && text.contains("--project"), "{text}");
}

#[test]
fn shell_needs_one_guest_and_a_known_case() {
    let project = project();
    let which =
        "error: a command or a shell runs in one guest\nhelp: choose it with --guest: ppc64le, x86_64\n";
    // The statuses below are those of commands in the guest.
    assert_output(output(&project, &["shell"]), 125, &[which]);
    let shell = ["shell", "--guest", "x86_64", "--case", "absent"];
    assert_output(output(&project, &shell), 125, &["error: unknown case `absent`\nhelp: "]);
}

#[test]
fn new_refuses_names_and_directories_that_cannot_be_used() {
    let project = project();
    project.write("m/Kbuild", b"obj-m += m.o\n");
    let new = |name: &str, directory: &str, parts: &[&str]| {
        assert_refused(&project, &["new", "module", name, "--directory", directory], parts);
    };
    new("../t", "m", &["error: `../t` cannot name a case\nhelp: use letters, digits"]);
    new("t", "m", &["error: cases/t exists already\nhelp: choose another name"]);
    new("n", "cases", &["error: `cases` is not a directory of a module's source", "--directory"]);
    new("n", "absent", &["error: `absent` is not a directory of a module's source"]);
    assert!(!project.root.join("cases/n").exists());
}

#[test]
fn bless_is_refused_under_ci_before_anything_is_built() {
    let project = project();
    project.write("m/Kbuild", b"obj-m += m.o\n");
    let golden = || std::fs::read(project.root.join("cases/t/out.golden")).expect("a golden");
    let before = golden();
    let commands: [&[&str]; 3] =
        [&["bless"], &["run", "--bless"], &["new", "module", "n", "--directory", "m"]];
    for arguments in commands {
        let Output { status, stderr, .. } =
            goldtrace(&project, arguments).env("CI", "1").output().expect("runs");
        let text = String::from_utf8_lossy(&stderr).into_owned();
        assert_eq!((status.code(), text.lines().count()), (Some(2), 2), "{text}");
        assert_output(
            (2, text),
            2,
            &[
                "error: goldens are written by people, not by CI (the variable CI is set)\nhelp: run it yourself",
            ],
        );
    }
    assert_eq!(golden(), before);
    assert!(!project.root.join("cases/n").exists());
    // What says no, and no other value, is the way to write them on purpose.
    let Output { stdout, .. } = goldtrace(&project, &["bless"]).env("CI", "false").output().expect("runs");
    assert!(String::from_utf8_lossy(&stdout).contains("t: refused: there is no last run"));
}

#[test]
fn goldens_are_not_written_from_a_patched_kernel() {
    let refusal = "goldens are not written from another kernel than the project's own (patch /p.patch)";
    let Output { status, stderr, .. } =
        goldtrace(&project(), &["run", "--patch", "/p.patch", "--bless"]).output().expect("runs");
    assert_output(
        (status.code().expect("a status"), String::from_utf8_lossy(&stderr).into_owned()),
        2,
        &[refusal],
    );
}

#[test]
fn run_of_no_trial_is_refused() {
    let project = TestProject::new(
        "title: T\nguests: [x86_64]\nsteps:\n  - run: echo 1\n    capture: out\n",
        &[("out", "1\n")],
    );
    let refusal = "error: no case runs on ppc64le: `goldtrace list` prints all cases with their guests";
    assert_refused(&project, &["run", "--guest", "ppc64le"], &[refusal]);
}

#[test]
fn bless_without_a_run_is_refused() {
    let Output { status, stdout, .. } = goldtrace(&project(), &["bless"]).output().expect("runs");
    let text = String::from_utf8_lossy(&stdout).into_owned();
    assert_output((status.code().expect("a status"), text), 1, &["t: refused: there is no last run"]);
}

#[test]
fn dry_run_lists_the_trials() {
    assert_eq!(output(&project(), &["run", "--dry-run"]), (0, "t@ppc64le\nt@x86_64\n".to_owned()));
    assert_eq!(output(&project(), &["run", "--dry-run", "ppc"]), (0, "t@ppc64le\n".to_owned()));
}

#[test]
fn list_prints_guests_cases_and_what_they_require() {
    let case = "title: Some title\nguests: [ppc64le]\ndocument: Documentation/x.rst\nrequires: [CONFIG_X]\n\
                steps:\n  - run: echo right\n    capture: out\n";
    let project = TestProject::new(case, &[("out", "right\n")]);
    let parts = [
        "guests:\n  ppc64le    ppc64le, ",
        "cases:\n  t: Some title\n    on ppc64le; 1 captures; Documentation/x.rst",
        "CONFIG_X",
        "1 trials\n",
    ];
    assert_output(output(&project, &["list"]), 0, &parts);
}

#[test]
fn lint_reports_what_is_wrong_with_goldens() {
    let clean = project();
    assert_output(output(&clean, &["lint"]), 0, &["1 cases, no problems found\n"]);
    let wide = TestProject::new(CASE, &[("out", "{{..}}\n")]);
    assert_output(output(&wide, &["lint"]), 0, &["cases/t/out.golden:2: ", "1 placeholders"]);
    let unreachable = TestProject::new(CASE, &[("out", "right\n#@ if arch == s390x\nnever\n#@ end\n")]);
    let (status, text) = output(&unreachable, &["lint"]);
    assert!(status != 0 && text.contains("cases/t/out.golden:3"), "{text}");
}

#[test]
fn doctor_reports_tools_guests_and_the_cache() {
    let project = project();
    let cache = project.root.join("cache");
    let output = goldtrace(&project, &["doctor"]).env("GOLDTRACE_CACHE", &cache).output().expect("runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let parts = ["tools:\n", "  make: /", "guests:\n", "  x86_64: ", "  ppc64le: ", "cache: ", "cases: 1\n"];
    assert_output((output.status.code().expect("a status"), text), 0, &parts);
    assert!(!cache.exists(), "doctor has made a cache");
}

#[test]
fn doctor_names_missing_programs_and_packages() {
    let project = project();
    project.write("bin/true", b"");
    let output = goldtrace(&project, &["doctor"])
        .env("PATH", project.root.join("bin"))
        .env("GOLDTRACE_CACHE", project.root.join("cache"))
        .output()
        .expect("runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let parts = [
        "  make: MISSING (package make)\n",
        "  powerpc64le-linux-gnu-gcc: MISSING (package gcc-powerpc64le-linux-gnu)\n",
        "  qemu-system-ppc64: MISSING (package qemu-system-ppc)\n",
        "missing packages: ",
        "help: `ci/bootstrap` installs them",
    ];
    assert_output((output.status.code().expect("a status"), text), 3, &parts);
}

#[test]
fn module_that_does_not_compile_exits_with_4() {
    let case = "title: T\nguests: [x86_64]\nmodules:\n  - directory: m\nsteps:\n  - run: echo right\n    capture: out\n";
    let project = TestProject::new(case, &[("out", "right\n")]);
    project.write("cases/t/m/Kbuild", b"obj-m += broken.o\n");
    project.write("cases/t/m/broken.c", b"int x = ;\n");
    let parts = ["error: failed to compile modules m-x86_64: ", "broken.c:1:9: error: expected expression"];
    assert_output(output(&project, &["run"]), 4, &parts);
}
