//! Long commands whose whole output is kept in a log file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

use super::group::{ProcessGroup, Streams, pipe};
use super::interrupt;

/// How many of a log's last lines a failure shows.
const TAIL_LINES: usize = 25;

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
    /// It ended with a status other than 0.
    #[error("failed to run `{command}`: {status}\nthe last lines of {log}:\n{tail}")]
    Failed {
        /// The command line.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// The whole log.
        log: Utf8PathBuf,
        /// The log's last lines.
        tail: String,
    },
    /// It took longer than its limit and was killed.
    #[error("gave up on `{command}` after {} s\nthe last lines of {log}:\n{tail}", limit.as_secs())]
    TooSlow {
        /// The command line.
        command: String,
        /// The limit.
        limit: Duration,
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
    let start = Instant::now();
    let mut file = File::options().create(true).append(true).open(log).map_err(fail)?;
    writeln!(file, "$ {shown}").map_err(fail)?;
    let (out, end) = pipe().map_err(fail)?;
    let second = end.try_clone().map_err(fail)?;
    let group = ProcessGroup::start(
        &Command::from(command),
        Streams { stdin: None, stdout: Some(end), stderr: Some(second) },
    )
    .map_err(fail)?;

    let (lines, received) = std::sync::mpsc::channel::<Vec<u8>>();
    std::thread::spawn(move || {
        let mut out = BufReader::new(out);
        loop {
            let mut line = Vec::new();
            match out.read_until(b'\n', &mut line) {
                Ok(1..) => {
                    if lines.send(line).is_err() {
                        return;
                    }
                }
                _ => return,
            }
        }
    });
    let deadline = start + timeout;
    loop {
        match received.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                file.write_all(&line).map_err(fail)?;
                on_line(String::from_utf8_lossy(&line).trim_end());
            }
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                return Err(LoggedError::TooSlow {
                    command: shown,
                    limit: timeout,
                    log: log.to_owned(),
                    tail: tail(log),
                });
            }
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = group.wait().map_err(fail)?;
    interrupt::check().map_err(fail)?;
    if status.success() {
        Ok(())
    } else {
        Err(LoggedError::Failed { command: shown, status, log: log.to_owned(), tail: tail(log) })
    }
}

/// The last lines of a text file, indented for showing.
pub fn tail(file: &Utf8Path) -> String {
    let text = std::fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(TAIL_LINES);
    lines[from..].iter().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use xshell::{Shell, cmd};

    fn run(script: &str, limit: Duration) -> (Result<(), LoggedError>, Vec<String>, String) {
        let sh = Shell::new().expect("a folder");
        let dir = tempfile::tempdir().expect("a folder");
        let log = Utf8Path::from_path(dir.path()).expect("UTF-8").join("log");
        let mut lines = Vec::new();
        let result = run_logged(
            LoggedCommand { command: cmd!(sh, "sh -c {script}"), log: &log, timeout: limit },
            |line| {
                lines.push(line.to_owned());
            },
        );
        let text = std::fs::read_to_string(&log).expect("a log");
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
    fn a_failure_shows_status_and_last_lines() {
        let error = run("echo why; exit 3", Duration::from_secs(10)).0.expect_err("status 3").to_string();
        assert!(error.contains("exit status: 3") && error.contains("    why"), "{error}");
    }

    #[test]
    fn a_command_that_hangs_is_given_up() {
        let start = Instant::now();
        let error =
            run("echo begun; sleep 60", Duration::from_millis(300)).0.expect_err("too slow").to_string();
        assert!(error.starts_with("gave up on") && error.contains("begun"), "{error}");
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}
