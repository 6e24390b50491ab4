//! Letting the guest run on while the writer waits.

use std::fmt::Display;
use std::time::{Duration, Instant};

use super::error::WriteError;

/// How often memory is looked at.
const INTERVAL: Duration = Duration::from_micros(500);

/// The command that records, and the guest that it runs in.
pub trait RecordingControl {
    /// Why there is nothing to wait for any more.
    type Error: Display;

    /// Let the guest run for `time`; whether the command that records still runs then.
    ///
    /// # Errors
    /// When the guest has stopped.
    fn wait(&mut self, time: Duration) -> Result<bool, Self::Error>;

    /// Whether the command has printed something.
    fn has_printed(&self) -> bool;

    /// Wait until each interrupt handler that has begun in the guest has ended; the guest's timebase
    /// then, or `None` when the command that records has ended.
    ///
    /// # Errors
    /// When the guest has stopped.
    fn quiesce(&mut self) -> Result<Option<u64>, Self::Error>;
}

/// Wait until the guest's interrupt handlers have ended; its timebase then.
pub(super) fn quiesce<P: RecordingControl>(
    control: &mut P,
    before: &str,
) -> Result<u64, WriteError<P::Error>> {
    let timebase = control.quiesce().map_err(WriteError::Guest)?;
    timebase.ok_or_else(|| WriteError::Ended(before.to_owned()))
}

/// Look until something is there.
pub(super) fn until<T, P: RecordingControl>(
    control: &mut P,
    timeout: Duration,
    what: impl Fn() -> String,
    mut look: impl FnMut(&P) -> Result<Option<T>, WriteError<P::Error>>,
) -> Result<T, WriteError<P::Error>> {
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(found) = look(control)? {
            return Ok(found);
        }
        if Instant::now() > deadline {
            return Err(WriteError::TimedOut { what: what(), timeout });
        }
        if !control.wait(INTERVAL).map_err(WriteError::Guest)? {
            return Err(WriteError::Ended(what()));
        }
    }
}
