//! Processes that cannot outlive us.
//!
//! Everything that goldtrace starts runs in a process group of its own, through [`Group`]. A group
//! ends when its `Group` is dropped (also by a panic), when the user interrupts (see
//! [`interrupt`]), and when goldtrace itself dies, even by SIGKILL.
//!
//! This module knows nothing of QEMU or of builds.

mod group;
pub mod interrupt;
mod logged;

pub use group::{Group, Output};
pub use logged::{Logged, LoggedError, run_logged, tail};

use std::io;

/// Text of a command line that a shell would read back as the same words.
pub fn shell_line<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> String {
    shell_words::join(words)
}

/// Run a short command to its end and return its standard output, trimmed.
///
/// # Errors
/// The command line with what went wrong, and its standard error.
pub fn read(command: xshell::Cmd<'_>) -> io::Result<String> {
    let shown = command.to_string();
    let fail = |what: String| io::Error::other(format!("failed to run `{shown}`: {what}"));
    let (group, mut out, mut err) = Group::start_piped(command.into()).map_err(|e| fail(e.to_string()))?;
    let err = std::thread::spawn(move || io::read_to_string(&mut err));
    let out = io::read_to_string(&mut out).map_err(|e| fail(e.to_string()))?;
    let err = err.join().expect("reading standard error does not panic").unwrap_or_default();
    let status = group.wait()?;
    interrupt::check()?;
    if !status.success() {
        return Err(fail(format!("{status}\n{}", err.trim_end())));
    }
    Ok(out.trim_end().to_owned())
}
