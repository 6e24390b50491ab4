//! The dispatch trace log of pseries guests, as data.
//!
//! [`LogPlan`] says which entries are to be written and when, [`LogEntry`] is one as it stands in memory, [`Written`] is
//! what the guest was given, [`read_script`] and [`read_dump`] read what perf prints of a log, and [`violations`]
//! compares the two.
//!
//! Nothing is written here: this crate knows no guest's memory, no case file and no golden.

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
