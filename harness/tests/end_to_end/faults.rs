//! Faults that happen to a run on a real guest: each has the right outcome within its limit, and leaves nothing behind.
//!
//! `GOLDTRACE_MOMENTS=50` tries that many moments at which goldtrace is killed, in place of a few.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::waiting::{Waiting, send};
use crate::support::{TestProject, goldtrace, prepared, shown};
use trial::Outcome;

const CASE: &str = "title: T\nsteps:\n  - run: echo right\n    capture: out\n";

#[test]
fn killed_qemu_is_an_error() {
    let waiting = Waiting::start(&[]);
    waiting.signal_qemu("-KILL");
    let (status, text) = waiting.finish();
    assert_eq!(status, Some(3), "{text}");
    assert!(text.contains("ERROR t@x86_64") && text.contains("QEMU exited with"), "{text}");
}

#[test]
fn suspended_qemu_is_an_error_and_is_ended() {
    let waiting = Waiting::start_for("2s", &[], |_| ());
    waiting.signal_qemu("-STOP");
    let (qemu, begin) = (waiting.qemu, Instant::now());
    let (status, text) = waiting.finish();
    // Nothing that it is asked for would happen.
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    assert_eq!(status, Some(3), "{text}");
    assert!(text.contains("QEMU was suspended (SIGSTOP) while waiting for the end of `echo WAITS"), "{text}");
    assert_eq!(crate::support::waiting::name(qemu), "");
}

/// A step that would pass if nobody noticed what it does to the agent, and what is printed of the trial.
#[track_caller]
fn assert_noticed(script: &str, parts: &[&str]) {
    let case = format!(
        "title: T\nsteps:\n  - run: |\n      echo right\n      {script}\n    timeout: 20s\n    capture: out\n"
    );
    for guest in ["x86_64", "ppc64le"] {
        let finished = TestProject::new(&case, &[("out", "right\n")]).run(guest);
        let text = shown(&finished);
        assert!(matches!(finished.outcome, Outcome::Fail(_)), "{text}");
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
}

#[test]
fn agent_that_dies_is_a_failure() {
    // Its stack is overwritten while it waits; it is PID 1, so the kernel panics.
    assert_noticed(
        "range=$(sed -n 's/ .*\\[stack\\]//p' /proc/1/maps); start=0x${range%-*} end=0x${range#*-}; \\\n      \
         dd if=/dev/zero of=/proc/1/mem bs=4096 seek=$((start / 4096)) count=$(((end - start) / 4096)) \\\n      \
         conv=notrunc 2>/dev/null; sleep 5",
        &["Kernel panic - not syncing: Attempted to kill init!"],
    );
}

#[test]
fn agents_port_that_goes_away_is_a_failure() {
    assert_noticed(
        "cd /sys/bus/virtio/drivers/virtio_console; for d in virtio*; do echo $d > unbind; done; sleep 5",
        &["shut down: the guest shut down before it was asked to", "goldtrace agent: "],
    );
}

#[test]
fn two_runs_at_once_are_apart() {
    prepared();
    let project = TestProject::new(CASE, &[("out", "right\n")]);
    let run = || {
        let mut command = goldtrace(&project, &["run"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts")
    };
    for child in [run(), run(), run()] {
        let output = child.wait_with_output().expect("ends");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("2 passed, 0 failed, 0 errors"), "{text}");
    }
}

/// The variable by which the processes of a run are known, which every one of them inherits.
const MARK: &str = "GOLDTRACE_FAULT";

/// The processes that carry the mark.
fn marked(mark: &str) -> Vec<String> {
    let wanted = format!("{MARK}={mark}");
    let carries = |pid: &str| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|word| word == wanted.as_bytes())
    };
    let all = std::fs::read_dir("/proc").expect("readable").flatten();
    let pids = all.filter_map(|entry| entry.file_name().into_string().ok());
    pids.filter(|name| name.bytes().all(|b| b.is_ascii_digit()) && carries(name)).collect()
}

#[test]
fn goldtrace_that_is_ended_at_any_moment_leaves_nothing() {
    prepared();
    let moments: u32 =
        std::env::var("GOLDTRACE_MOMENTS").map_or(9, |text| text.parse().expect("a number of moments"));
    let project = TestProject::new(CASE, &[("out", "right\n")]);
    let temporary = tempfile::tempdir().expect("a directory");
    let start = || {
        let mut command = goldtrace(&project, &["run", "--guest", "x86_64"]);
        command.env("TMPDIR", temporary.path());
        command.env(MARK, std::process::id().to_string()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("starts")
    };
    let before = Instant::now();
    assert!(start().wait().expect("ends").success());
    let whole = before.elapsed();
    for moment in 0..moments {
        let signal = ["-KILL", "-INT", "-TERM"][moment as usize % 3];
        let mut child = start();
        std::thread::sleep(whole * moment / moments);
        if child.try_wait().expect("a child").is_none() {
            send(signal, &child.id().to_string());
        }
        let deadline = Instant::now() + Duration::from_secs(20);
        let mark = std::process::id().to_string();
        while child.try_wait().expect("a child").is_none() || !marked(&mark).is_empty() {
            assert!(
                Instant::now() < deadline,
                "{signal} at moment {moment} of {moments} left processes: {:?}",
                marked(&mark)
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    // What was begun and not ended holds up no later run.
    assert!(start().wait().expect("ends").success());
    let left = std::fs::read_dir(temporary.path()).expect("readable").flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert!(left.is_empty(), "{left:?} in the temporary directory");
}
