//! What the command prints of a hostile guest, and where its output cannot be printed.

use std::fs::File;
use std::process::Stdio;

use crate::support::{TestProject, goldtrace, output, prepared};

/// The clipboard (OSC 52), a reset, C1 control characters and an override of the direction, as printf has them.
const HOSTILE: &str = r"A\033]52;c;aGk=\007B\033cC\302\23331mD\342\200\256E";
/// How they are shown. The scanner for splats drops a reset.
const SHOWN: [&str; 2] = [r"A\x1b]52;c;aGk=\x07B", r"C\u{9b}31mD\u{202e}E"];

#[track_caller]
fn assert_nothing_raw(script: &str) {
    let case = format!("title: T\nguests: [x86_64]\nsteps:\n  - run: |\n      {script}\n    capture: out\n");
    let project = TestProject::new(&case, &[("out", "right\n")]);
    let (status, text) = output(&project, &["run"]);
    assert_ne!(status, 0, "{text:?}");
    assert!(SHOWN.iter().all(|part| text.contains(part)), "{text:?}");
    let raw = text.chars().find(|c| c.is_control() && !"\n\t".contains(*c) || *c == '\u{202e}');
    assert_eq!(raw, None, "{text:?}");
}

#[test]
fn nothing_that_a_guest_prints_reaches_the_terminal_raw() {
    prepared();
    assert_nothing_raw(&format!("printf '{HOSTILE}\\n'"));
    assert_nothing_raw(&format!("printf '<4>WARNING: {HOSTILE}\\n' > /dev/kmsg; echo right"));
    assert_nothing_raw(&format!("printf '{HOSTILE}\\n' > /dev/console; kill -9 1; reboot -f; sleep 9"));
    assert_nothing_raw(&format!("printf '{HOSTILE}\\n' >&2; exit 3"));
}

#[test]
fn output_that_cannot_be_printed_is_an_error_after_complete_records() {
    prepared();
    let project = TestProject::new(
        "title: T\nguests: [x86_64]\nsteps:\n  - run: echo right\n    capture: out\n",
        &[("out", "right\n")],
    );
    let full = || Stdio::from(File::options().write(true).open("/dev/full").expect("there"));
    let closed = || {
        let (read, write) = rustix::pipe::pipe().expect("a pipe");
        drop(read);
        Stdio::from(write)
    };
    for (stdout, why) in [(full(), "No space left on device"), (closed(), "Broken pipe")] {
        let output = goldtrace(&project, &["run"]).stdout(stdout).output().expect("runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{text}");
        let expected = format!("error: failed to write to standard output: {why}");
        assert!(text.contains(&expected) && !text.contains("panicked"), "{text}");
        let record = project.root.join("target/goldtrace/last/t@x86_64/trial.json");
        let record = std::fs::read_to_string(record).expect("a record");
        assert!(record.contains("pass"), "{record}");
        std::fs::remove_dir_all(project.root.join("target")).expect("removed");
    }
    for arguments in [&["list"][..], &["lint"], &["doctor"], &["--help"], &["run", "--dry-run"]] {
        for stdout in [full(), closed()] {
            let output = goldtrace(&project, arguments).stdout(stdout).output().expect("runs");
            let text = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(3), "{arguments:?}: {text}");
        }
    }
    let ended = goldtrace(&project, &["lint", "--guest"]).stderr(full()).output().expect("runs");
    assert_eq!(ended.status.code(), Some(3));
    let wrong = goldtrace(&project, &["run", "nothing"]).stderr(full()).output().expect("runs");
    assert_eq!(wrong.status.code(), Some(2));
}
