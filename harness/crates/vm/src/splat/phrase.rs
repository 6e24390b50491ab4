//! The phrases that name the kind of a splat.
//!
//! They are those of lib/bug.c, kernel/panic.c, kernel/trace/, mm/, the architectures' fault handlers, the sanitizers,
//! lockdep and the stall detectors of Linux 7.2. They do not decide whether a line is a splat: its level does.

use std::sync::LazyLock;

use regex::RegexSet;

use super::SplatKind;
use super::form::{self, Form, RULE};

/// What a line says of the report that it begins, or goes on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// What kind of report it is.
    pub(super) kind: SplatKind,
    /// The line only announces a report, whose own line follows: `[ cut here ]`, a rule.
    pub(super) announces: bool,
}

/// The first pattern in this list that matches decides: narrow ones come before wide ones.
const PHRASES: [(&str, SplatKind); 61] = [
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
    (r"\bBUG: workqueue lockup", SplatKind::Lockup),
    (r"\bBUG: soft lockup", SplatKind::Lockup),
    // kernel/watchdog.c, arch/powerpc/kernel/watchdog.c.
    (r"(?i)\bhard lockup\b", SplatKind::Lockup),
    (r"\bwatchdog: BUG: ", SplatKind::Lockup),
    (r"\bBUG: sleeping function called from invalid context", SplatKind::AtomicSleep),
    (r"\bBUG: scheduling while atomic", SplatKind::AtomicSleep),
    // kernel/locking/lockdep.c: its reports have no file and no function in this line.
    (r"\bINFO: trying to register non-static key", SplatKind::Lockdep),
    (r"\bBUG: (MAX_LOCK|MAX_STACK_TRACE|using __this_cpu|looking up invalid subclass)", SplatKind::Lockdep),
    (r"\bWARNING: (possible |inconsistent lock state|suspicious RCU usage)", SplatKind::Lockdep),
    (r"\bWARNING: (bad unlock balance|held lock freed|lock held when returning)", SplatKind::Lockdep),
    (r"\bWARNING: (Nested lock was not taken|[A-Z]+-safe -> )", SplatKind::Lockdep),
    (r"\bWARNING: .* still has locks held", SplatKind::Lockdep),
    // `slab_bug`, mm/slub.c: the cache and the taint come between BUG and the colon.
    (r"^BUG \S+ \(.*\): ", SplatKind::Slab),
    (r"^FIX \S+: ", SplatKind::Slab),
    (r"\bBUG: ", SplatKind::Bug),
    // `pgd_ERROR` and the like, and `print_bad_pte`.
    (r": bad p[gum4]?[dt] ", SplatKind::Bug),
    (r"\bbad page state\b", SplatKind::Bug),
    (r"\b\w+ overran stack\b|stack guard page was hit|\bstack overflow\b", SplatKind::Bug),
    (r"\bWARNING: ", SplatKind::Warning),
    (r"\bINFO: task .* blocked (for more than|on a mutex|in I/O wait)", SplatKind::HungTask),
    (r"\bis blocked on a (mutex|rw-semaphore|semaphore)\b", SplatKind::HungTask),
    (r"\bINFO: rcu_.* (detected|self-detected) ", SplatKind::RcuStall),
    (r"\brcu: INFO: ", SplatKind::RcuStall),
    (r"\bOut of memory: |\binvoked oom-killer: |\bMemory cgroup out of memory: ", SplatKind::OutOfMemory),
    (
        r"\bpage allocation failure: |\ballocation failed: |\bSLUB: Unable to allocate ",
        SplatKind::AllocationFailure,
    ),
    (r"\birq \d+: nobody cared", SplatKind::UnhandledIrq),
    (r"\bunregister_netdevice: waiting for ", SplatKind::NetdeviceLeak),
    // `__print_unreferenced`, mm/kmemleak.c.
    (r"^kmemleak: unreferenced object\b", SplatKind::Leak),
    (r"\bsegfault (\(\d+\) )?at ", SplatKind::Segfault),
    // lib/list_debug.c.
    (r"\blist_(add|del)( double add:| corruption)", SplatKind::ListCorruption),
    // kernel/trace/ring_buffer.c.
    (r"(?i)\bring.?buffer\b", SplatKind::RingBuffer),
    (r"\bDelta way too big!", SplatKind::RingBuffer),
    // kernel/trace/, kernel/kprobes.c.
    (r"\[ ftrace bug \]|\bftrace(?:-|_|: |\b)", SplatKind::Tracer),
    (r"\bTRACE EVENT ERROR: ", SplatKind::Tracer),
    (r"(?i)\btrace.?event", SplatKind::Tracer),
    (r"(?i)\btracers?\b|\btracing\b", SplatKind::Tracer),
    (r"(?i)\btracefs\b", SplatKind::Tracer),
    (r"(?i)\btracepoints?\b", SplatKind::Tracer),
    (r"(?i)\bregister trigger\b|\bhist(ogram)? trigger\b|\bevent trigger\b", SplatKind::Tracer),
    (r"(?i)\bsynthetic event\b|^synth", SplatKind::Tracer),
    (r"\brethook\b", SplatKind::Tracer),
    (r"(?i)\b[kue]?ret?probes?\b|\b[kuf]probes?\b|\bfgraph\b", SplatKind::Tracer),
    (r"\bevent-?trace\b|\bperf\b.*\bevent\b.*\bfailed\b", SplatKind::Tracer),
];

/// The line before the report of a `WARN()`, a `BUG()` or of UBSAN.
const CUT_HERE: &str = "------------[ cut here ]------------";

/// What the lines of kmemleak's reports begin with, but for the first line of each.
const LEAK_DETAIL: &str = "kmemleak:  ";

static SET: LazyLock<RegexSet> = LazyLock::new(|| {
    RegexSet::new(PHRASES.iter().map(|(pattern, _)| *pattern)).expect("the patterns are valid")
});

/// What a line says of a report; `None` for a line that names none.
pub(super) fn find(line: &str) -> Option<Found> {
    if line.starts_with(CUT_HERE) {
        return Some(Found { kind: SplatKind::Warning, announces: true });
    }
    if line.starts_with(RULE) {
        return Some(Found { kind: SplatKind::Message, announces: true });
    }
    if line.starts_with(LEAK_DETAIL) || matches!(form::of(line), Form::Report { .. }) {
        // The names of functions and modules say nothing, nor do the bytes of leaked memory.
        return None;
    }
    let index = SET.matches(line).iter().next()?;
    Some(Found { kind: PHRASES[index].1, announces: false })
}
