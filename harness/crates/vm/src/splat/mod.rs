//! The kernel's splats on its console, as data.
//!
//! Every message of the kernel at warning level or above is a splat, unless the guest's description lists it among
//! those that a healthy kernel prints ([`KnownMessages`]). A [`Splat`] is one report: its kind, the line that names it,
//! the function in which it happened, and the lines of its block. [`SplatScanner`] finds them in a console that arrives
//! in pieces of any size. What one cause makes the kernel print is one splat: an oops and the panic that `oops=panic`
//! makes of it, a warning and its registers.
//!
//! This module reads text. It knows no file, no process and no case.

mod block;
mod form;
mod kind;
mod known;
mod line;
mod phrase;
mod scanner;

use guest::KnownMessage;

pub use kind::SplatKind;
pub use known::KnownMessages;
pub use scanner::SplatScanner;

/// How many functions of its call trace tell a splat from others.
const FRAMES_MAX: usize = 5;

/// A report of the kernel on its console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splat {
    /// What kind of report it is.
    pub kind: SplatKind,
    /// The level of its first line, 0 (emergency) to 4 (warning); `None` where the console did not carry it.
    pub level: Option<u8>,
    /// The line that names the report, without its level and time stamp.
    pub line: String,
    /// The function in which it happened: the one in the report's own line (`WARNING: kernel/x.c:1 at f+0x1/0x2`,
    /// `BUG: KASAN: ... in f+0x1/0x2`, `RIP: 0010:f+0x1/0x2`, `NIP [c000000000001234] f+0x1/0x2`). A report that has none,
    /// such as a panic, takes it from its call trace: the first function there that does not belong to the reporting.
    pub function: Option<String>,
    /// The first functions of its call trace, at most five, innermost first, without those of the reporting.
    pub frames: Vec<String>,
    /// The kernel panicked on it: the guest is about to end.
    pub fatal: bool,
    /// The last request that had ended when it came: its nonce, or 0 for the agent's greeting; `None` before that.
    pub after: Option<u64>,
    /// The lines of the report, without their levels and time stamps, as far as they have arrived; at most
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

    /// The one of these messages that the line naming the splat is; `None` when it is none of them.
    pub fn known_as<'m>(&self, messages: &'m [KnownMessage]) -> Option<&'m KnownMessage> {
        let known = KnownMessages::new(messages).ok()?;
        known.matches(&self.line).next().and_then(|at| messages.get(at))
    }

    /// What is the same of this splat in every trial and on every kernel build: its kind, its function and the first
    /// functions of its call trace, or, where there is no call trace, its line with `N` for each number.
    pub fn fingerprint(&self) -> String {
        let function = self.function.as_deref().map(|function| format!(" in {function}")).unwrap_or_default();
        if self.frames.is_empty() {
            return format!("{}{function}: {}", self.kind, without_numbers(&self.line));
        }
        format!("{}{function}: {}", self.kind, self.frames.join(" < "))
    }

    /// Whether the two are one report that has come twice: of one fingerprint, and from one line of the kernel's source
    /// where they name it.
    pub fn is_same_report(&self, other: &Splat) -> bool {
        self.fingerprint() == other.fingerprint() && source(&self.line) == source(&other.line)
    }
}

/// The place in the kernel's source that a report's own line names: `kernel/x.c:1` of `WARNING: kernel/x.c:1 at f+0x1/0x2`
/// and of `kernel BUG at kernel/x.c:1!`.
fn source(line: &str) -> Option<&str> {
    let words = line.split(' ').map(|word| word.trim_end_matches(['!', ',']));
    let mut places = words.filter(|word| {
        let (file, number) = word.rsplit_once(':').unwrap_or_default();
        let is_source = file.ends_with(".c") || file.ends_with(".h") || file.ends_with(".S");
        is_source && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    places.next()
}

/// A line with `N` for each word that is or holds a number.
fn without_numbers(line: &str) -> String {
    let word = |word: &str| {
        let is_number = word.bytes().any(|byte| byte.is_ascii_digit());
        if is_number { "N".to_owned() } else { word.to_owned() }
    };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
