//! A run that waits in the middle of its trial.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{TestProject, goldtrace, prepared};

/// A run of a case that says that it has begun and then waits for a long time.
pub struct Waiting {
    pub child: std::process::Child,
    pub qemu: i32,
    _project: TestProject,
}

impl Waiting {
    pub fn start(more: &[&str]) -> Waiting {
        Waiting::start_with(more, |_| ())
    }

    /// The same with a command that is changed before.
    pub fn start_with(more: &[&str], change: impl FnOnce(&mut Command)) -> Waiting {
        Waiting::start_for("2min", more, change)
    }

    /// The same with a step that has this timeout.
    pub fn start_for(timeout: &str, more: &[&str], change: impl FnOnce(&mut Command)) -> Waiting {
        prepared();
        let case = format!(
            "title: T\nsteps:\n  - run: echo WAITS > /dev/console; sleep 100\n    timeout: {timeout}\n    capture: out\n"
        );
        let project = TestProject::new(&case, &[("out", "")]);
        let mut command = goldtrace(&project, &[&["run", "--guest", "x86_64"], more].concat());
        change(&mut command);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("starts");
        let log = project.root.join("target/goldtrace/last/t@x86_64/console.log");
        let deadline = Instant::now() + Duration::from_secs(60);
        while !std::fs::read_to_string(&log).unwrap_or_default().contains("WAITS") {
            assert!(Instant::now() < deadline, "the guest did not get there");
            std::thread::sleep(Duration::from_millis(20));
        }
        let qemu = descendants(child.id()).into_iter().find(|pid| name(*pid).starts_with("qemu-system"));
        Waiting { child, qemu: qemu.expect("QEMU runs"), _project: project }
    }

    pub fn signal(&self, signal: &str) {
        send(signal, &self.child.id().to_string());
    }

    pub fn signal_qemu(&self, signal: &str) {
        send(signal, &self.qemu.to_string());
    }

    /// The exit status of the command, and what it printed on standard output.
    pub fn finish(mut self) -> (Option<i32>, String) {
        let mut text = String::new();
        let mut out = self.child.stdout.take().expect("piped");
        out.read_to_string(&mut text).expect("text");
        (self.child.wait().expect("ended").code(), text)
    }

    pub fn wait_for_end_of_qemu(&self) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while name(self.qemu).starts_with("qemu-system") {
            assert!(Instant::now() < deadline, "QEMU is still there");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Send a signal to a process.
pub fn send(signal: &str, pid: &str) {
    assert!(Command::new("kill").args([signal, pid]).status().expect("runs").success());
}

/// A process's name; empty when it is gone or a zombie.
pub fn name(pid: i32) -> String {
    let read = |file| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    if read("stat").contains(") Z ") { String::new() } else { read("comm") }
}

pub fn descendants(pid: u32) -> Vec<i32> {
    let mut found: Vec<i32> = vec![i32::try_from(pid).expect("an id")];
    let mut at = 0;
    while at < found.len() {
        for task in std::fs::read_dir(format!("/proc/{}/task", found[at])).into_iter().flatten().flatten() {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(children.split_whitespace().filter_map(|word| word.parse::<i32>().ok()));
        }
        at += 1;
    }
    found
}
