//! Processes that cannot outlive us.
//!
//! Everything that goldtrace starts runs in a process group of its own, through [`ProcessGroup`]. A group
//! ends when its `ProcessGroup` is dropped (also by a panic), when the user interrupts (see
//! [`interrupt`]), and when goldtrace itself dies, even by SIGKILL.
//!
//! This module knows nothing of QEMU or of builds.

mod group;
pub mod interrupt;
mod logged;

pub use group::{ProcessGroup, Streams};
pub use logged::{LoggedCommand, LoggedError, run_logged, tail};

use std::io::{self, Read};
use std::process::{Command, ExitStatus};
use std::time::Duration;

/// How long a short command may take.
const SHORT: Duration = Duration::from_secs(60);

/// Text of a command line that a shell would read back as the same words.
pub fn shell_line<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> String {
    shell_words::join(words)
}

/// What a command that has ended printed.
#[derive(Debug)]
pub struct CommandOutput {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: String,
}

/// Run a command to its end and gather what it prints.
///
/// # Errors
/// When it cannot be started, or does not end within `limit`, or the user has interrupted.
pub fn output(command: Command, limit: Duration) -> io::Result<CommandOutput> {
    let (group, mut out, mut err) = ProcessGroup::start_piped(command)?;
    let out = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        out.read_to_end(&mut bytes).map(|_| bytes)
    });
    let err = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        err.read_to_end(&mut bytes).map(|_| bytes)
    });
    let status = group.wait_timeout(limit)?;
    // What is still there is killed: whatever holds the pipes ends.
    group.kill();
    let joined = |thread: std::thread::JoinHandle<io::Result<Vec<u8>>>| {
        thread.join().expect("reading a pipe does not panic")
    };
    let (stdout, stderr) = (joined(out)?, joined(err)?);
    interrupt::check()?;
    let late = || io::Error::new(io::ErrorKind::TimedOut, format!("no end within {} s", limit.as_secs()));
    let status = status.ok_or_else(late)?;
    Ok(CommandOutput { status, stdout, stderr: String::from_utf8_lossy(&stderr).into_owned() })
}

/// Run a short command to its end and return its standard output, trimmed.
///
/// # Errors
/// The command line with what went wrong, and its standard error.
pub fn read(command: xshell::Cmd<'_>) -> io::Result<String> {
    let shown = command.to_string();
    let fail = |what: String| io::Error::other(format!("failed to run `{shown}`: {what}"));
    let done = output(command.into(), SHORT).map_err(|e| fail(e.to_string()))?;
    if !done.status.success() {
        return Err(fail(format!("{}\n{}", done.status, done.stderr.trim_end())));
    }
    let text = String::from_utf8(done.stdout).map_err(|_| fail("it printed what is no text".to_owned()))?;
    Ok(text.trim_end().to_owned())
}
