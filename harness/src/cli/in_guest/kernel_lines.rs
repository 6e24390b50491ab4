//! What the guest's kernel prints while a shell runs: lines of their own on standard error.

use std::io;

use memchr::memchr;
use vm::END_OF_REQUEST;
use vm::qemu::Machine;

use crate::report::{ReportText, note, pass_on_to_stderr};

/// A longer line is shown in parts, in bytes.
const LINE_MAX: usize = 1 << 16;

/// The console of a guest that runs, line by line.
#[derive(Debug)]
pub(in crate::cli) struct KernelLines {
    /// How many bytes of it have been taken.
    at: u64,
    /// The beginning of a line whose end has not come.
    begun: Vec<u8>,
    /// What ends a line on our terminal.
    end: &'static [u8],
}

impl KernelLines {
    /// Those that come after the boot. A terminal that is taken for the guest wants a carriage return too.
    ///
    /// # Errors
    /// When the console's file cannot be looked at.
    pub(in crate::cli) fn begin(machine: &Machine, on_taken_terminal: bool) -> io::Result<KernelLines> {
        let end = if on_taken_terminal { &b"\r\n"[..] } else { b"\n" };
        Ok(KernelLines { at: machine.console_of_boot()?, begun: Vec::new(), end })
    }

    /// Print those that have come to their end.
    ///
    /// # Errors
    /// When the console's file cannot be read, or standard error not written.
    pub(super) fn print(&mut self, machine: &Machine) -> io::Result<()> {
        let more = machine.console_behind(self.at)?;
        self.at += more.len() as u64;
        for line in self.lines(&more) {
            note(&ReportText::of(format_args!("kernel: {line}")));
            pass_on_to_stderr(self.end)?;
        }
        Ok(())
    }

    /// The lines that end in `more`, without levels, and without the agent's own.
    fn lines(&mut self, more: &[u8]) -> Vec<String> {
        self.begun.extend(more);
        let mut lines = Vec::new();
        let mut rest = &self.begun[..];
        loop {
            let (line, after) = match memchr(b'\n', rest) {
                Some(end) => (&rest[..end], end + 1),
                None if rest.len() >= LINE_MAX => (rest, rest.len()),
                None => break,
            };
            rest = &rest[after..];
            let text = String::from_utf8_lossy(line);
            let text = without_level(text.trim_end_matches('\r'));
            if !text.contains(END_OF_REQUEST) {
                lines.push(text.to_owned());
            }
        }
        self.begun = rest.to_vec();
        lines
    }
}

/// A line of the console without the level at its front, as in `<4>[    1.000000] text`.
fn without_level(line: &str) -> &str {
    let level = line.strip_prefix('<').and_then(|rest| rest.split_once('>'));
    match level {
        Some((number, text)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
            text
        }
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_without_levels_and_marks() {
        let mut kernel = KernelLines { at: 0, begun: Vec::new(), end: b"\n" };
        assert_eq!(
            kernel.lines(b"<4>[    1.000000] one\r\n<12>[    1.1] goldtrace: end of requ"),
            ["[    1.000000] one"]
        );
        assert_eq!(kernel.lines(b"est 00000000000000ab\r\n<x> \xff\n"), ["<x> \u{fffd}"]);
        assert_eq!(kernel.lines(b""), [""; 0]);
        assert_eq!(kernel.lines(&[b'a'; LINE_MAX]).len(), 1);
    }
}
