//! The dispatch trace log of pseries guests, as data.
//!
//! [`LogPlan`] says which entries are to be written and when, [`LogEntry`] is one as it is in memory,
//! [`Written`] is what the guest was given, and [`violations`] compares that with what perf prints of it
//! (read by [`formats::dispatch_log`]).
//!
//! The invariant: what perf must print follows from the entries alone, and from no golden. Nothing is
//! written here: this crate knows no guest's memory, no case file and no golden.

mod clock;
mod entry;
mod expect;
mod plan;
pub mod reason;
mod symbols;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod written;

pub use clock::{Clock, perf_time, shown};
pub use entry::{ENTRY_SIZE, LogEntry, SLOTS, UNREAD_MAX};
pub use expect::violations;
pub use plan::{Address, Burst, LogAction, LogPlan, PlannedEntry, When};
pub use symbols::{NoSymbol, Symbols};
pub use written::Written;
