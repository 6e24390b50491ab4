//! What a case asks to be written, and when.

use super::entry::UNREAD_MAX;

/// What is written during one recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPlan {
    /// What is done, in order.
    pub items: Vec<LogAction>,
    /// The recording ends without waiting until the guest has read what was written last.
    pub leaves_unread: bool,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogAction {
    /// Write entries of one processor and publish them at once.
    Write(Burst),
    /// Wait until the guest has read all that was written.
    WaitDrained,
    /// Wait until the command has printed something. perf starts its workload when all events are on;
    /// the log is known to be on before the others, as perf enables the event with the AUX area first.
    WaitOutput,
}

/// Entries that are published at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Burst {
    /// Its line in the case's file, from 1.
    pub line: usize,
    /// The processor whose log it goes to.
    pub cpu: u32,
    /// The entries, in order.
    pub entries: Vec<PlannedEntry>,
}

/// An entry as a case asks for it: times are relative to a recording that has not begun, and addresses
/// may be symbols of a kernel that is not known yet. The writer makes a
/// [`LogEntry`](super::LogEntry) of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedEntry {
    /// When the processor was dispatched.
    pub when: When,
    /// Code of the [dispatch reason](super::reason::DISPATCH); any byte, known or not.
    pub dispatch: u8,
    /// Code of the [preempt reason](super::reason::PREEMPT); any byte, known or not.
    pub preempt: u8,
    /// The hypervisor's number of the physical processor; the number of the log's CPU when `None`.
    pub processor: Option<u16>,
    /// From being enqueued to the dispatch, in timebase ticks.
    pub enqueue_to_dispatch: u32,
    /// From being ready to being enqueued, in timebase ticks.
    pub ready_to_enqueue: u32,
    /// From the preemption to being ready, in timebase ticks.
    pub waiting_to_ready: u32,
    /// The address of the page fault that the processor waited for.
    pub fault_addr: Address,
    /// The instruction at which the processor goes on.
    pub srr0: Address,
    /// The machine state with which it goes on.
    pub srr1: u64,
}

/// When an entry's dispatch was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Nanoseconds after the recording was seen to be on; negative for before it. The entry is written when
    /// that time has come.
    FromStart(i64),
    /// Nanoseconds after the guest's timebase at the time of writing; negative for before it. The writer
    /// does not wait.
    FromNow(i64),
    /// At this value of the timebase, whatever the time is.
    Timebase(u64),
}

/// An address in the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// As it is.
    Number(u64),
    /// Bytes after a symbol.
    Symbol {
        /// The symbol's name in the kernel.
        name: String,
        /// Bytes from the symbol.
        offset: u64,
    },
}

impl LogPlan {
    /// All that decides what is written, as text: whether a plan has changed shows in it. It is part of what
    /// each golden's header digests, so a renamed field makes all goldens of such cases stale.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for item in &self.items {
            match item {
                LogAction::Write(burst) => text.push_str(&format!("log {} {:?}\n", burst.cpu, burst.entries)),
                LogAction::WaitDrained => text.push_str("poll\n"),
                LogAction::WaitOutput => text.push_str("output\n"),
            }
        }
        text + if self.leaves_unread { "end unread\n" } else { "" }
    }

    /// The processors whose logs are written, each once.
    pub fn cpus(&self) -> Vec<u32> {
        let mut cpus: Vec<u32> = self.bursts().map(|burst| burst.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }

    fn bursts(&self) -> impl Iterator<Item = &Burst> {
        self.items.iter().filter_map(|item| match item {
            LogAction::Write(burst) => Some(burst),
            LogAction::WaitDrained | LogAction::WaitOutput => None,
        })
    }

    /// The first burst with which a log may hold more than the kernel reads at once while it is not
    /// alone: what is lost would then depend on when the kernel looks.
    pub fn ambiguous(&self) -> Option<&Burst> {
        self.cpus().into_iter().find_map(|cpu| {
            self.items.split(|item| *item == LogAction::WaitDrained).find_map(|between| {
                let mut unread = 0;
                between.iter().find_map(|item| {
                    let LogAction::Write(burst) = item else { return None };
                    if burst.cpu != cpu {
                        return None;
                    }
                    let is_first = unread == 0;
                    unread += burst.entries.len() as u64;
                    (unread > UNREAD_MAX && !is_first).then_some(burst)
                })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::burst;

    #[test]
    fn only_a_burst_alone_may_overflow_the_log() {
        let ambiguous = |items: Vec<LogAction>| {
            let plan = LogPlan { items, leaves_unread: false };
            plan.ambiguous().map(|burst| burst.entries.len())
        };
        assert_eq!(ambiguous(vec![burst(0, 200)]), None);
        assert_eq!(ambiguous(vec![burst(0, 42), burst(1, 84), burst(0, 42)]), None);
        assert_eq!(ambiguous(vec![burst(0, 42), burst(0, 43)]), Some(43));
        assert_eq!(ambiguous(vec![burst(0, 42), LogAction::WaitDrained, burst(0, 43)]), None);
        assert_eq!(ambiguous(vec![burst(0, 200), burst(1, 1), burst(0, 1)]), Some(1));
    }

    /// The digests in the headers of goldens are made of this text.
    #[test]
    fn text_of_a_plan_is_stable() {
        let items = vec![LogAction::WaitOutput, burst(1, 1), LogAction::WaitDrained];
        let expected = "output\nlog 1 [PlannedEntry { when: FromStart(0), dispatch: 3, preempt: 2, processor: None, \
                        enqueue_to_dispatch: 0, ready_to_enqueue: 0, waiting_to_ready: 0, fault_addr: Number(0), \
                        srr0: Symbol { name: \"f\", offset: 8 }, srr1: 0 }]\npoll\nend unread\n";
        assert_eq!(LogPlan { items, leaves_unread: true }.to_text(), expected);
    }
}
