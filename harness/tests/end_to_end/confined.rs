//! What QEMU may do on the host, looked at while a guest runs.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use crate::support::waiting::{Waiting, descendants, name};
use crate::support::{TestProject, prepared, shell_in_pipes, shown};
use trial::Outcome;

/// A field of /proc/PID/status.
fn status(pid: i32, field: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).expect("a status");
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.expect("the field").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn assert_confined(pid: i32, files: usize) {
    assert_eq!((status(pid, "NoNewPrivs"), status(pid, "Seccomp")), ("1".to_owned(), "2".to_owned()));
    if rustix::process::geteuid().is_root() {
        let nobody = "65534 65534 65534 65534";
        assert_eq!((status(pid, "Uid"), status(pid, "Gid")), (nobody.to_owned(), nobody.to_owned()));
        assert_eq!((status(pid, "Groups"), status(pid, "CapEff")), (String::new(), "0".repeat(16)));
    }
    let cache = image::Store::default_root().expect("a cache").join("products");
    let mut products = 0;
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).expect("readable") {
        let target = fs::read_link(entry.expect("an entry").path()).expect("a link");
        let target = target.to_str().expect("UTF-8").to_owned();
        let is_product = target.starts_with(cache.as_str());
        products += usize::from(is_product);
        let expected = ["pipe:", "socket:", "anon_inode:", "/memfd:", "/dev/null"];
        assert!(is_product || expected.iter().any(|start| target.starts_with(start)), "{target}");
    }
    assert_eq!(products, files, "files of the cache");
}

#[test]
fn qemu_of_a_trial_is_confined() {
    let waiting = Waiting::start(&[]);
    // What it was restored from is in sealed memory.
    assert_confined(waiting.qemu, 0);
    waiting.signal("-INT");
    drop(waiting.finish());
    let waiting = Waiting::start(&["--isolate", "boot"]);
    assert_confined(waiting.qemu, 2);
}

#[test]
fn qemu_of_a_shell_is_confined() {
    prepared();
    let project = TestProject::without_cases();
    let mut child = shell_in_pipes(&project, "ppc64le", &["--isolate", "boot"]);
    let mut input = child.stdin.take().expect("piped");
    let mut out = child.stdout.take().expect("piped");
    input.write_all(b"while echo x; do sleep 0.1; done\n").expect("written");
    out.read_exact(&mut [0]).expect("a byte");
    let qemu = descendants(child.id()).into_iter().find(|pid| name(*pid).starts_with("qemu-system"));
    // The kernel and the initramfs.
    assert_confined(qemu.expect("QEMU runs"), 2);
    // Nobody reads what the guest prints any more.
    drop(out);
    assert_eq!(child.wait().expect("ended").code(), Some(125));
}

#[test]
fn killed_goldtrace_leaves_no_file() {
    prepared();
    let temporary = tempfile::tempdir().expect("a directory");
    // A path that no socket could have.
    let directory = temporary.path().join("x".repeat(120));
    fs::create_dir(&directory).expect("made");
    let mut waiting = Waiting::start_with(&[], |command| {
        command.env("TMPDIR", &directory);
    });
    let names = || fs::read_dir(&directory).expect("readable").flatten().collect::<Vec<_>>();
    assert!(names().is_empty(), "{:?}", names());
    waiting.signal("-KILL");
    waiting.wait_for_end_of_qemu();
    assert_eq!(waiting.child.wait().expect("ended").signal(), Some(9));
    assert!(names().is_empty(), "{:?}", names());
}

#[test]
fn guest_that_floods_its_console_is_an_error() {
    // The serial port of an x86-64 PC takes minutes for as much.
    let case =
        "title: T\nsteps:\n  - run: cat /dev/zero > /dev/console\n    timeout: 5min\n    capture: out\n";
    let project = TestProject::new(case, &[("out", "")]);
    let finished = project.run("ppc64le");
    let text = shown(&finished);
    let expected = "the guest's console flooded: it reached 16 MiB, and QEMU was killed";
    assert!(matches!(finished.outcome, Outcome::Error(_)) && text.contains(expected), "{text}");
    let log = project.root.join("target/goldtrace/last/t@ppc64le/console.log");
    assert_eq!(fs::metadata(log).expect("a log").len(), 16 << 20);
}

#[test]
fn command_line_that_is_kept_starts_the_same_guest() {
    prepared();
    let case = "title: T\nguests: [ppc64le]\nsteps:\n  - run: echo right\n    capture: out\n";
    let project = TestProject::new(case, &[("out", "right\n")]);
    let finished = project.run("ppc64le");
    assert!(matches!(finished.outcome, Outcome::Pass), "{}", shown(&finished));
    let kept = project.root.join("target/goldtrace/last/t@ppc64le/qemu-command");
    let command = fs::read_to_string(kept).expect("a command");
    assert!(command.starts_with("setpriv --no-new-privs ") && command.contains(" 6</"), "{command}");
    assert!(
        command.contains("# It went on from a snapshot of the guest that this boots:\nsetpriv "),
        "{command}"
    );
    // Nobody connects to its agent's port then.
    let command = command.lines().last().expect("a line").replace("socket,id=agent,fd=5", "null,id=agent");
    let script = format!("timeout 60 {command} < /dev/null");
    let mut child = Command::new("sh").args(["-c", &script]).stdout(Stdio::piped()).spawn().expect("starts");
    let console = BufReader::new(child.stdout.take().expect("piped"));
    let greeting = console
        .split(b'\n')
        .map_while(Result::ok)
        .find(|line| String::from_utf8_lossy(line).contains("goldtrace: end of request 0000000000000000"));
    for pid in descendants(child.id()) {
        let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
    }
    child.wait().expect("ended");
    assert!(greeting.is_some(), "the agent did not greet");
}
