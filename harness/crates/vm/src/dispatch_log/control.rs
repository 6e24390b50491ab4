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

    /// How long the guest has been ready to run in all while no CPU of the host was free for it.
    fn waited_for_cpu(&self) -> Duration {
        Duration::ZERO
    }
}

/// Wait until the guest's interrupt handlers have ended; its timebase then.
pub(super) fn quiesce<P: RecordingControl>(
    control: &mut P,
    before: &str,
) -> Result<u64, WriteError<P::Error>> {
    let timebase = control.quiesce().map_err(WriteError::Guest)?;
    timebase.ok_or_else(|| WriteError::Ended(before.to_owned()))
}

/// Look until something is there. The timeout is longer by what the guest waits for a CPU of the host meanwhile, ten
/// times as long at most.
pub(super) fn until<T, P: RecordingControl>(
    control: &mut P,
    timeout: Duration,
    what: impl Fn() -> String,
    mut look: impl FnMut(&P) -> Result<Option<T>, WriteError<P::Error>>,
) -> Result<T, WriteError<P::Error>> {
    let (begin, waited) = (Instant::now(), control.waited_for_cpu());
    let is_over = |control: &P| {
        let elapsed = begin.elapsed();
        elapsed > timeout
            && elapsed > timeout + control.waited_for_cpu().saturating_sub(waited).min(timeout * 9)
    };
    loop {
        if let Some(found) = look(control)? {
            return Ok(found);
        }
        if is_over(control) {
            return Err(WriteError::TimedOut { what: what(), timeout });
        }
        if !control.wait(INTERVAL).map_err(WriteError::Guest)? {
            return Err(WriteError::Ended(what()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A guest that gets a CPU for a part of the time.
    struct Busy {
        begin: Instant,
        waits: bool,
    }

    impl RecordingControl for Busy {
        type Error = String;

        fn wait(&mut self, time: Duration) -> Result<bool, String> {
            std::thread::sleep(time);
            Ok(true)
        }

        fn has_printed(&self) -> bool {
            false
        }

        fn quiesce(&mut self) -> Result<Option<u64>, String> {
            Ok(None)
        }

        fn waited_for_cpu(&self) -> Duration {
            if self.waits { self.begin.elapsed() } else { Duration::ZERO }
        }
    }

    #[test]
    fn guest_that_waits_for_a_cpu_has_more_time_and_not_for_ever() {
        let timeout = Duration::from_millis(30);
        let looked_for = |waits: bool, is_there: Duration| {
            let begin = Instant::now();
            let look = |_: &Busy| Ok((begin.elapsed() > is_there).then_some(()));
            until(&mut Busy { begin, waits }, timeout, || "it".to_owned(), look).map_err(|_| begin.elapsed())
        };
        assert!(looked_for(false, timeout * 100).expect_err("over") >= timeout);
        assert_eq!(looked_for(true, timeout * 3), Ok(()));
        assert!(looked_for(true, timeout * 100).expect_err("over") >= timeout * 10);
    }
}
