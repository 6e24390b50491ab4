//! Why a hypervisor dispatched or preempted a virtual processor.

/// Names of dispatch reasons by their codes, as perf prints them
/// (tools/perf/util/powerpc-vpadtl.c, `dispatch_reasons`, Linux 7.2). Two codes share a name.
pub const DISPATCH: [&str; 11] = [
    "external_interrupt",
    "firmware_internal_event",
    "H_PROD",
    "decrementer_interrupt",
    "system_reset",
    "firmware_internal_event",
    "conferred_cycles",
    "time_slice",
    "virtual_memory_page_fault",
    "expropriated_adjunct",
    "priv_doorbell",
];

/// Names of preempt reasons by their codes, as perf prints them (`preempt_reasons`, same file).
pub const PREEMPT: [&str; 10] = [
    "unused",
    "firmware_internal_event",
    "H_CEDE",
    "H_CONFER",
    "time_slice",
    "migration_hibernation_page_fault",
    "virtual_memory_page_fault",
    "H_CONFER_ADJUNCT",
    "hcall_adjunct",
    "HDEC_adjunct",
];

/// The first code with this name.
pub fn code(names: &[&str], name: &str) -> Option<u8> {
    names.iter().position(|known| *known == name).and_then(|at| u8::try_from(at).ok())
}

/// A class of entries, as the bit of the log's enable mask that asks for it (PAPR, "Dispatch Trace
/// Log Enable Mask"; `DTL_CEDE`, `DTL_PREEMPT` and `DTL_FAULT` in arch/powerpc/perf/vpa-dtl.c).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryClass {
    /// Waits that the guest asked for.
    Cede,
    /// The hypervisor took the processor away.
    Preempt,
    /// A page fault in the partition's memory.
    Fault,
}

impl EntryClass {
    /// Its bit in the mask.
    pub fn bit(self) -> u8 {
        match self {
            EntryClass::Cede => 1,
            EntryClass::Preempt => 2,
            EntryClass::Fault => 4,
        }
    }

    /// The class of an entry with this preempt reason. A reason that names none (no
    /// reason, events of the hypervisor's own, unknown codes) counts as preempted.
    pub fn of(preempt: u8) -> EntryClass {
        match preempt {
            2 | 3 | 7 => EntryClass::Cede,
            5 | 6 => EntryClass::Fault,
            _ => EntryClass::Preempt,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_has_a_name_and_a_class() {
        assert_eq!(code(&DISPATCH, "decrementer_interrupt"), Some(3));
        assert_eq!(code(&DISPATCH, "firmware_internal_event"), Some(1));
        assert_eq!(code(&PREEMPT, "H_CEDE"), Some(2));
        assert_eq!(code(&PREEMPT, "h_cede"), None);
        assert_eq!((EntryClass::of(2), EntryClass::of(6), EntryClass::of(4), EntryClass::of(200)), {
            (EntryClass::Cede, EntryClass::Fault, EntryClass::Preempt, EntryClass::Preempt)
        });
    }
}
