//! `goldtrace shell` on real guests: commands from a pipe, and a person at a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

use crate::support::{TestProject, goldtrace, prepared, shell_in_pipes};

/// How long the shell may take to answer on a busy host.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn commands_come_from_a_pipe_and_the_status_is_the_shells() {
    prepared();
    let project = TestProject::without_cases();
    let mut child = shell_in_pipes(&project, "ppc64le", &[]);
    let mut input = child.stdin.take().expect("piped");
    input
        .write_all(b"echo $((6 * 7)) is the answer; pwd; tty\necho '<3>made up' > /dev/kmsg; exit 3\n")
        .expect("sent");
    drop(input);
    let output = child.wait_with_output().expect("ended");
    assert_eq!(output.status.code(), Some(3));
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text, "42 is the answer\n/sys/kernel/tracing\nnot a tty\n");
    // What the kernel prints is apart.
    let text = String::from_utf8_lossy(&output.stderr);
    let kernel: Vec<&str> = text.lines().filter(|line| line.starts_with("kernel: ")).collect();
    assert!(matches!(kernel[..], [line] if line.ends_with("] made up")), "{text}");
}

/// A person at a terminal.
struct Person {
    keyboard: File,
    terminal: OwnedFd,
    child: Child,
}

impl Person {
    fn start(guest: &str) -> Person {
        prepared();
        let project = TestProject::without_cases();
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&keyboard).and_then(|()| unlockpt(&keyboard)).expect("ours");
        let name = ptsname(&keyboard, Vec::new()).expect("a name").into_string().expect("UTF-8");
        let open = || File::options().read(true).write(true).open(&name).expect("opened");
        resize(&keyboard, 30, 100);
        let mut command = goldtrace(&project, &["shell", "--guest", guest]);
        command.stdin(Stdio::from(open())).stdout(Stdio::from(open())).stderr(Stdio::from(open()));
        let child = command.env("TERM", "vt220").spawn().expect("starts");
        let mut person = Person { keyboard: keyboard.into(), terminal: open().into(), child };
        person.sees(&format!("{guest}:/sys/kernel/tracing# "));
        person
    }

    /// Read what the terminal shows until it has shown this; all that it has shown.
    #[track_caller]
    fn sees(&mut self, text: &str) -> String {
        let (begin, mut seen) = (Instant::now(), String::new());
        while !seen.contains(text) {
            let mut poll = [rustix::event::PollFd::new(&self.keyboard, rustix::event::PollFlags::IN)];
            let second = rustix::event::Timespec { tv_sec: 1, tv_nsec: 0 };
            if rustix::event::poll(&mut poll, Some(&second)).expect("polled") > 0 {
                let mut buffer = [0; 4096];
                let n = self.keyboard.read(&mut buffer).expect("shown");
                seen.push_str(&String::from_utf8_lossy(&buffer[..n]));
            }
            assert!(begin.elapsed() < PATIENCE, "no `{text}` in {seen:?}");
        }
        seen
    }

    fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("typed");
    }

    fn settings(&self) -> Termios {
        tcgetattr(&self.terminal).expect("a terminal")
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn resize(terminal: impl std::os::fd::AsFd, rows: u16, columns: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("resized");
}

#[test]
fn person_has_a_terminal_of_the_same_size_and_kind() {
    for guest in ["x86_64", "ppc64le"] {
        let mut person = Person::start(guest);
        person.types("stty size; tty; echo $TERM.\r");
        let seen = person.sees("vt220.\r\n");
        assert!(seen.contains("30 100\r\n/dev/pts/0\r\n"), "{seen:?}");
        resize(&person.keyboard, 50, 132);
        // The size is looked at a hundred times a second.
        person.types("while [ \"$(stty size)\" != '50 132' ]; do sleep 0.1; done; echo re''sized\r");
        person.sees("resized\r\n");
        // The key goes to the guest, and ends what runs there.
        person.types("echo be''gun; cat\r");
        person.sees("begun\r\n");
        person.types("again\r");
        person.sees("again\r\nagain\r\n");
        person.types("\x03");
        person.sees("tracing# ");
        person.types("echo '<4>made up' > /dev/kmsg\r");
        person.sees("kernel: ");
        person.types("exit 7\r");
        person.sees("warning: the kernel printed a splat: made up");
        assert_eq!(person.child.wait().expect("ended").code(), Some(7));
    }
}

#[test]
fn terminal_is_as_before_after_the_key_that_ends_the_guest() {
    let mut person = Person::start("x86_64");
    let taken = format!("{:?}", person.settings().local_modes);
    assert!(!taken.contains("ICANON"), "{taken}");
    person.types("sleep 1000\r");
    person.types("\x1d");
    assert_eq!(person.child.wait().expect("ended").code(), Some(0));
    let settings = format!("{:?}", person.settings().local_modes);
    assert!(settings.contains("ICANON") && settings.contains("ECHO"), "{settings}");
}

#[test]
fn terminal_is_as_before_when_the_kernel_panics() {
    let mut person = Person::start("x86_64");
    person.types("echo c > /proc/sysrq-trigger\r");
    person.sees("error: the kernel panicked: Kernel panic - not syncing: sysrq triggered crash");
    assert_eq!(person.child.wait().expect("ended").code(), Some(125));
    assert!(format!("{:?}", person.settings().local_modes).contains("ICANON"));
}
