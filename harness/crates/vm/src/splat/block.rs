//! The lines of one report: which belong to it, and the function that they name.

use std::sync::LazyLock;

use regex::Regex;

use super::phrase::Found;
use super::{Splat, SplatKind};

/// Lines kept of one report. The longest that a guest of ours has printed has 90.
const LINES_MAX: usize = 250;
/// Bytes kept of one line.
const LINE_MAX: usize = 1024;

/// What the last line of a block begins with (`print_oops_end_marker`, `vpanic` in kernel/panic.c).
const END: &str = "---[ end ";
/// The sanitizers put a rule before and after their reports.
const RULE: &str = "==================================";

/// A function in a report's own line: the last `f+0x1/0x2` of a `WARNING:` line, the one that follows `in` in KASAN's.
static IN_LINE: LazyLock<Regex> = LazyLock::new(|| valid(r"([A-Za-z_][\w.]*)\+0x[0-9a-f]+/0x[0-9a-f]+"));
/// `BUG: KCSAN: data-race in f / g`, whose functions have no offset.
static DATA_RACE: LazyLock<Regex> = LazyLock::new(|| valid(r"data-race in ([A-Za-z_][\w.]*)"));
/// Where the processor was: of x86 in the kernel's code segment, and of powerpc with a symbol.
static POSITION: LazyLock<Regex> =
    LazyLock::new(|| valid(r"^(?:RIP: 0010:|NIP \[[0-9a-f]+\] )([A-Za-z_][\w.]*)\+0x[0-9a-f]+/0x[0-9a-f]+"));
/// The same where it was in no function.
static NOWHERE: LazyLock<Regex> = LazyLock::new(|| valid(r"^(?:RIP: 0010:|NIP \[[0-9a-f]+\] )0x[0-9a-f]+$"));
/// A line of a call trace, of x86 and of powerpc. What is marked with `?` or `(unreliable)` was found on the stack by
/// chance.
static FRAME: LazyLock<Regex> = LazyLock::new(|| {
    valid(
        r"^ *(?:\[[0-9a-f]{16}\] \[[0-9a-f]{16}\] )?([A-Za-z_][\w.]*)\+0x[0-9a-f]+/0x[0-9a-f]+(?: \[\w+\])?$",
    )
});
/// Functions that print a report or lead to the printing: they are on top of its call trace.
static REPORTING: LazyLock<Regex> = LazyLock::new(|| {
    valid(concat!(
        r"^(dump_stack|dump_stack_lvl|show_stack|v?panic|nmi_panic|__warn|warn_slowpath_fmt|report_bug|",
        r"print_\w+|kasan_\w+|__asan_\w+|ubsan_\w+|__ubsan_\w+|__might_\w+|check_preemption_disabled|",
        r"debug_smp_processor_id|warn_alloc\w*|__schedule_bug|__report_bad_irq|note_interrupt|lockdep_\w+|",
        r"debug_check_no_\w+|check_noncircular|__lock_acquire|lock_acquire|mark_lock\w*|bad_page|dump_header|",
        r"oom_kill_process|out_of_memory|free_page_is_bad|__free_pages_prepare|schedule|__schedule|",
        r"_*(alloc|kmalloc|folio_alloc)_\w+)(\.\w+)*$",
    ))
});
/// The panic that `oops=panic` makes of an oops (the architectures' `oops_end`).
static PANIC_ON_OOPS: LazyLock<Regex> =
    LazyLock::new(|| valid(r"^Kernel panic - not syncing: (Fatal|Unrecoverable) exception"));
/// The panic that `panic_on_warn` makes of a report (kernel/panic.c, `check_panic_on_warn`).
static PANIC_ON_WARN: LazyLock<Regex> =
    LazyLock::new(|| valid(r"^Kernel panic - not syncing: .*panic_on_warn set"));

fn valid(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is valid")
}

/// A report whose lines may go on to come.
#[derive(Debug)]
pub(super) struct Block {
    splat: Splat,
    /// Only the line that announces it has come.
    announced: bool,
    /// The function is known from the report's own line or from the processor's position.
    settled: bool,
    /// Its end marker has come. What follows may still be the panic that it leads to.
    ended: bool,
}

impl Block {
    /// The report that begins with a line.
    pub(super) fn new(found: Found, line: String) -> Block {
        let mut block = Block {
            splat: Splat {
                kind: found.kind,
                line: String::new(),
                function: None,
                fatal: found.kind == SplatKind::Panic,
                block: Vec::new(),
            },
            announced: found.announces,
            settled: false,
            ended: false,
        };
        block.name(found.kind, &line);
        block.keep(line);
        block
    }

    /// The report, as far as it has come.
    pub(super) fn splat(&self) -> &Splat {
        &self.splat
    }

    /// The report, of which no more lines come.
    pub(super) fn into_splat(self) -> Splat {
        self.splat
    }

    /// Take a line that has a phrase. `false` when it begins another report.
    pub(super) fn take_phrase(&mut self, found: Found, line: &str) -> bool {
        if line.starts_with(END) {
            self.ended = true;
        } else if self.announced && !found.announces && !self.ended && found.kind != SplatKind::Panic {
            self.announced = false;
            self.name(found.kind, line);
        } else if found.kind == SplatKind::Panic && self.leads_to(line) {
            self.splat.fatal = true;
        } else if self.ended || !self.continues_with(found.kind) {
            return false;
        }
        self.keep(line.to_owned());
        true
    }

    /// Take a line without a phrase.
    pub(super) fn take(&mut self, line: String) {
        if self.ended {
            return;
        }
        if !self.settled {
            self.look_for_function(&line);
        }
        self.ended = line.starts_with(END) || line.starts_with(RULE);
        self.keep(line);
    }

    /// Whether a panic is what the kernel makes of this report.
    fn leads_to(&self, panic: &str) -> bool {
        let consequence = match self.splat.kind {
            SplatKind::Oops | SplatKind::Bug => &PANIC_ON_OOPS,
            _ => &PANIC_ON_WARN,
        };
        !self.splat.fatal && consequence.is_match(panic)
    }

    /// Whether a line with the phrase of another kind goes on with this report: an oops has a line for its cause and
    /// one that counts the oopses.
    fn continues_with(&self, kind: SplatKind) -> bool {
        let has_counted = || self.splat.block.iter().any(|line| line.contains("Oops"));
        match self.splat.kind {
            SplatKind::Oops | SplatKind::Bug => {
                (kind == SplatKind::Oops && !has_counted()) || (kind == SplatKind::Kasan && has_counted())
            }
            _ => false,
        }
    }

    /// The report's own line has come.
    fn name(&mut self, kind: SplatKind, line: &str) {
        self.splat.kind = kind;
        cut(line).clone_into(&mut self.splat.line);
        let named = IN_LINE.captures_iter(line).last().or_else(|| DATA_RACE.captures(line));
        self.splat.function = named.map(|found| found[1].to_owned());
        self.settled = self.splat.function.is_some();
    }

    /// Where the processor was, or else the first function of the call trace. An oops that jumped to no function has
    /// none: its call trace begins with the caller.
    fn look_for_function(&mut self, line: &str) {
        let is_reporting = |found: &regex::Captures<'_>| REPORTING.is_match(&found[1]);
        let found =
            POSITION.captures(line).or_else(|| FRAME.captures(line).filter(|found| !is_reporting(found)));
        if let Some(found) = found {
            self.splat.function = Some(found[1].to_owned());
            self.settled = true;
        } else if NOWHERE.is_match(line) {
            self.settled = true;
        }
    }

    fn keep(&mut self, line: String) {
        if self.splat.block.len() < LINES_MAX {
            let end = cut(&line).len();
            let mut line = line;
            line.truncate(end);
            self.splat.block.push(line);
        }
    }
}

fn cut(line: &str) -> &str {
    let end = (0..=LINE_MAX.min(line.len())).rev().find(|at| line.is_char_boundary(*at));
    &line[..end.unwrap_or_default()]
}
