//! An entry of the log: `struct dtl_entry` (arch/powerpc/include/asm/lppaca.h, Linux 7.2; PAPR).

/// Bytes of an entry.
pub const ENTRY_SIZE: usize = 48;
/// Entries in a log: `N_DISPATCH_LOG`, of 4096 bytes.
pub const SLOTS: u64 = 4096 / ENTRY_SIZE as u64;
/// The most entries that the kernel finds when it looks: of more, the oldest are lost.
pub const UNREAD_MAX: u64 = SLOTS - 1;

/// An entry. In memory all its fields are big-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEntry {
    /// Code of the [dispatch reason](super::reason::DISPATCH).
    pub dispatch: u8,
    /// Code of the [preempt reason](super::reason::PREEMPT).
    pub preempt: u8,
    /// The hypervisor's number of the physical processor.
    pub processor: u16,
    /// Timebase ticks from being enqueued to the dispatch.
    pub enqueue_to_dispatch: u32,
    /// Timebase ticks from being ready to being enqueued.
    pub ready_to_enqueue: u32,
    /// Timebase ticks from waiting to being ready.
    pub waiting_to_ready: u32,
    /// The dispatch, in timebase ticks.
    pub timebase: u64,
    /// The address of the page fault that the processor waited for.
    pub fault_addr: u64,
    /// Where the processor goes on.
    pub srr0: u64,
    /// Its machine state there.
    pub srr1: u64,
}

impl LogEntry {
    /// The entry as it is in the log.
    pub fn encode(&self) -> [u8; ENTRY_SIZE] {
        let mut bytes = [0; ENTRY_SIZE];
        bytes[0] = self.dispatch;
        bytes[1] = self.preempt;
        bytes[2..4].copy_from_slice(&self.processor.to_be_bytes());
        let waits = [self.enqueue_to_dispatch, self.ready_to_enqueue, self.waiting_to_ready];
        for (wait, place) in waits.iter().zip(bytes[4..16].chunks_exact_mut(4)) {
            place.copy_from_slice(&wait.to_be_bytes());
        }
        let words = [self.timebase, self.fault_addr, self.srr0, self.srr1];
        for (word, place) in words.iter().zip(bytes[16..].chunks_exact_mut(8)) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_is_big_endian_and_in_papr_order() {
        let entry = LogEntry {
            dispatch: 3,
            preempt: 2,
            processor: 0x0102,
            enqueue_to_dispatch: 0x1112_1314,
            ready_to_enqueue: 0x2122_2324,
            waiting_to_ready: 0x3132_3334,
            timebase: 0x4142_4344_4546_4748,
            fault_addr: 0x5152_5354_5556_5758,
            srr0: 0x6162_6364_6566_6768,
            srr1: 0x7172_7374_7576_7778,
        };
        let mut expected = vec![3, 2, 1, 2];
        for first in [0x11_u8, 0x21, 0x31] {
            expected.extend(first..first + 4);
        }
        for first in [0x41_u8, 0x51, 0x61, 0x71] {
            expected.extend(first..first + 8);
        }
        assert_eq!(entry.encode().to_vec(), expected);
    }
}
