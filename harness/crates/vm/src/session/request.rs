//! What the agent is asked for, and what it answers.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::time::Duration;

/// What a request does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// Run a script with `sh -e -o pipefail`.
    Run(String),
    /// The same, with a standard input that comes from [`Session::send_input`](super::Session::send_input), until
    /// [`Session::close_input`](super::Session::close_input).
    RunOpen(String),
    /// The same on a terminal of its own, whose output is the request's standard output. Input is typed there.
    Terminal {
        /// The script.
        script: String,
        /// The terminal's size to begin with.
        size: TerminalSize,
    },
    /// Read a file to its end.
    Read(String),
    /// Make a file hold these bytes. See [`Session::write_file`](super::Session::write_file).
    Write {
        /// Its path.
        path: String,
        /// All that it is to hold.
        content: Vec<u8>,
    },
    /// Add these bytes to the end of a file.
    Append {
        /// Its path.
        path: String,
        /// What is added.
        content: Vec<u8>,
    },
}

/// The size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

impl TerminalSize {
    /// As guests/agent/protocol.h has it.
    pub(super) fn bytes(self) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[..2].copy_from_slice(&self.rows.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.columns.to_le_bytes());
        bytes
    }
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What to do.
    pub work: Work,
    /// The directory that relative paths start from.
    pub cwd: String,
    /// How long it may take, by the host's clock.
    pub timeout: Duration,
    /// How many bytes it may print, on both streams together.
    pub output_limit: u32,
}

impl Request {
    /// The payload of its frame, as guests/agent/protocol.h describes it.
    pub(super) fn payload(&self) -> Vec<u8> {
        let (body, content) = match &self.work {
            Work::Run(text) | Work::RunOpen(text) | Work::Read(text) => (text, None),
            Work::Terminal { script, size } => (script, Some(Cow::Owned(size.bytes().to_vec()))),
            Work::Write { path, content } | Work::Append { path, content } => {
                (path, Some(Cow::Borrowed(&content[..])))
            }
        };
        let length = u32::try_from(self.cwd.len()).unwrap_or(u32::MAX);
        let mut bytes = Vec::new();
        bytes.extend(self.output_limit.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend(self.cwd.as_bytes());
        bytes.extend(body.as_bytes());
        if let Some(content) = content {
            bytes.push(0);
            bytes.extend(&*content);
        }
        bytes
    }

    /// What is waited for, for messages.
    pub(super) fn awaited(&self) -> String {
        match &self.work {
            Work::Run(script) | Work::RunOpen(script) | Work::Terminal { script, .. } => {
                format!("the end of `{}`", first_line(script))
            }
            Work::Read(path) => format!("the content of {path}"),
            Work::Write { path, .. } | Work::Append { path, .. } => format!("the end of writing {path}"),
        }
    }
}

fn first_line(script: &str) -> &str {
    script.lines().find(|line| !line.trim().is_empty()).unwrap_or_default()
}

/// How a request ended in the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepEnd {
    /// The script exited with this status; a file that was read counts as 0.
    Exited(u32),
    /// The script was killed by this signal.
    Signalled(u32),
    /// It reached its timeout and was killed.
    TimedOut,
    /// It reached its output limit and was killed.
    Flooded,
    /// It could not be started, opened, read or written: errno.
    Errno(u32),
}

impl fmt::Display for StepEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StepEnd::Exited(status) => write!(f, "exit status {status}"),
            StepEnd::Signalled(signal) => write!(f, "killed by signal {signal}"),
            StepEnd::TimedOut => write!(f, "timed out and was killed"),
            StepEnd::Flooded => write!(f, "printed more than its output limit and was killed"),
            StepEnd::Errno(errno) => match i32::try_from(*errno) {
                Ok(errno) => write!(f, "{}", io::Error::from_raw_os_error(errno)),
                Err(_) => write!(f, "unknown errno {errno}"),
            },
        }
    }
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// How it ended.
    pub end: StepEnd,
    /// Its standard output, or the file's content.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// How long it took, in the guest's time.
    pub elapsed: Duration,
    /// A process that lives on still holds its standard output or its standard error open. What that writes belongs
    /// to no request.
    pub held_open: bool,
    /// The kernel's state after it.
    pub kernel: KernelState,
}

/// What the kernel says of itself, whatever its console shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KernelState {
    /// Its taint, a bit for each cause (Documentation/admin-guide/tainted-kernels.rst).
    pub tainted: u64,
    /// The console shows messages below this level (`console_printk`, kernel/printk/printk.c:65).
    pub console_level: u32,
    /// The level of messages that name none.
    pub message_level: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_is_as_protocol_h_says() {
        let request = Request {
            work: Work::Read("f".to_owned()),
            cwd: "/d".to_owned(),
            timeout: Duration::from_secs(1),
            output_limit: 5,
        };
        assert_eq!(request.payload(), b"\x05\0\0\0\x02\0\0\0/df");
        assert_eq!(request.awaited(), "the content of f");
        let work = Work::Write { path: "f".to_owned(), content: b"a\0b".to_vec() };
        let write = Request { work, ..request.clone() };
        assert!(write.payload().ends_with(b"/df\0a\0b"));
        assert_eq!(write.awaited(), "the end of writing f");
        let work = Work::Terminal { script: "s".to_owned(), size: TerminalSize { rows: 0x102, columns: 80 } };
        let terminal = Request { work, ..request.clone() };
        assert!(terminal.payload().ends_with(b"/ds\0\x02\x01\0\0\x50\0\0\0"));
        assert_eq!(terminal.awaited(), "the end of `s`");
        let script = Request { work: Work::Run("\n  \n a\nb".to_owned()), ..request };
        assert_eq!(script.awaited(), "the end of ` a`");
    }

    #[test]
    fn ends_have_words() {
        let words = [
            (StepEnd::Exited(3), "exit status 3"),
            (StepEnd::Signalled(9), "killed by signal 9"),
            (StepEnd::TimedOut, "timed out and was killed"),
            (StepEnd::Flooded, "printed more than its output limit and was killed"),
            (StepEnd::Errno(2), "No such file or directory (os error 2)"),
            (StepEnd::Errno(u32::MAX), "unknown errno 4294967295"),
        ];
        for (end, expected) in words {
            assert_eq!(end.to_string(), expected);
        }
    }
}
