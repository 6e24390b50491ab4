//! Kernel modules of a user's own, on real guests: built, refused when they do not fit, and distinguished
//! from what they were.

use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::support::{TestProject, prepared};
use guest::ModuleSource;
use image::{BuiltModule, RootfsSpec};
use kmod::{Module, missing_definitions};

const KBUILD: &str = "obj-m += hello.o\nCFLAGS_hello.o := -I$(src)\n";
const SOURCE: &str = r#"#include <linux/module.h>
#define CREATE_TRACE_POINTS
#include "hello.h"
static int __init hello_init(void) { trace_hello_said("world", 7); return 0; }
static void __exit hello_exit(void) { trace_hello_said("all", 0); }
module_init(hello_init);
module_exit(hello_exit);
MODULE_DESCRIPTION("says hello");
MODULE_LICENSE("GPL");
"#;
const HEADER: &str = r#"#undef TRACE_SYSTEM
#define TRACE_SYSTEM hello
#if !defined(HELLO_H) || defined(TRACE_HEADER_MULTI_READ)
#define HELLO_H
#include <linux/tracepoint.h>
TRACE_EVENT(hello_said,
	TP_PROTO(const char *to, int times),
	TP_ARGS(to, times),
	TP_STRUCT__entry(__string(to, to) __field(int, times)),
	TP_fast_assign(__assign_str(to); __entry->times = times;),
	TP_printk("to=%s times=%d", __get_str(to), __entry->times)
);
#endif
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE hello
#include <trace/define_trace.h>
"#;
const CASE: &str = "\
title: T
modules:
  - directory: module
steps:
  - inspect: hello
    capture: defined
  - run: |
      echo ':mod:hello' > set_event
      modprobe hello
      grep -o 'hello_said: .*' trace
    capture: said
  - run: cat events/hello/*/format
    capture: formats
    format: event_format
    defined_by: hello
";

/// A project with the module `hello` in the directory of its case, and goldens as a run writes them.
fn project() -> TestProject {
    let project = TestProject::without_cases();
    project.write("cases/hello/case.yaml", CASE.as_bytes());
    for (name, text) in [("Kbuild", KBUILD), ("hello.c", SOURCE), ("hello.h", HEADER)] {
        project.write(&format!("cases/hello/module/{name}"), text.as_bytes());
    }
    project
}

fn goldtrace(project: &TestProject, arguments: &[&str]) -> (i32, String) {
    let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_goldtrace"))
        .args(arguments)
        .current_dir(&project.root)
        .env_remove("CI")
        .output()
        .expect("runs");
    let text = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    (status.code().expect("a status"), text)
}

#[track_caller]
fn assert_ends(project: &TestProject, arguments: &[&str], status: i32, parts: &[&str]) -> String {
    let (found, text) = goldtrace(project, arguments);
    assert_eq!(found, status, "{text}");
    for part in parts {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
    text
}

/// The kernel's sample module, built for a guest.
fn sample(guest: &str) -> BuiltModule {
    let guest = crate::support::guests().iter().find(|known| known.name.as_str() == guest).expect("a guest");
    let ready = prepared().guest(guest, &RootfsSpec::default()).expect("prepared");
    ready.rootfs.modules.into_iter().find(|module| module.name == "trace_events_sample").expect("built")
}

#[test]
fn module_of_a_case_is_built_for_each_guest_and_its_change_is_noticed() {
    let project = project();
    assert_ends(&project, &["run", "--bless"], 0, &["hello: wrote cases/hello/said.golden"]);
    let said = fs::read_to_string(project.root.join("cases/hello/said.golden")).expect("a golden");
    assert!(said.ends_with("hello_said: to=world times=7\n"), "{said}");
    assert_ends(&project, &["run"], 0, &["2 passed"]);

    // Another text: what is printed, the format and what the file holds differ, on both guests.
    let changed = HEADER
        .replace("to=%s times=%d", "times=%d to=%s")
        .replace("__get_str(to), __entry->times", "__entry->times, __get_str(to)");
    project.write("cases/hello/module/hello.h", changed.as_bytes());
    let parts = [
        "cases/hello/defined.golden:",
        "cases/hello/said.golden:2:",
        "cases/hello/formats.golden:",
        "2 failed",
    ];
    assert_ends(&project, &["run"], 1, &parts);
}

/// The module `hello` of a project, built for a guest.
fn hello(project: &TestProject, guest: &str) -> BuiltModule {
    let guest = crate::support::guests().iter().find(|known| known.name.as_str() == guest).expect("a guest");
    let directory = project.root.join("cases/hello/module").canonicalize_utf8().expect("there");
    let spec = RootfsSpec { perf: false, modules: vec![ModuleSource::Folder(directory)] };
    let ready = prepared().guest(guest, &spec).expect("prepared");
    ready.rootfs.modules.into_iter().find(|module| module.name == "hello").expect("built")
}

#[test]
fn events_are_compared_with_their_source_however_it_comes_to_define_them() {
    let define = "#define CREATE_TRACE_POINTS\n";
    let flag = format!("{KBUILD}CFLAGS_hello.o += -DCREATE_TRACE_POINTS\n");
    let sources = [
        (KBUILD, SOURCE.replace(define, "#define\tCREATE_TRACE_POINTS\n")),
        (flag.as_str(), SOURCE.replace(define, "")),
        (KBUILD, SOURCE.replace(define, "#include \"points.h\"\n")),
    ];
    for (kbuild, source) in sources {
        let project = project();
        project.write("cases/hello/module/Kbuild", kbuild.as_bytes());
        project.write("cases/hello/module/hello.c", source.as_bytes());
        project.write("cases/hello/module/points.h", define.as_bytes());
        let module = hello(&project, "x86_64");
        let text = fs::read_to_string(module.preprocessed.expect("kept")).expect("readable");
        assert!(text.contains("event_hello_said"), "{kbuild}{source}");
    }
}

#[test]
fn module_is_built_from_a_directory_with_what_no_build_reads_and_with_any_bytes() {
    let project = project();
    // As its author runs make there, $(PWD) is the module's directory.
    project.write("cases/hello/module/Kbuild", b"obj-m += hello.o\nccflags-y += -I$(PWD) -I$(PWD)/more\n");
    project.write("cases/hello/module/more/points.h", b"#define CREATE_TRACE_POINTS\n");
    let source = SOURCE.replace("#define CREATE_TRACE_POINTS", "#include <points.h>");
    let latin1 = [b"/* Andr\xe9 */\n", source.as_bytes()].concat();
    project.write("cases/hello/module/hello.c", &latin1);
    let directory = project.root.join("cases/hello/module");
    std::os::unix::fs::symlink("/nowhere", directory.join("dangling")).expect("linked");
    let status = Command::new("mkfifo").arg(directory.join("fifo")).status().expect("runs");
    assert!(status.success());
    for guest in ["x86_64", "ppc64le"] {
        let module = hello(&project, guest);
        let text = fs::read(module.preprocessed.expect("kept")).expect("readable");
        let module = Module::parse(&fs::read(&module.file).expect("readable")).expect("a module");
        assert_eq!(missing_definitions(&text, &module), [""; 0]);
    }
}

#[test]
fn module_in_a_file_is_read_once_and_a_source_beside_it_is_not_its_own() {
    let project = project();
    let built = hello(&project, "x86_64");
    project.write("x/hello.ko", &fs::read(&built.file).expect("readable"));
    project.write("x/hello.i", b"int another;\n");
    let spec = RootfsSpec { perf: false, modules: vec![ModuleSource::File(project.root.join("x/hello.ko"))] };
    let guest =
        crate::support::guests().iter().find(|known| known.name.as_str() == "x86_64").expect("a guest");
    let ready = prepared().guest(guest, &spec).expect("prepared");
    let module = ready.rootfs.modules.iter().find(|module| module.name == "hello").expect("taken");
    // The user builds it again.
    project.write("x/hello.ko", b"another file");
    assert_eq!(fs::read(&module.file).expect("readable"), fs::read(&built.file).expect("readable"));
    assert_eq!(module.preprocessed, None);
}

#[test]
fn a_module_that_does_not_compile_is_told_with_the_compilers_words() {
    let project = project();
    project.write("cases/hello/module/hello.c", SOURCE.replace("return 0;", "return zero;").as_bytes());
    assert_ends(&project, &["run", "--bless", "--guest", "x86_64"], 4, &["hello.c:4", "zero", "undeclared"]);
}

#[test]
fn a_case_that_looks_at_files_alone_boots_nothing() {
    let project = TestProject::new(
        "title: T\nsteps:\n  - inspect: trace_events_sample\n    capture: out\n",
        &[("out", "")],
    );
    let finished = project.run_changed("x86_64", |ready| {
        ready.guest.qemu.binary = "there-is-no-such-qemu".to_owned();
    });
    let shown = crate::support::shown(&finished);
    assert!(shown.contains("+event sample-trace:foo_bar"), "{shown}");
}

#[test]
fn a_module_for_another_machine_or_kernel_is_refused_before_boot() {
    let project = TestProject::new(
        CASE.replace("directory: module", "file: x.ko").as_str(),
        &[("defined", ""), ("said", ""), ("formats", "")],
    );
    let x86_64 = fs::read(&sample("x86_64").file).expect("readable");
    project.write("cases/t/x.ko", &x86_64);
    // Only its own guest would load it.
    assert_ends(
        &project,
        &["run"],
        2,
        &[
            "does not fit guest ppc64le",
            "the module is for x86_64, vermagic `",
            "kernel is for ppc64le, vermagic `",
        ],
    );
    let magic = b"vermagic=";
    let at =
        x86_64.windows(magic.len()).position(|window| window == magic).expect("a vermagic") + magic.len();
    let mut other = x86_64;
    other[at] = b'8';
    project.write("cases/t/x.ko", &other);
    let parts = [
        "does not fit guest x86_64",
        "the module is for x86_64, vermagic `8",
        "kernel is for x86_64, vermagic `",
    ];
    assert_ends(&project, &["run", "--guest", "x86_64"], 2, &parts);
    // AArch64, which no guest is.
    other[18] = 183;
    project.write("cases/t/x.ko", &other);
    assert_ends(
        &project,
        &["run", "--guest", "x86_64"],
        2,
        &["the module is for ELF machine 183, vermagic `8"],
    );
    project.write("cases/t/x.ko", b"no module");
    assert_ends(
        &project,
        &["run", "--guest", "x86_64"],
        2,
        &["failed to read module", "x.ko", "not an ELF file"],
    );
}

#[test]
fn directory_that_builds_no_module_is_named() {
    let project = project();
    project.write("cases/hello/module/Kbuild", b"obj-$(CONFIG_GOLDTRACE_NO_SUCH) += hello.o\n");
    let error =
        "error: `module` builds no module: its Kbuild or Makefile adds nothing to obj-m for this kernel's";
    assert_ends(&project, &["run", "--bless", "--guest", "ppc64le"], 2, &[error]);
}

#[test]
fn path_that_is_not_in_the_kernels_source_is_named() {
    for path in ["samples/goldtrace-no-such", "Documentation/trace"] {
        let case =
            format!("title: T\nmodules:\n  - tree: {path}\nsteps:\n  - run: 'true'\n    capture: out\n");
        let project = TestProject::new(&case, &[("out", "")]);
        let error =
            format!("error: `{path}` in the kernel's source is not a directory with a Kbuild or Makefile");
        assert_ends(&project, &["run", "--guest", "ppc64le"], 2, &[error.as_str()]);
    }
}

#[test]
fn errors_of_modules_in_files_have_their_places() {
    let project = project();
    project.write("cases/left/Kbuild", b"");
    let case = CASE.replace("inspect: hello", "inspect: helo");
    project.write("cases/hello/case.yaml", case.as_bytes());
    assert_ends(
        &project,
        &["run", "--bless", "--dry-run"],
        2,
        &["cases/left", "no case uses the module in this directory"],
    );
    fs::remove_dir_all(project.root.join("cases/left")).expect("removed");
    let parts = ["cases/hello/case.yaml:5: guest ppc64le has no module `helo`", "did you mean `hello`?"];
    assert_ends(&project, &["run", "--bless"], 2, &parts);
    project.write("cases/hello/case.yaml", CASE.replace("directory: module", "directory: modul").as_bytes());
    assert_ends(&project, &["run", "--bless"], 2, &["cases/hello/case.yaml:3:16", "no such directory"]);
    project.write("cases/hello/case.yaml", CASE.replace("directory: module", "tree: ../etc").as_bytes());
    assert_ends(&project, &["run", "--bless"], 2, &["`../etc` is not a directory of the kernel's source"]);
}

#[test]
fn a_first_case_for_a_module_is_written_run_and_blessed() {
    let project = TestProject::without_cases();
    for (name, text) in [("Kbuild", KBUILD), ("hello.c", SOURCE), ("hello.h", HEADER)] {
        project.write(&format!("mine/{name}"), text.as_bytes());
    }
    // The new case's name is the end of another's.
    let other = "title: T\nsteps:\n  - run: echo\n    capture: out\n";
    project.write("cases/other-mine/hello/case.yaml", other.as_bytes());
    project.write("cases/other-mine/hello/out.golden", b"#@ golden v1\n\n");
    let new = ["new", "module", "mine/hello", "--directory", "mine"];
    let parts =
        ["wrote cases/mine/hello/case.yaml", "mine/hello: wrote cases/mine/hello/hello.formats.golden"];
    let text = assert_ends(&project, &new, 0, &parts);
    assert!(!text.contains("other-mine"), "{text}");
    assert_ends(&project, &["run"], 0, &["4 passed"]);
    assert_ends(&project, &new, 2, &["cases/mine/hello exists already"]);
    let one = ["new", "module", "one", "--directory", "mine", "--guest", "x86_64"];
    assert_ends(&project, &one, 0, &["wrote cases/one/case.yaml", "one: wrote cases/one/unloaded.golden"]);
    assert_ends(&project, &["new", "module", "a b", "--directory", "mine"], 2, &["cannot name a case"]);
    assert_ends(
        &project,
        &["new", "module", "x", "--directory", "cases"],
        2,
        &["is not a directory of a module's source"],
    );
}

#[test]
fn a_first_case_that_cannot_be_blessed_is_not_left_behind() {
    let project = TestProject::without_cases();
    let failing = SOURCE.replace("return 0;", "return -EINVAL;");
    for (name, text) in [("Kbuild", KBUILD), ("hello.c", failing.as_str()), ("hello.h", HEADER)] {
        project.write(&format!("mine/{name}"), text.as_bytes());
    }
    let new = ["new", "module", "mine/hello", "--directory", "mine", "--guest", "x86_64"];
    assert_ends(&project, &new, 1, &["modprobe", "removed cases/mine/hello/case.yaml again"]);
    assert_eq!(fs::read_dir(project.root.join("cases")).expect("there").count(), 0);
}

#[test]
fn a_shell_has_the_modules_of_a_case() {
    let project = project();
    let shell = |case: &str, commands: &str| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_goldtrace"))
            .args(["shell", "--guest", "x86_64", "--case", case])
            .current_dir(&project.root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        // Where the command line is refused, nothing reads it.
        _ = child.stdin.take().expect("piped").write_all(commands.as_bytes());
        let Output { status, stdout, stderr } = child.wait_with_output().expect("ended");
        (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
    };
    let (status, text) = shell("hello", "modprobe hello && echo $((6 * 7)) events: events/hello/*/id\n");
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("42 events: events/hello/hello_said/id"), "{text}");
    let (status, text) = shell("helo", "");
    assert_eq!(status, Some(125), "{text}");
    assert!(text.contains("unknown case `helo`\nhelp: did you mean `hello`?"), "{text}");
}

#[test]
fn part_that_the_source_does_not_define_is_an_error_of_its_event() {
    for guest in ["x86_64", "ppc64le"] {
        let BuiltModule { file, preprocessed, .. } = sample(guest);
        let module = Module::parse(&fs::read(file).expect("readable")).expect("a module");
        let text = fs::read_to_string(preprocessed.as_ref().expect("kept")).expect("readable");
        assert_eq!(missing_definitions(text.as_bytes(), &module), Vec::<String>::new(), "{guest}");
        for part in [
            "__tracepoint_foo_rel_loc ",
            " event_foo_rel_loc ",
            " event_class_foo_rel_loc ",
            "trace_event_raw_event_foo_rel_loc(",
            "trace_raw_output_foo_rel_loc(",
        ] {
            assert!(text.contains(part), "{part}");
            let other = text.replace(part, &part.replace("rel_loc", "rel_lock"));
            let missing = missing_definitions(other.as_bytes(), &module);
            assert!(!missing.is_empty(), "{guest}: {part}");
            assert!(missing.iter().all(|m| m.contains("foo_rel_loc")), "{guest}: {part}: {missing:?}");
        }
    }
}
