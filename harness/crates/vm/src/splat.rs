//! The kernel's console: raw bytes, watched for splats.

use std::sync::LazyLock;

use regex::bytes::{Regex, RegexSet};

/// A line of the console in which the kernel complains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splat {
    /// The line as the kernel printed it, without its time stamp.
    pub line: String,
    /// The guest is about to end: a panic.
    pub fatal: bool,
}

/// Phrases of the kernel's own reports: lib/bug.c, kernel/panic.c, the architectures' fault
/// handlers, the sanitizers, lockdep and the stall detectors, as of Linux 7.2.
static SPLATS: LazyLock<RegexSet> = LazyLock::new(|| {
    RegexSet::new([
        r"Kernel panic - not syncing",
        r"\bOops\b",
        r"\bBUG: ",
        r"\bkernel BUG at ",
        r"\bWARNING: ",
        r"------------\[ cut here \]",
        r"\bUnable to handle kernel ",
        r"\bInternal error: ",
        r"\bgeneral protection fault",
        r"\b(KASAN|KCSAN|KFENCE|UBSAN|KMSAN): ",
        r"\bINFO: (task .* blocked for more than|rcu_.* (detected|self-detected) )",
        r"\brcu: INFO: ",
        r"\bwatchdog: BUG: ",
        r"\bOut of memory: ",
        r"\bsegfault at ",
    ])
    .expect("the patterns are valid")
});

static FATAL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"Kernel panic - not syncing").expect("the pattern is valid"));
static STAMP: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\s*(<\d+>)?\[ *\d+\.\d+\](\[[^\]]*\])? ?").expect("the pattern is valid"));
/// Terminal control sequences, which firmware prints before the kernel's first line.
static CONTROL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\x1b(\[[0-9;?=]*[A-Za-z]|c)|\r").expect("the pattern is valid"));

/// Finds splats in a console that arrives in pieces.
#[derive(Debug, Default)]
pub struct SplatScanner {
    line: Vec<u8>,
}

/// A line longer than this is judged in parts: a console without line ends must not fill memory.
const LINE_MAX: usize = 1 << 16;

impl SplatScanner {
    /// Take more of the console; calls `found` with each splat that it completes.
    pub fn feed(&mut self, bytes: &[u8], mut found: impl FnMut(Splat)) {
        for byte in bytes {
            if *byte == b'\n' || self.line.len() >= LINE_MAX {
                self.finish(&mut found);
            } else {
                self.line.push(*byte);
            }
        }
    }

    /// The console has ended: judge what is left.
    pub fn finish(&mut self, mut found: impl FnMut(Splat)) {
        let line = std::mem::take(&mut self.line);
        if SPLATS.is_match(&line) {
            let clean = CONTROL.replace_all(&line, &b""[..]);
            let text = STAMP.replace(&clean, &b""[..]);
            let line = String::from_utf8_lossy(&text).trim_end().to_owned();
            found(Splat { fatal: FATAL.is_match(line.as_bytes()), line });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(pieces: &[&[u8]]) -> Vec<(String, bool)> {
        let mut found = Vec::new();
        let mut scanner = SplatScanner::default();
        for piece in pieces {
            scanner.feed(piece, |c| found.push((c.line, c.fatal)));
        }
        scanner.finish(|c| found.push((c.line, c.fatal)));
        found
    }

    #[test]
    fn a_panic_is_found_across_pieces_and_without_its_stamp() {
        let found = scan(&[
            b"\x1bc\x1b[?7l[    0.1] all is well\r\n[    1.234567] Kernel pan",
            b"ic - not syncing: sysrq triggered crash\r\n[ 1.3] CPU: 0\n",
        ]);
        assert_eq!(found, [("Kernel panic - not syncing: sysrq triggered crash".to_owned(), true)]);
    }

    #[test]
    fn a_warning_is_a_complaint_and_not_fatal() {
        let found = scan(&[b"[    2.0] WARNING: kernel/x.c:1 at f+0x1/0x2, CPU#1: sh/1\n"]);
        assert_eq!(found.len(), 1);
        assert!(!found[0].1);
    }

    #[test]
    fn text_glued_to_other_text_is_found_and_a_last_line_too() {
        let found = scan(&[b"ENABLE[    0.707813] BUG: Kernel NULL pointer dereference on write"]);
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn an_ordinary_boot_has_no_complaint() {
        let console = b"[    0.000000] Linux version 7.2.13\n[    0.1] random: crng init done\n\
                        [    0.2] printk: legacy console [hvc0] enabled\n[    0.3] debug: ignoring loglevel setting.\n";
        assert_eq!(scan(&[console]), []);
    }
}
