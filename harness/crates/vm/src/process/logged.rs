//! Long commands whose whole output is kept in a log file.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

use super::group::{ProcessGroup, Streams, pipe};
use super::interrupt;
use super::tail::{last_lines, tail_of_file};

/// How many of a log's last lines a failure shows.
const TAIL_LINES: usize = 25;
/// How many of a log's last bytes these lines are looked for in.
const TAIL_BYTES: u64 = 1 << 16;
/// A line longer than this is passed on in parts, in bytes.
const LINE_MAX: u64 = 1 << 16;
/// How much one command may print, in bytes. The build of a kernel prints a hundredth of it.
const OUTPUT_MAX: u64 = 64 << 20;
/// How many lines wait to be written; then the command waits.
const LINES_MAX: usize = 64;

/// A command to run with its output logged.
#[derive(Debug)]
pub struct LoggedCommand<'a> {
    /// The command, as it is shown and run.
    pub command: xshell::Cmd<'a>,
    /// The file that its standard output and standard error are appended to.
    pub log: &'a Utf8Path,
    /// How long it may take.
    pub timeout: Duration,
}

/// Why a logged command did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum LoggedError {
    /// Its exit status is not 0.
    #[error("failed to run `{command}`: {status}\nthe last lines of {log}:\n{tail}")]
    Failed {
        /// The command line.
        command: String,
        /// Its exit status.
        status: ExitStatus,
        /// The whole log.
        log: Utf8PathBuf,
        /// The log's last lines.
        tail: String,
    },
    /// It took longer than its timeout and was killed.
    #[error(
        "failed to run `{command}`: timed out after {:.1} s\nthe last lines of {log}:\n{tail}", timeout.as_secs_f64()
    )]
    TimedOut {
        /// The command line.
        command: String,
        /// The timeout.
        timeout: Duration,
        /// The whole log.
        log: Utf8PathBuf,
        /// The log's last lines.
        tail: String,
    },
    /// It printed more than a log may hold and was killed.
    #[error(
        "failed to run `{command}`: it printed more than {max} MiB\nthe last lines of {log}:\n{tail}",
        max = OUTPUT_MAX >> 20
    )]
    Flooded {
        /// The command line.
        command: String,
        /// The whole log.
        log: Utf8PathBuf,
        /// The log's last lines.
        tail: String,
    },
    /// It could not be started, its output not kept, or the user has interrupted.
    #[error("failed to run `{command}`: {error}")]
    Io {
        /// The command line.
        command: String,
        /// The cause.
        #[source]
        error: io::Error,
    },
}

/// Run a command to its end, calling `on_line` with each line that it prints.
///
/// # Errors
/// See [`LoggedError`].
pub fn run_logged(logged: LoggedCommand<'_>, mut on_line: impl FnMut(&str)) -> Result<(), LoggedError> {
    let LoggedCommand { command, log, timeout } = logged;
    let shown = command.to_string();
    let fail = |error: io::Error| LoggedError::Io { command: shown.clone(), error };
    let deadline = Instant::now() + timeout;
    let mut file = File::options().create(true).append(true).open(log).map_err(fail)?;
    writeln!(file, "$ {shown}").map_err(fail)?;
    let (out, end) = pipe().map_err(fail)?;
    let second = end.try_clone().map_err(fail)?;
    let streams = Streams { stdout: Some(end), stderr: Some(second), ..Streams::default() };
    let group = ProcessGroup::start(&Command::from(command), streams).map_err(fail)?;

    let (lines, received) = sync_channel(LINES_MAX);
    std::thread::spawn(move || send_lines(out, &lines));
    let mut printed = 0;
    loop {
        // The clock is looked at first: there is always a line of a command that prints for ever.
        let left = deadline.saturating_duration_since(Instant::now());
        let line = if left.is_zero() { Err(RecvTimeoutError::Timeout) } else { received.recv_timeout(left) };
        match line {
            Ok(line) => {
                printed += line.len() as u64;
                if printed > OUTPUT_MAX {
                    let tail = tail(log).map_err(fail)?;
                    return Err(LoggedError::Flooded { command: shown, log: log.to_owned(), tail });
                }
                file.write_all(&line).map_err(fail)?;
                on_line(String::from_utf8_lossy(&line).trim_end());
            }
            Err(RecvTimeoutError::Timeout) => {
                let tail = tail(log).map_err(fail)?;
                return Err(LoggedError::TimedOut { command: shown, timeout, log: log.to_owned(), tail });
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = group.wait().map_err(fail)?;
    interrupt::check().map_err(fail)?;
    if status.success() {
        return Ok(());
    }
    let tail = tail(log).map_err(fail)?;
    Err(LoggedError::Failed { command: shown, status, log: log.to_owned(), tail })
}

/// Send each line with its end, a long one in parts, until they are not taken any more.
fn send_lines(out: File, lines: &SyncSender<Vec<u8>>) {
    let mut out = BufReader::new(out);
    loop {
        let mut line = Vec::new();
        match io::BufRead::read_until(&mut out.by_ref().take(LINE_MAX), b'\n', &mut line) {
            Ok(1..) if lines.send(line).is_ok() => {}
            _ => return,
        }
    }
}

/// The last lines of a log, indented for showing.
fn tail(log: &Utf8Path) -> io::Result<String> {
    let text = tail_of_file(log, TAIL_BYTES)?;
    let lines = last_lines(&text, TAIL_LINES).lines().map(|line| format!("    {line}"));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use xshell::{Shell, cmd};

    /// Run a script. Return the result and the log's text.
    fn run_with(
        script: &str,
        timeout: Duration,
        on_line: impl FnMut(&str),
    ) -> (Result<(), LoggedError>, String) {
        let sh = Shell::new().expect("a directory");
        let dir = tempfile::tempdir().expect("a directory");
        let log = Utf8Path::from_path(dir.path()).expect("UTF-8").join("log");
        let logged = LoggedCommand { command: cmd!(sh, "sh -c {script}"), log: &log, timeout };
        let result = run_logged(logged, on_line);
        let text = std::fs::read_to_string(&log).expect("a log");
        (result, text)
    }

    fn run(script: &str, timeout: Duration) -> (Result<(), LoggedError>, Vec<String>, String) {
        let mut lines = Vec::new();
        let (result, text) = run_with(script, timeout, |line| lines.push(line.to_owned()));
        (result, lines, text)
    }

    #[test]
    fn lines_reach_the_caller_and_the_log() {
        let (result, lines, log) = run("echo a; echo b >&2", Duration::from_secs(10));
        result.expect("status 0");
        assert_eq!(lines, ["a", "b"]);
        assert!(log.ends_with("\na\nb\n"), "{log}");
    }

    #[test]
    fn failure_shows_status_and_last_lines() {
        let error = run("echo why; exit 3", Duration::from_secs(10)).0.expect_err("status 3").to_string();
        assert!(error.contains("exit status: 3") && error.contains("    why"), "{error}");
    }

    #[test]
    fn command_that_hangs_times_out() {
        let start = Instant::now();
        let error =
            run("echo begun; sleep 60", Duration::from_millis(300)).0.expect_err("too slow").to_string();
        assert!(error.contains("`: timed out after 0.3 s\n") && error.contains("    begun"), "{error}");
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn command_that_floods_times_out() {
        let start = Instant::now();
        for flood in ["exec yes", "exec cat /dev/zero"] {
            // A line of at most 64 KiB a millisecond: the next one waits already, and 100 are not too many.
            let error = run_with(flood, Duration::from_millis(100), |_| {
                std::thread::sleep(Duration::from_millis(1));
            });
            let error = error.0.expect_err("endless");
            assert!(matches!(error, LoggedError::TimedOut { .. }), "{error}");
        }
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn command_that_fills_its_log_is_killed() {
        let sh = Shell::new().expect("a directory");
        let dir = tempfile::tempdir().expect("a directory");
        let log = &Utf8Path::from_path(dir.path()).expect("UTF-8").join("log");
        let (script, timeout) = ("exec tr '\\0' x < /dev/zero", Duration::from_secs(600));
        let logged = LoggedCommand { command: cmd!(sh, "sh -c {script}"), log, timeout };
        let error = run_logged(logged, |_| ()).expect_err("endless").to_string();
        assert!(error.contains("it printed more than 64 MiB\nthe last lines of "), "{error}");
        let size = log.metadata().expect("there").len();
        assert!(size <= OUTPUT_MAX + 100, "{size} bytes");
    }

    #[test]
    fn log_that_cannot_be_written_is_an_error() {
        let sh = Shell::new().expect("a directory");
        let command = cmd!(sh, "sh -c true");
        let log = Utf8Path::new("/nowhere/log");
        let error = run_logged(LoggedCommand { command, log, timeout: Duration::from_secs(10) }, |_| ());
        let error = error.expect_err("no directory").to_string();
        assert!(error.starts_with("failed to run `sh -c true`: No such file or directory"), "{error}");
    }
}
