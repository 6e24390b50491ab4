//! Commands whose whole output is returned.

use std::fs::File;
use std::io::{self, Read};
use std::process::{Command, ExitStatus};
use std::thread::JoinHandle;
use std::time::Duration;

use super::group::ProcessGroup;
use super::interrupt;

/// How long a short command may take.
const SHORT: Duration = Duration::from_secs(60);
/// How many bytes a command may print on each of its streams.
const OUTPUT_MAX: u64 = 256 << 20;

/// How a command ended and what it printed.
#[derive(Debug)]
pub struct CommandOutput {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: String,
}

/// Run a command to its end and return what it printed.
///
/// # Errors
/// When it cannot be started, takes longer than `timeout`, prints more than 256 MiB, or the user has interrupted.
pub fn output(command: Command, timeout: Duration) -> io::Result<CommandOutput> {
    output_up_to(command, timeout, OUTPUT_MAX)
}

fn output_up_to(command: Command, timeout: Duration, max: u64) -> io::Result<CommandOutput> {
    let (group, out, err) = ProcessGroup::start_piped(command)?;
    let (out, err) = (read_up_to(out, max), read_up_to(err, max));
    // A command that prints too much dies of the pipe that is closed.
    let status = group.wait_timeout(timeout)?;
    // Whatever is left of the group holds the pipes: it ends now.
    group.kill();
    let join =
        |thread: JoinHandle<io::Result<Vec<u8>>>| thread.join().expect("reading a pipe does not panic");
    let (out, err) = (join(out), join(err));
    interrupt::check()?;
    let (stdout, stderr) = (out?, err?);
    let late = || {
        let error = format!("timed out after {:.1} s", timeout.as_secs_f64());
        io::Error::new(io::ErrorKind::TimedOut, error)
    };
    let status = status.ok_or_else(late)?;
    Ok(CommandOutput { status, stdout, stderr: String::from_utf8_lossy(&stderr).into_owned() })
}

/// Read a pipe to its end, or until there is too much.
fn read_up_to(pipe: File, max: u64) -> JoinHandle<io::Result<Vec<u8>>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.take(max + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("printed more than {} MiB", max >> 20),
            ));
        }
        Ok(bytes)
    })
}

/// Run a short command to its end and return its standard output, trimmed.
///
/// # Errors
/// The command line with what went wrong, and its standard error.
pub fn read(command: xshell::Cmd<'_>) -> io::Result<String> {
    read_within(command, SHORT)
}

fn read_within(command: xshell::Cmd<'_>, timeout: Duration) -> io::Result<String> {
    let shown = command.to_string();
    let fail = |what: String| io::Error::other(format!("failed to run `{shown}`: {what}"));
    let done = output(command.into(), timeout).map_err(|e| fail(e.to_string()))?;
    if !done.status.success() {
        return Err(fail(format!("{}\n{}", done.status, done.stderr.trim_end())));
    }
    let text = String::from_utf8(done.stdout).map_err(|_| fail("its output is not UTF-8".to_owned()))?;
    Ok(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use xshell::{Shell, cmd};

    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_and_status_are_returned() {
        let done = output(sh("echo out; echo err >&2; exit 7"), SHORT).expect("run");
        assert_eq!((done.stdout.as_slice(), done.stderr.as_str()), (&b"out\n"[..], "err\n"));
        assert_eq!(done.status.code(), Some(7));
    }

    #[test]
    fn slow_command_times_out() {
        let start = Instant::now();
        let error = output(sh("sleep 60"), Duration::from_millis(1000)).expect_err("too slow");
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (io::ErrorKind::TimedOut, "timed out after 1.0 s")
        );
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn endless_output_is_an_error_and_ends_the_command() {
        let start = Instant::now();
        for stream in ["1", "2"] {
            let error =
                output_up_to(sh(&format!("exec yes >&{stream}")), SHORT, 1 << 20).expect_err("too much");
            assert_eq!(error.to_string(), "printed more than 1 MiB");
        }
        assert!(start.elapsed() < Duration::from_secs(30));
        assert_eq!(output_up_to(sh("printf 12345678"), SHORT, 8).expect("fits").stdout, b"12345678");
    }

    #[test]
    fn process_left_behind_holds_up_nothing() {
        let start = Instant::now();
        assert_eq!(output(sh("sleep 60 & echo done"), SHORT).expect("run").stdout, b"done\n");
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn failure_of_a_short_command_shows_the_command_its_status_and_its_words() {
        let shell = Shell::new().expect("a directory");
        let error = |script: &str, timeout| {
            read_within(cmd!(shell, "sh -c {script}"), timeout).expect_err("fails").to_string()
        };
        assert_eq!(
            error("echo why >&2; exit 3", SHORT),
            "failed to run `sh -c \"echo why >&2; exit 3\"`: exit status: 3\nwhy"
        );
        let error_of_bytes = error("printf '\\377'", SHORT);
        assert!(error_of_bytes.ends_with("`: its output is not UTF-8"), "{error_of_bytes}");
        assert!(error("sleep 60", Duration::from_millis(100)).ends_with("timed out after 0.1 s"));
        assert_eq!(read(cmd!(shell, "echo text")).expect("run"), "text");
    }
}
