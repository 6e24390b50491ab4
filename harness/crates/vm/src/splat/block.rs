//! The lines of one report: which belong to it, and the functions that they name.
//!
//! A line that belongs to no open report is a report of its own, so what this module takes into a report must not be
//! one: it takes lines by their form, and text only where a report of that kind has text.

use std::sync::LazyLock;

use regex::Regex;

use super::form::{self, Form};
use super::line::Line;
use super::phrase::Found;
use super::{FRAMES_MAX, Splat, SplatKind};

/// Lines kept of one report. The longest that a guest of ours has printed has 90.
const LINES_MAX: usize = 250;
/// Bytes kept of one line.
const LINE_MAX: usize = 1024;
/// The longest time between two lines of one report, in microseconds, where text may be anything.
const GAP_MAX: u64 = 1_000_000;

/// A function in a report's own line: the last `f+0x1/0x2` of a `WARNING:` line, the one that follows `in` in KASAN's.
static IN_LINE: LazyLock<Regex> = LazyLock::new(|| valid(r"([.A-Za-z_][\w.]*)\+0x[0-9a-f]+/0x[0-9a-f]+"));
/// `BUG: KCSAN: data-race in f / g`, whose functions have no offset.
static DATA_RACE: LazyLock<Regex> = LazyLock::new(|| valid(r"data-race in ([.A-Za-z_][\w.]*)"));
/// Where the processor was: of x86 in the kernel's code segment, and of powerpc with a symbol.
static POSITION: LazyLock<Regex> =
    LazyLock::new(|| valid(r"^(?:RIP: 0010:|NIP \[[0-9a-f]+\] )([.A-Za-z_][\w.]*)\+0x[0-9a-f]+/0x[0-9a-f]+"));
/// The same where it was in no function.
static NOWHERE: LazyLock<Regex> = LazyLock::new(|| valid(r"^(?:RIP: 0010:|NIP \[[0-9a-f]+\] )0x[0-9a-f]+$"));
/// The panic that `oops=panic` makes of an oops (the architectures' `oops_end`).
static PANIC_ON_OOPS: LazyLock<Regex> =
    LazyLock::new(|| valid(r"^Kernel panic - not syncing: (Fatal|Unrecoverable) exception"));
/// The panic that `panic_on_warn` makes of a report (kernel/panic.c, `check_panic_on_warn`).
static PANIC_ON_WARN: LazyLock<Regex> =
    LazyLock::new(|| valid(r"^Kernel panic - not syncing: .*panic_on_warn set"));

fn valid(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is valid")
}

/// How far a report has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Only the line that announces it has come: `[ cut here ]` or a rule.
    Announced,
    /// Its own line and its text.
    Text,
    /// Registers and call traces.
    Trace,
    /// Its end marker has come. What follows may still be the panic that it leads to.
    Ended,
}

/// A report whose lines may go on to come.
#[derive(Debug)]
pub(super) struct Block {
    splat: Splat,
    stage: Stage,
    /// The function is known from the report's own line or from the processor's position.
    settled: bool,
    /// Its first call trace has begun.
    traced: bool,
    /// When its last line was logged.
    time: Option<u64>,
}

impl Block {
    /// The report that begins with a line. `after` is the request whose end the console has last shown.
    pub(super) fn new(found: Found, line: &Line<'_>, after: Option<u64>) -> Block {
        let mut block = Block {
            splat: Splat {
                kind: found.kind,
                level: line.level,
                line: String::new(),
                function: None,
                frames: Vec::new(),
                fatal: found.kind == SplatKind::Panic,
                after,
                block: Vec::new(),
            },
            stage: if found.announces { Stage::Announced } else { Stage::Text },
            settled: false,
            traced: false,
            time: line.time,
        };
        block.name(found.kind, &line.text);
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
    pub(super) fn take_phrase(&mut self, found: Found, line: &Line<'_>) -> bool {
        let text: &str = &line.text;
        match form::of(text) {
            Form::End => self.stage = Stage::Ended,
            Form::Rule if self.splat.kind.has_end() && self.stage != Stage::Ended => {
                self.stage = Stage::Ended
            }
            _ if found.announces && self.is_preface(line) && form::of(text) == Form::Rule => {
                self.stage = Stage::Announced;
            }
            _ if self.stage == Stage::Announced && !found.announces && found.kind != SplatKind::Panic => {
                self.stage = Stage::Text;
                self.name(found.kind, text);
            }
            _ if found.kind == SplatKind::Panic && self.leads_to(text) => self.splat.fatal = true,
            _ if !found.announces && self.is_preface_of(found.kind, line) => self.name(found.kind, text),
            _ if !self.continues_with(found.kind, text) => return false,
            _ => {}
        }
        self.keep(line);
        true
    }

    /// Take a line without a phrase. `false` when it does not belong to the report.
    pub(super) fn take(&mut self, line: &Line<'_>) -> bool {
        let text: &str = &line.text;
        let form = form::of(text);
        let kind = self.splat.kind;
        let belongs = match (self.stage, form) {
            // A kernel that panics prints nothing else.
            _ if self.splat.fatal => true,
            (Stage::Ended, _) => form::may_follow_end(kind, text),
            (_, Form::Report { .. } | Form::End) => true,
            (Stage::Announced, _) => self.is_near(line),
            _ if self.is_same_record(line) => true,
            _ if kind.has_end() => self.is_near(line),
            (Stage::Text, _) => form::may_be_text(kind, text) && self.is_near(line),
            (Stage::Trace, _) => form::may_follow_trace(kind, text),
        };
        if !belongs {
            return false;
        }
        match form {
            Form::End => self.stage = Stage::Ended,
            Form::Report { trace: true } if self.stage == Stage::Text => self.stage = Stage::Trace,
            _ => {}
        }
        if self.stage != Stage::Ended {
            self.look_for_functions(text);
        }
        self.keep(line);
        true
    }

    /// Take a line that is not severe, for people to read: it decides nothing.
    pub(super) fn take_beside(&mut self, line: &Line<'_>) {
        if self.stage != Stage::Ended && self.is_near(line) {
            self.keep(line);
        }
    }

    /// Whether the line is of the record of the line before: they have one time.
    fn is_same_record(&self, line: &Line<'_>) -> bool {
        line.time.is_some() && line.time == self.time && line.level == self.splat.level
    }

    fn is_near(&self, line: &Line<'_>) -> bool {
        match (self.time, line.time) {
            (Some(before), Some(now)) => now.saturating_sub(before) <= GAP_MAX,
            _ => true,
        }
    }

    /// Whether the lines so far may be what the kernel prints just before a report's own line, which no phrase names:
    /// the text of a `WARN()` on x86 (`__warn_printf` after a `CUT_HERE` of a lower level, lib/bug.c:249), the cause
    /// of an oops, the first line of SLUB's.
    fn is_preface(&self, line: &Line<'_>) -> bool {
        self.splat.kind == SplatKind::Message
            && self.stage == Stage::Text
            && self.splat.frames.is_empty()
            && self.is_near(line)
    }

    fn is_preface_of(&self, kind: SplatKind, line: &Line<'_>) -> bool {
        matches!(kind, SplatKind::Warning | SplatKind::Oops | SplatKind::Bug) && self.is_preface(line)
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
    /// one that counts the oopses; SLUB warns in its own report; the killer of processes says whom it killed.
    fn continues_with(&self, kind: SplatKind, text: &str) -> bool {
        if self.stage == Stage::Ended {
            return form::may_follow_end(self.splat.kind, text);
        }
        let has_counted = || self.splat.block.iter().any(|line| line.contains("Oops"));
        match self.splat.kind {
            SplatKind::Oops | SplatKind::Bug => {
                (kind == SplatKind::Oops && !has_counted()) || (kind == SplatKind::Kasan && has_counted())
            }
            SplatKind::Slab => kind == SplatKind::Warning && text.contains(" mm/slub.c:"),
            SplatKind::OutOfMemory => {
                kind == SplatKind::OutOfMemory
                    && !self.splat.block.iter().any(|line| line.contains(": Killed "))
            }
            SplatKind::RcuStall => kind == SplatKind::RcuStall && !text.contains("detected"),
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
    fn look_for_functions(&mut self, text: &str) {
        if text == "Call Trace:" && !self.traced {
            // What came before was where a lock was taken or an object allocated.
            self.traced = true;
            self.splat.frames.clear();
        }
        let frame = form::frame(text);
        if let Some(function) = frame.filter(|_| self.splat.frames.len() < FRAMES_MAX) {
            self.splat.frames.push(function.to_owned());
        }
        if self.settled {
            return;
        }
        let position = POSITION.captures(text).and_then(|found| found.get(1)).map(|found| found.as_str());
        if let Some(function) = position.or(frame) {
            self.splat.function = Some(function.to_owned());
            self.settled = true;
        } else if NOWHERE.is_match(text) {
            self.settled = true;
        }
    }

    fn keep(&mut self, line: &Line<'_>) {
        self.time = line.time.or(self.time);
        if self.splat.block.len() < LINES_MAX {
            self.splat.block.push(cut(&line.text).to_owned());
        }
    }
}

fn cut(line: &str) -> &str {
    let end = (0..=LINE_MAX.min(line.len())).rev().find(|at| line.is_char_boundary(*at));
    &line[..end.unwrap_or_default()]
}
