//! A QEMU that a guest has taken over, or that just floods: it costs neither memory nor disk.
//!
//! One test, as it measures the memory of this process.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

use guest::{Guest, read_guest};
use vm::qemu::{Accel, Boot, Machine, MachineLogs, Mode, Origin, StopReason};
use vm::{Frame, FrameKind};

const MIB: u64 = 1 << 20;
/// What a guest may cost.
const COST_MAX: u64 = 64 * MIB;
const TIMEOUT: Duration = Duration::from_secs(120);

/// A directory that every user may read, with a program in place of QEMU.
struct FakeQemu {
    _temporary: tempfile::TempDir,
    dir: Utf8PathBuf,
    guest: Guest,
}

impl FakeQemu {
    fn new(script: &str) -> FakeQemu {
        let temporary = tempfile::tempdir().expect("a directory");
        let dir = Utf8Path::from_path(temporary.path()).expect("UTF-8").to_owned();
        let frame = Frame { kind: FrameKind::Stdout, nonce: 7, payload: vec![b'x'; MIB as usize] };
        let qemu = dir.join("qemu");
        fs::write(dir.join("frame"), frame.encode()).expect("written");
        fs::write(&qemu, format!("#!/bin/sh\n{}\n", script.replace("DIR", dir.as_str()))).expect("written");
        for path in [&dir, &qemu] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("set");
        }
        let text = format!(
            "arch: x86_64\nmemory: 64\ncpus: 1\nconsole: c\ndebian_arch: d\n\
             qemu: {{binary: {qemu}, package: p, machine: m}}\naccelerators: {{tcg: {{cpu: a}}, kvm: {{cpu: b}}}}\n\
             kernel: {{make_arch: x, image: vmlinux, fragments: []}}\n"
        );
        let guest = read_guest("g", "g.yaml", &text, "/".into()).expect("valid");
        FakeQemu { _temporary: temporary, dir, guest }
    }

    fn start(&self) -> Machine {
        let boot = Boot {
            guest: &self.guest,
            accel: Accel::Tcg,
            origin: Origin::Kernel { kernel: "/dev/null".into(), initramfs: "/dev/null".into() },
            mode: Mode::Agent,
            shares_memory: false,
        };
        let logs = MachineLogs::in_directory(&self.dir).expect("files");
        Machine::start(&boot, logs).expect("starts")
    }

    /// The bytes of both logs.
    fn kept(&self) -> u64 {
        let size = |name: &str| fs::metadata(self.dir.join(name)).expect("a log").len();
        size("console.log") + size("qemu-stderr.log")
    }
}

/// A line of /proc/self/status, in bytes.
fn memory(line: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("readable");
    let found = status.lines().find_map(|text| text.strip_prefix(line)).expect("the line");
    let kib = found.trim_matches([':', '\t', ' ', 'k', 'B']).parse::<u64>().expect("a number");
    kib << 10
}

/// Start a QEMU that runs this script; the reason for which it stopped. It must cost little.
#[track_caller]
fn stopped(script: &str) -> String {
    let qemu = FakeQemu::new(script);
    // The most memory is counted anew from here on (proc_pid_clear_refs(5)).
    fs::write("/proc/self/clear_refs", "5").expect("written");
    let before = memory("VmRSS");
    let started = Instant::now();
    let mut machine = qemu.start();
    let reason = machine.frame("a frame", started + TIMEOUT, TIMEOUT).expect_err("no frame");
    let timed_out = matches!(reason, StopReason::TimedOut { .. });
    let finished = machine.finish().map_err(|error| error.to_string());
    let tails = machine.console().expect("readable").len() + machine.stderr().expect("readable").len();
    drop(machine);
    let cost = memory("VmHWM").saturating_sub(before);
    assert!(cost < COST_MAX, "`{script}` cost {} MiB of memory", cost >> 20);
    assert!(qemu.kept() <= COST_MAX, "`{script}` cost {} bytes of disk", qemu.kept());
    assert!(!timed_out && tails as u64 <= 2 * MIB, "{reason}");
    assert!(finished.is_err() || !reason.to_string().contains("flooded"), "a flood is not forgotten");
    reason.to_string()
}

#[test]
fn flooding_qemu_costs_neither_memory_nor_disk() {
    let flooded = |what: &str| format!("{what} flooded: it reached 16 MiB, and QEMU was killed");
    assert_eq!(stopped("exec cat /dev/zero"), flooded("the guest's console"));
    assert_eq!(stopped("exec cat /dev/zero >&2"), flooded("QEMU's standard error"));
    assert_eq!(stopped("exec yes \"BUG: $(printf %0400d 0)\""), flooded("the guest's console"));
    let panic = stopped("exec yes 'Kernel panic - not syncing: x'");
    assert_eq!(panic, "the kernel panicked: Kernel panic - not syncing: x");
    let garbage = stopped("exec cat /dev/zero >&5");
    assert!(garbage.starts_with("the agent's port carried [00, 00, 00, 00]"), "{garbage}");

    // Frames that nobody takes, as while the host is busy with another guest.
    let qemu = FakeQemu::new("while cat DIR/frame; do :; done >&5");
    fs::write("/proc/self/clear_refs", "5").expect("written");
    let before = memory("VmRSS");
    let mut machine = qemu.start();
    std::thread::sleep(Duration::from_secs(3));
    let cost = memory("VmHWM").saturating_sub(before);
    assert!(cost < COST_MAX, "frames cost {} MiB", cost >> 20);
    let frame = machine.frame("a frame", Instant::now() + TIMEOUT, TIMEOUT).expect("one of them");
    assert_eq!((frame.kind, frame.payload.len() as u64), (FrameKind::Stdout, MIB));
}
