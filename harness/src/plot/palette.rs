//! How each reason looks.
//!
//! A reason has a colour and a letter: with ten colours no palette is distinct for everyone, so the
//! letter stands wherever there is room. The colours are from Paul Tol's schemes for colour-blind
//! readers, `muted` for dispatches and `light` for preempts, with one more each. A reason that is in
//! both has related ones. The names are perf's (tools/perf/util/powerpc-vpadtl.c, Linux 7.2).

/// How a reason looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    name: &'static str,
    /// The short form, for where its name does not fit.
    pub(super) letter: char,
    /// Its colour.
    pub(super) fill: &'static str,
    /// A colour for text on it.
    pub(super) ink: &'static str,
}

const fn look(name: &'static str, letter: char, fill: &'static str, ink: &'static str) -> Look {
    Look { name, letter, fill, ink }
}

const DARK: &str = "#222222";
const LIGHT: &str = "#ffffff";

const DISPATCH: [Look; 10] = [
    look("external_interrupt", 'E', "#cc6677", DARK),
    look("firmware_internal_event", 'F', "#882255", LIGHT),
    look("H_PROD", 'P', "#117733", LIGHT),
    look("decrementer_interrupt", 'D', "#332288", LIGHT),
    look("system_reset", 'R', "#000000", LIGHT),
    look("conferred_cycles", 'C', "#44aa99", DARK),
    look("time_slice", 'T', "#88ccee", DARK),
    look("virtual_memory_page_fault", 'V', "#999933", DARK),
    look("expropriated_adjunct", 'A', "#aa4499", LIGHT),
    look("priv_doorbell", 'B', "#ddcc77", DARK),
];

const PREEMPT: [Look; 10] = [
    look("unused", 'U', "#dddddd", DARK),
    look("firmware_internal_event", 'F', "#ffaabb", DARK),
    look("H_CEDE", 'C', "#77aadd", DARK),
    look("H_CONFER", 'H', "#ee8866", DARK),
    look("time_slice", 'T', "#99ddff", DARK),
    look("migration_hibernation_page_fault", 'M', "#eedd88", DARK),
    look("virtual_memory_page_fault", 'V', "#aaaa00", DARK),
    look("H_CONFER_ADJUNCT", 'A', "#44bb99", DARK),
    look("hcall_adjunct", 'J', "#bbcc33", DARK),
    look("HDEC_adjunct", 'D', "#c4a5e0", DARK),
];

const UNKNOWN: Look = look("", '?', "#7f7f7f", LIGHT);

/// How a dispatch reason looks.
pub(super) fn dispatch(reason: &str) -> Look {
    find(&DISPATCH, reason)
}

/// How a preempt reason looks.
pub(super) fn preempt(reason: &str) -> Look {
    find(&PREEMPT, reason)
}

fn find(known: &[Look], reason: &str) -> Look {
    known.iter().find(|look| look.name == canonical(reason)).copied().unwrap_or(UNKNOWN)
}

/// The reason's name as perf 7.2 prints it: earlier ones had spaces.
pub(super) fn canonical(reason: &str) -> String {
    reason.trim().replace(' ', "_")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_reason_has_a_look_of_its_own() {
        for looks in [DISPATCH, PREEMPT] {
            let letters: BTreeSet<_> = looks.iter().map(|look| look.letter).collect();
            let fills: BTreeSet<_> = looks.iter().map(|look| look.fill).chain([UNKNOWN.fill]).collect();
            assert_eq!((letters.len(), fills.len()), (10, 11));
        }
    }

    #[test]
    fn names_with_blanks_are_known_and_others_are_neutral() {
        assert_eq!(dispatch("decrementer interrupt"), dispatch("decrementer_interrupt"));
        assert_eq!(dispatch("priv doorbell").letter, 'B');
        assert_eq!((dispatch("H_CEDE"), preempt("H_PROD"), preempt("")), (UNKNOWN, UNKNOWN, UNKNOWN));
    }
}
