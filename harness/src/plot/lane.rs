//! What each CPU did when: the log's entries as stretches of time.
//!
//! An entry says when its virtual processor was dispatched and how long the three parts of the wait
//! before took. So the processor was preempted from that much earlier on, and ran from the entry
//! before until then. Where the waits say more than there is room for since the entry before, they
//! are cut off there, and the entry says so.

use std::collections::BTreeMap;

use formats::dispatch_log::DispatchSample;

/// Nanoseconds since boot. They are signed and wide, as a wait may have begun before the boot.
pub(super) type Ns = i128;

/// A part of the wait, in the order in which they pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    WaitingToReady,
    ReadyToEnqueue,
    EnqueueToDispatch,
}

impl Part {
    pub(super) const ALL: [Part; 3] = [Part::WaitingToReady, Part::ReadyToEnqueue, Part::EnqueueToDispatch];

    pub(super) fn name(self) -> &'static str {
        match self {
            Part::WaitingToReady => "waiting to ready",
            Part::ReadyToEnqueue => "ready to enqueue",
            Part::EnqueueToDispatch => "enqueue to dispatch",
        }
    }
}

/// An entry of the log on its lane.
#[derive(Debug)]
pub(super) struct Entry<'r> {
    pub(super) record: &'r DispatchSample,
    /// When it was dispatched.
    pub(super) at: Ns,
    /// The waits as logged, in order of time, in nanoseconds.
    pub(super) waits: [Ns; 3],
    /// The entry before on this CPU.
    pub(super) previous: Option<Ns>,
}

impl Entry<'_> {
    /// When the preemption began, as far as there is room for it.
    pub(super) fn preempted(&self) -> Ns {
        let begun = self.at - self.waits.iter().sum::<Ns>();
        self.previous.map_or(begun, |previous| previous.max(begun))
    }

    /// By how much the waits say more than there is room for.
    pub(super) fn excess(&self) -> Ns {
        self.preempted() - (self.at - self.waits.iter().sum::<Ns>())
    }

    /// The parts of the wait, as far as there is room for them: from, to.
    pub(super) fn parts(&self) -> [(Part, Ns, Ns); 3] {
        let begun = self.preempted();
        let mut end = self.at;
        let mut parts = Part::ALL.map(|part| (part, end, end));
        for (part, wait) in parts.iter_mut().zip(self.waits).rev() {
            let start = (end - wait).max(begun);
            (part.1, part.2) = (start, end);
            end = start;
        }
        parts
    }
}

/// The entries of a CPU, in order of time.
#[derive(Debug)]
pub(super) struct Lane<'r> {
    pub(super) cpu: Option<u32>,
    pub(super) entries: Vec<Entry<'r>>,
}

impl Lane<'_> {
    pub(super) fn name(&self) -> String {
        self.cpu.map_or_else(|| "CPU ?".to_owned(), |cpu| format!("CPU {cpu}"))
    }

    /// The mean and the greatest of a part of the wait, as logged.
    pub(super) fn mean_and_max(&self, part: Part) -> (Ns, Ns) {
        let waits = self.entries.iter().map(|entry| entry.waits[part as usize]);
        let count = Ns::try_from(self.entries.len()).unwrap_or(Ns::MAX).max(1);
        (waits.clone().sum::<Ns>() / count, waits.max().unwrap_or(0))
    }
}

/// One lane for each CPU that has entries, by its number; last those without one.
pub(super) fn lanes<'r>(records: &'r [DispatchSample], frequency: u64) -> Vec<Lane<'r>> {
    let mut by_cpu: BTreeMap<(bool, Option<u32>), Vec<&DispatchSample>> = BTreeMap::new();
    for record in records {
        by_cpu.entry((record.cpu.is_none(), record.cpu)).or_default().push(record);
    }
    let lane = |((_, cpu), mut records): ((bool, Option<u32>), Vec<&'r DispatchSample>)| {
        records.sort_by_key(|record| record.time_ns);
        let mut previous = None;
        let entry = |record: &'r DispatchSample| {
            let waits = record.waits().map(|ticks| nanoseconds(ticks, frequency));
            let at = Ns::from(record.time_ns);
            Entry { record, at, waits, previous: previous.replace(at) }
        };
        Lane { cpu, entries: records.into_iter().map(entry).collect() }
    };
    by_cpu.into_iter().map(lane).collect()
}

fn nanoseconds(ticks: u32, frequency: u64) -> Ns {
    Ns::from(ticks) * 1_000_000_000 / Ns::from(frequency)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::testing::record;

    #[test]
    fn waits_end_at_the_dispatch() {
        let records = [record(0, 1000, [100, 20, 3])];
        let lanes = lanes(&records, 500_000_000);
        let entry = &lanes[0].entries[0];
        let [ready, enqueue, dispatch] = entry.parts();
        assert_eq!(ready, (Part::WaitingToReady, 754, 954));
        assert_eq!(enqueue, (Part::ReadyToEnqueue, 954, 994));
        assert_eq!(dispatch, (Part::EnqueueToDispatch, 994, 1000));
        assert_eq!((entry.preempted(), entry.excess()), (754, 0));
    }

    #[test]
    fn waits_are_cut_off_at_the_entry_before() {
        let records =
            [record(0, 1000, [5000, 0, 0]), record(1, 1010, [5, 0, 0]), record(0, 1050, [100, 60, 3])];
        let lanes = lanes(&records, 1_000_000_000);
        let first = &lanes[0].entries[0];
        assert_eq!((first.preempted(), first.excess()), (-4000, 0));
        let entry = &lanes[0].entries[1];
        assert_eq!((entry.preempted(), entry.excess()), (1000, 113));
        let ends = entry.parts().map(|(_, from, to)| (from, to));
        assert_eq!(ends, [(1000, 1000), (1000, 1047), (1047, 1050)]);
        assert_eq!(lanes[0].mean_and_max(Part::WaitingToReady), (2550, 5000));
    }

    #[test]
    fn lanes_are_in_order_and_so_are_their_entries() {
        let nowhere = DispatchSample { cpu: None, ..record(0, 3, [0; 3]) };
        let records = [nowhere, record(10, 9, [0; 3]), record(10, 8, [0; 3]), record(2, 7, [0; 3])];
        let lanes = lanes(&records, 1);
        let names: Vec<_> = lanes.iter().map(Lane::name).collect();
        assert_eq!(names, ["CPU 2", "CPU 10", "CPU ?"]);
        let times: Vec<_> = lanes[1].entries.iter().map(|entry| (entry.at, entry.previous)).collect();
        assert_eq!(times, [(8, None), (9, Some(8))]);
    }
}
