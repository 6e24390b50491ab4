//! The kinds of splats, by the words that case files use.

use std::fmt;

/// What kind of report a splat is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SplatKind {
    /// A panic that no other report has led to.
    Panic,
    /// The kernel accessed memory or executed an instruction that it cannot.
    Oops,
    /// `BUG()`, or another broken assumption after which the kernel kills the task.
    Bug,
    /// `WARN()`.
    Warning,
    /// Code that may sleep ran where it must not, or the scheduler was called there.
    AtomicSleep,
    /// The address sanitizer.
    Kasan,
    /// The data race detector.
    Kcsan,
    /// The sampling memory error detector.
    Kfence,
    /// The detector of uninitialised memory.
    Kmsan,
    /// The detector of undefined behaviour.
    Ubsan,
    /// The lock validator, which also checks how RCU is used.
    Lockdep,
    /// RCU waits for a CPU or a task.
    RcuStall,
    /// A task has been blocked for long.
    HungTask,
    /// A CPU or a work queue makes no progress.
    Lockup,
    /// The kernel killed a process for want of memory.
    OutOfMemory,
    /// Pages were asked for and none were free.
    AllocationFailure,
    /// An interrupt that no driver handles.
    UnhandledIrq,
    /// A network device whose last reference is not given up.
    NetdeviceLeak,
    /// kmemleak found memory that nothing points to any more.
    Leak,
    /// A process of the guest died of a memory access.
    Segfault,
    /// SLUB found an object that something has written beyond, or freed twice.
    Slab,
    /// A list whose links do not fit together.
    ListCorruption,
    /// The ring buffer of tracing.
    RingBuffer,
    /// A tracer, trace events, their triggers and files, or a probe.
    Tracer,
    /// Any other message at warning level or above.
    Message,
}

impl SplatKind {
    /// All of them, by the words that case files use.
    pub const ALL: [(&'static str, SplatKind); 25] = [
        ("panic", SplatKind::Panic),
        ("oops", SplatKind::Oops),
        ("bug", SplatKind::Bug),
        ("warning", SplatKind::Warning),
        ("atomic-sleep", SplatKind::AtomicSleep),
        ("kasan", SplatKind::Kasan),
        ("kcsan", SplatKind::Kcsan),
        ("kfence", SplatKind::Kfence),
        ("kmsan", SplatKind::Kmsan),
        ("ubsan", SplatKind::Ubsan),
        ("lockdep", SplatKind::Lockdep),
        ("rcu-stall", SplatKind::RcuStall),
        ("hung-task", SplatKind::HungTask),
        ("lockup", SplatKind::Lockup),
        ("out-of-memory", SplatKind::OutOfMemory),
        ("allocation-failure", SplatKind::AllocationFailure),
        ("unhandled-irq", SplatKind::UnhandledIrq),
        ("netdevice-leak", SplatKind::NetdeviceLeak),
        ("leak", SplatKind::Leak),
        ("segfault", SplatKind::Segfault),
        ("slab", SplatKind::Slab),
        ("list-corruption", SplatKind::ListCorruption),
        ("ring-buffer", SplatKind::RingBuffer),
        ("tracer", SplatKind::Tracer),
        ("message", SplatKind::Message),
    ];

    /// Whether its report has text between its own line and its call trace.
    pub(super) fn has_text(self) -> bool {
        !matches!(
            self,
            SplatKind::Message
                | SplatKind::RingBuffer
                | SplatKind::Tracer
                | SplatKind::ListCorruption
                | SplatKind::Segfault
                | SplatKind::NetdeviceLeak
        )
    }

    /// Whether its report has text anywhere, and a rule or an end marker as its last line.
    pub(super) fn has_end(self) -> bool {
        matches!(
            self,
            SplatKind::Kasan
                | SplatKind::Kcsan
                | SplatKind::Kfence
                | SplatKind::Kmsan
                | SplatKind::Ubsan
                | SplatKind::Slab
        )
    }

    /// The word that case files use for it.
    pub fn word(self) -> &'static str {
        SplatKind::ALL.into_iter().find(|(_, kind)| *kind == self).expect("every kind has a word").0
    }
}

impl fmt::Display for SplatKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_kinds_are_one_to_one() {
        for (at, (word, kind)) in SplatKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.word(), word);
            assert!(SplatKind::ALL[..at].iter().all(|(other, _)| *other != word), "{word} twice");
        }
    }
}
