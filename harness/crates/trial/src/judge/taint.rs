//! The taint of a kernel that something went wrong in, beside the splats that account for it.

use std::fmt;

use vm::SplatKind;

/// A cause of taint that a healthy kernel never has (Documentation/admin-guide/tainted-kernels.rst, Linux 7.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taint {
    /// Its bit in /proc/sys/kernel/tainted, from 0.
    pub bit: u32,
    /// Its letter in the kernel's reports.
    pub letter: char,
    /// What it means.
    pub meaning: &'static str,
}

/// Each with the kinds of splats that set it (`add_taint` in arch/*/kernel, kernel/panic.c:1115, kernel/sched/core.c:6089,
/// kernel/watchdog.c:902, mm/).
const TAINTS: [(Taint, &[SplatKind]); 5] = [
    (Taint { bit: 4, letter: 'M', meaning: "a machine check" }, &[]),
    (
        Taint { bit: 5, letter: 'B', meaning: "a bad page or a corrupted object" },
        &[SplatKind::Bug, SplatKind::Slab, SplatKind::Kasan, SplatKind::Kmsan, SplatKind::Kfence],
    ),
    (Taint { bit: 7, letter: 'D', meaning: "an oops or a BUG" }, &[SplatKind::Oops, SplatKind::Bug]),
    (
        Taint { bit: 9, letter: 'W', meaning: "a warning" },
        &[SplatKind::Warning, SplatKind::AtomicSleep, SplatKind::Slab],
    ),
    (Taint { bit: 14, letter: 'L', meaning: "a soft lockup" }, &[SplatKind::Lockup]),
];

impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.letter, self.meaning)
    }
}

/// The causes of a kernel's taint for which there is no splat of these kinds.
pub(super) fn unexplained(tainted: u64, splats: &[SplatKind]) -> Vec<Taint> {
    let is_unexplained = |(taint, kinds): &&(Taint, &[SplatKind])| {
        tainted & 1 << taint.bit != 0 && !kinds.iter().any(|kind| splats.contains(kind))
    };
    TAINTS.iter().filter(is_unexplained).map(|(taint, _)| *taint).collect()
}

/// The words for causes of taint.
pub(super) fn words(taints: &[Taint]) -> String {
    taints.iter().map(Taint::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taint_needs_a_splat_that_sets_it() {
        let letters = |tainted, splats: &[SplatKind]| {
            unexplained(tainted, splats).iter().map(|taint| taint.letter).collect::<String>()
        };
        assert_eq!(letters(0, &[]), "");
        // P, F, S, R, U, A, C, I, O, E, K, X, T, N and J say nothing of what the kernel did.
        assert_eq!(letters(!(1 << 4 | 1 << 5 | 1 << 7 | 1 << 9 | 1 << 14), &[]), "");
        assert_eq!(letters(u64::MAX, &[]), "MBDWL");
        assert_eq!(letters(1 << 9 | 1 << 12, &[SplatKind::Warning]), "");
        assert_eq!(letters(1 << 9, &[SplatKind::Lockdep]), "W");
        assert_eq!(letters(1 << 9 | 1 << 7, &[SplatKind::Warning]), "D");
        assert_eq!(words(&unexplained(1 << 9 | 1 << 14, &[])), "W (a warning), L (a soft lockup)");
    }
}
