//! The phrases with which the kernel's reports begin.
//!
//! They are those of lib/bug.c, kernel/panic.c, mm/, the architectures' fault handlers, the sanitizers, lockdep and the
//! stall detectors of Linux 7.2. A line without one of them is not a splat, whatever its level.

use std::sync::LazyLock;

use regex::bytes::{Regex, RegexSet};

use super::SplatKind;

/// A phrase in a line of the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// What kind of report the line begins, or goes on with.
    pub(super) kind: SplatKind,
    /// Where the phrase begins in the line.
    pub(super) at: usize,
    /// The line only announces a report, whose own line follows: `[ cut here ]`.
    pub(super) announces: bool,
}

/// The first pattern in this list that matches decides: narrow ones come before wide ones.
const PHRASES: [(&str, SplatKind); 37] = [
    (r"Kernel panic - not syncing", SplatKind::Panic),
    (r"\bBUG: KASAN: ", SplatKind::Kasan),
    (r"\bBUG: KCSAN: ", SplatKind::Kcsan),
    (r"\bBUG: KFENCE: ", SplatKind::Kfence),
    (r"\bBUG: KMSAN: ", SplatKind::Kmsan),
    (r"\bUBSAN: ", SplatKind::Ubsan),
    // What KASAN knows of the address of an x86 general protection fault is printed in or after the oops's own line.
    (r"\bOops\b", SplatKind::Oops),
    (r"\bKASAN: ", SplatKind::Kasan),
    (r"\bKCSAN: ", SplatKind::Kcsan),
    (r"\bKFENCE: ", SplatKind::Kfence),
    (r"\bKMSAN: ", SplatKind::Kmsan),
    // arch/x86/mm/fault.c, arch/powerpc/mm/fault.c.
    (r"\bBUG: (kernel|Kernel) NULL pointer dereference", SplatKind::Oops),
    (r"\bBUG: (unable|Unable) to handle ", SplatKind::Oops),
    (r"\bUnable to handle kernel ", SplatKind::Oops),
    (r"\bInternal error: ", SplatKind::Oops),
    // A process's own, with its name and id.
    (r"\btraps: .* general protection fault", SplatKind::Segfault),
    (r"\bgeneral protection fault", SplatKind::Oops),
    (r"\bkernel BUG at ", SplatKind::Bug),
    (r"\bwatchdog: BUG: ", SplatKind::Lockup),
    (r"\bBUG: workqueue lockup", SplatKind::Lockup),
    (r"\bBUG: soft lockup", SplatKind::Lockup),
    (r"\bBUG: sleeping function called from invalid context", SplatKind::AtomicSleep),
    (r"\bBUG: scheduling while atomic", SplatKind::AtomicSleep),
    (r"\bBUG: ", SplatKind::Bug),
    // kernel/locking/lockdep.c: its reports have no file and no function in this line.
    (r"\bWARNING: (possible |inconsistent lock state|suspicious RCU usage)", SplatKind::Lockdep),
    (r"\bWARNING: (bad unlock balance|held lock freed|lock held when returning)", SplatKind::Lockdep),
    (r"\bWARNING: (Nested lock was not taken|[A-Z]+-safe -> )", SplatKind::Lockdep),
    (r"\bWARNING: .* still has locks held", SplatKind::Lockdep),
    (r"\bWARNING: ", SplatKind::Warning),
    (r"\bINFO: task .* blocked for more than", SplatKind::HungTask),
    (r"\bINFO: rcu_.* (detected|self-detected) ", SplatKind::RcuStall),
    (r"\brcu: INFO: ", SplatKind::RcuStall),
    (r"\bOut of memory: ", SplatKind::OutOfMemory),
    (r"\bpage allocation failure: ", SplatKind::AllocationFailure),
    (r"\birq \d+: nobody cared", SplatKind::UnhandledIrq),
    (r"\bunregister_netdevice: waiting for ", SplatKind::NetdeviceLeak),
    (r"\bsegfault (\(\d+\) )?at ", SplatKind::Segfault),
];

/// The line before the report of a `WARN()`, a `BUG()` or of UBSAN.
const CUT_HERE: &str = r"------------\[ cut here \]------------";

static SET: LazyLock<RegexSet> = LazyLock::new(|| {
    RegexSet::new(PHRASES.iter().map(|(pattern, _)| *pattern).chain([CUT_HERE]))
        .expect("the patterns are valid")
});
static EACH: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let patterns = PHRASES.iter().map(|(pattern, _)| *pattern).chain([CUT_HERE]);
    patterns.map(|pattern| Regex::new(pattern).expect("the pattern is valid")).collect()
});

/// The phrase in a line of the console.
pub(super) fn find(line: &[u8]) -> Option<Found> {
    let index = SET.matches(line).iter().next()?;
    let at = EACH[index].find(line).expect("the set has found it").start();
    match PHRASES.get(index) {
        Some((_, kind)) => Some(Found { kind: *kind, at, announces: false }),
        None => Some(Found { kind: SplatKind::Warning, at, announces: true }),
    }
}
