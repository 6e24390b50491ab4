//! Plans for tests.

use crate::plan::{Address, Burst, LogAction, PlannedEntry, When};

/// An entry whose wait before the dispatch is `mark` ticks.
pub fn planned(when: When, mark: u32) -> PlannedEntry {
    PlannedEntry {
        when,
        dispatch: 3,
        preempt: 2,
        processor: None,
        enqueue_to_dispatch: mark,
        ready_to_enqueue: 0,
        waiting_to_ready: 0,
        fault_addr: Address::Number(0),
        srr0: Address::Symbol { name: "f".to_owned(), offset: 8 },
        srr1: 0,
    }
}

/// `count` entries of one processor, at the start, marked 0, 1, ...
pub fn burst(cpu: u32, count: u32) -> LogAction {
    let entries = (0..count).map(|at| planned(When::FromStart(0), at)).collect();
    LogAction::Write(Burst { line: 1, cpu, entries })
}
