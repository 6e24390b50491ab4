//! The forms of the lines that the kernel's reports are made of, beside those that begin one.
//!
//! They are those of `show_regs`, `dump_stack` and `print_modules` of Linux 7.2: arch/x86/kernel/dumpstack.c and
//! process_64.c, arch/powerpc/kernel/process.c and traps.c, kernel/module/main.c, lib/dump_stack.c.

use std::sync::LazyLock;

use regex::Regex;

use super::SplatKind;

/// What the last line of a block begins with (`print_oops_end_marker`, `vpanic` in kernel/panic.c).
pub(super) const END: &str = "---[ end ";
/// The sanitizers and SLUB put a rule before their reports, and the sanitizers after them.
pub(super) const RULE: &str = "==================================";

/// A line of registers, modules, a call trace or what goes with them. No such line begins a report.
static REPORT: LazyLock<Regex> = LazyLock::new(|| {
    valid(concat!(
        r"^(?:$| ?</?[A-Z#][A-Z0-9_ ]*>$|CPU: \d|Tainted: |Hardware name: |Workqueue: |Modules linked in:|",
        r"Unloaded tainted modules|Call Trace:$|Stack:|Code: |Instruction dump:|Disabling lock debugging due to |",
        r"irq event stamp: |(?:hard|soft)irqs last +(?:en|dis)abled at |",
        r"RIP: |[RE][A-Z0-9]{2}: |CR\d: |DR\d: |[CDEFGS]S: |PKRU: |PGD |",
        r"NIP|LR \[|REGS: |MSR: |CFAR: |IRQMASK: |GPR\d\d: |-{3,4} interrupt: |",
        r"LE PAGE_SIZE=|Faulting instruction address: |",
        r"(?:kmemleak:)? *(?:\[[0-9a-f]{16}\] \[[0-9a-f]{16}\] )?(?:\? )?(?:[.A-Za-z_][\w.]*\+0x[0-9a-f]+/0x[0-9a-f]+|0x[0-9a-f]+)",
        r"(?: \[\w+\])?(?: \(unreliable\))?$)",
    ))
});
/// The first line of a call trace, or the registers before it.
static TRACE: LazyLock<Regex> =
    LazyLock::new(|| valid(r"^(?:Call Trace:$|RIP: |NIP|CPU: \d|Modules linked in:)"));
/// A line of a call trace, of x86 and of powerpc. What is marked with `?` or `(unreliable)` was found on the stack by
/// chance.
static FRAME: LazyLock<Regex> = LazyLock::new(|| {
    valid(
        r"^(?:kmemleak:)? *(?:\[[0-9a-f]{16}\] \[[0-9a-f]{16}\] )?([.A-Za-z_][\w.]*)\+0x[0-9a-f]+/0x[0-9a-f]+(?: \[\w+\])?$",
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
        r"(object|slab)_err|__slab_err|slab_\w*report|",
        r"_*(alloc|kmalloc|kmem_cache_alloc|folio_alloc)_\w+|kmemleak_\w+|kmemdup\w*|kstrn?dup\w*)(\.\w+)*$",
    ))
});
/// What the memory's state is printed as, after the call trace of a failed allocation (`__show_mem`, lib/show_mem.c
/// and mm/show_mem.c; `dump_tasks`, mm/oom_kill.c; `slab_out_of_memory`, mm/slub.c).
static MEMORY: LazyLock<Regex> = LazyLock::new(|| {
    valid(concat!(
        r"^(?:Mem-Info:|Node \d|\w+ free:|lowmem_reserve|\w+: \d+\*|\d+ total pagecache pages|\d+ pages |",
        r"Free swap|Total swap|Swap cache|Tasks state|\[ *pid *\]|\[ *\d+\] |oom-kill:|Unreclaimable slab|",
        r"Out of memory|SLUB: |  cache: |  node \d|active_anon:| \w+:\d)",
    ))
});
/// What stalls and lockups print beside call traces (kernel/rcu/tree_stall.h, kernel/hung_task.c, lib/nmi_backtrace.c,
/// kernel/watchdog.c, kernel/workqueue.c).
static STALL: LazyLock<Regex> = LazyLock::new(|| {
    valid(concat!(
        r#"^(?:rcu: |\t|Sending NMI from CPU|NMI backtrace |"echo 0 > |      (?:Not t|T)ainted|task:|"#,
        r"Task dump for CPU|INFO: lockdep is turned off|Showing |\d+ locks? held by |.* #\d+: |",
        r"Future hung task|  pwq |  workqueue |pool \d)",
    ))
});
/// What is known of an interrupt that no driver handles (`__report_bad_irq`, kernel/irq/spurious.c).
static INTERRUPT: LazyLock<Regex> =
    LazyLock::new(|| valid(r"^(?:handlers:|\[<[0-9a-f]+>\]|Disabling IRQ #)"));

/// What a line is in a report, judged by its form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Registers, modules or a call trace.
    Report {
        /// A call trace or registers begin.
        trace: bool,
    },
    /// The last line of a block.
    End,
    /// A line of `=`.
    Rule,
    /// Anything else.
    Text,
}

/// The form of a line.
pub(super) fn of(text: &str) -> Form {
    if text.starts_with(END) {
        Form::End
    } else if text.starts_with(RULE) {
        Form::Rule
    } else if REPORT.is_match(text) {
        Form::Report { trace: TRACE.is_match(text) }
    } else {
        Form::Text
    }
}

/// Whether text may stand before the call trace of a report of this kind, or between its lines.
pub(super) fn may_be_text(kind: SplatKind, text: &str) -> bool {
    match kind {
        SplatKind::Leak => text.starts_with("kmemleak: "),
        _ => kind.has_text(),
    }
}

/// Whether text may follow the call trace of a report of this kind.
pub(super) fn may_follow_trace(kind: SplatKind, text: &str) -> bool {
    match kind {
        SplatKind::OutOfMemory | SplatKind::AllocationFailure => MEMORY.is_match(text),
        SplatKind::RcuStall | SplatKind::HungTask | SplatKind::Lockup => STALL.is_match(text),
        SplatKind::UnhandledIrq => INTERRUPT.is_match(text),
        _ => false,
    }
}

/// Whether text may follow the last line of a report of this kind: what SLUB has repaired, and the registers that x86
/// prints again after an oops.
pub(super) fn may_follow_end(kind: SplatKind, text: &str) -> bool {
    match kind {
        SplatKind::Oops | SplatKind::Bug => REPORT.is_match(text),
        SplatKind::Slab => text.starts_with("FIX "),
        _ => text.is_empty() || text.starts_with("Disabling lock debugging due to "),
    }
}

/// The function that a line of a call trace names; `None` for one that was found by chance or leads to the printing.
pub(super) fn frame(text: &str) -> Option<&str> {
    let function = FRAME.captures(text)?.get(1)?.as_str();
    (!REPORTING.is_match(function)).then_some(function)
}

fn valid(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is valid")
}
