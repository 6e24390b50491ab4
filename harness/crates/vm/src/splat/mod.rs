//! The kernel's reports on its console, as data.
//!
//! A [`Splat`] is one report: its kind, the line that names it, the function in which it happened, and the lines of its
//! block. [`SplatScanner`] finds them in a console that arrives in pieces of any size. What one cause makes the kernel
//! print is one splat: an oops and the panic that `oops=panic` makes of it, a warning and its registers.
//!
//! This module reads text. It knows no file, no process and no case.

mod block;
mod kind;
mod phrase;
mod scanner;

pub use kind::SplatKind;
pub use scanner::SplatScanner;

/// A report of the kernel on its console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splat {
    /// What kind of report it is.
    pub kind: SplatKind,
    /// The line that names the report, without its time stamp.
    pub line: String,
    /// The function in which it happened: the one in the report's own line (`WARNING: kernel/x.c:1 at f+0x1/0x2`,
    /// `BUG: KASAN: ... in f+0x1/0x2`, `RIP: 0010:f+0x1/0x2`, `NIP [c000000000001234] f+0x1/0x2`). A report that has none,
    /// such as a panic, takes it from its call trace: the first function there that does not belong to the reporting.
    pub function: Option<String>,
    /// The kernel panicked on it: the guest is about to end.
    pub fatal: bool,
    /// The lines of the report from [`Splat::line`] on, without their time stamps, as far as they have arrived; at most
    /// 250 lines of at most 1 KiB.
    pub block: Vec<String>,
}

impl Splat {
    /// The splats of a console that is complete.
    pub fn scan(console: &[u8]) -> Vec<Splat> {
        let mut scanner = SplatScanner::default();
        scanner.feed(console);
        scanner.finish();
        scanner.into_splats()
    }
}

#[cfg(test)]
mod tests;
