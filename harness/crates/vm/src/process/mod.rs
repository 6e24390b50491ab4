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
mod output;
mod tail;

pub use group::{INHERITED, ProcessGroup, Streams, pipe};
pub use logged::{LoggedCommand, LoggedError, run_logged};
pub use output::{CommandOutput, output, read};
pub use tail::{last_lines, tail_of_file};

/// Text of a command line that a shell would read back as the same words.
pub fn shell_line<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> String {
    shell_words::join(words)
}
