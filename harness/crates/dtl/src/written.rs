//! What has been written into the logs of a guest.

use std::collections::BTreeMap;

use super::clock::Clock;
use super::entry::LogEntry;

/// What was written during one recording, and what the guest has read of it.
#[derive(Debug, Clone)]
pub struct Written {
    /// The guest's clock.
    pub clock: Clock,
    /// The entries that the guest must have read, by processor, in order.
    pub read: BTreeMap<u32, Vec<LogEntry>>,
    /// How many were lost because the log was full, by processor.
    pub lost: BTreeMap<u32, u64>,
    /// How many were not written because the guest did not ask for their class.
    pub masked: u64,
}
