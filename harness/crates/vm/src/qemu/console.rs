//! The guest's console: kept in a file and searched for splats while it arrives.
//!
//! Every byte is searched before it is written to the file, so a full disk hides no splat.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::event::MachineEvent;
use super::log::{LogFile, MachineLogError};
use crate::{KnownMessages, Splat, SplatScanner};

/// The console of a running machine, as it has arrived.
#[derive(Debug, Clone)]
pub(super) struct ConsoleLog {
    log: LogFile,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// More has been searched, or the console has ended.
    grew: Condvar,
}

#[derive(Debug, Default)]
struct State {
    scanner: SplatScanner,
    closed: bool,
}

impl ConsoleLog {
    pub(super) fn new(log: LogFile, known: KnownMessages) -> ConsoleLog {
        let state = State { scanner: SplatScanner::new(known), closed: false };
        ConsoleLog { log, shared: Arc::new(Shared { state: Mutex::new(state), grew: Condvar::new() }) }
    }

    /// Wait until the console shows the end of some request, 0 being the agent's greeting. `false` when it does not
    /// within `timeout`, or has ended.
    pub(super) fn wait_for_mark(&self, timeout: Duration) -> bool {
        let waits = |state: &mut State| state.scanner.mark().is_none() && !state.closed;
        let waited = self.shared.grew.wait_timeout_while(self.state(), timeout, waits);
        waited.unwrap_or_else(PoisonError::into_inner).0.scanner.mark().is_some()
    }

    /// Wait until the console shows the end of this request as the last one. `false` when it does not within `timeout`, or
    /// has ended.
    pub(super) fn wait_for(&self, request: u64, timeout: Duration) -> bool {
        let waits = |state: &mut State| state.scanner.mark() != Some(request) && !state.closed;
        let waited = self.shared.grew.wait_timeout_while(self.state(), timeout, waits);
        waited.unwrap_or_else(PoisonError::into_inner).0.scanner.mark() == Some(request)
    }

    /// The known messages that have come, by their number in the guest's list.
    pub(super) fn known_seen(&self) -> BTreeSet<usize> {
        self.state().scanner.seen().clone()
    }

    /// How many messages the kernel says that the console does not have.
    pub(super) fn lost(&self) -> u64 {
        self.state().scanner.lost()
    }

    /// The splats so far.
    pub(super) fn splats(&self) -> Vec<Splat> {
        self.state().scanner.splats().cloned().collect()
    }

    /// The line of the first report on which the kernel panicked.
    pub(super) fn panic(&self) -> Option<String> {
        self.state().scanner.splats().find(|splat| splat.fatal).map(|splat| splat.line.clone())
    }

    /// The console so far; at most its last MiB.
    pub(super) fn tail(&self) -> io::Result<String> {
        self.log.tail()
    }

    /// How many bytes have been kept.
    pub(super) fn size(&self) -> io::Result<u64> {
        self.log.size()
    }

    /// What has been kept behind the first `from` bytes.
    pub(super) fn behind(&self, from: u64) -> io::Result<Vec<u8>> {
        self.log.behind(from)
    }

    /// What went wrong with keeping it.
    pub(super) fn error(&self) -> Option<MachineLogError> {
        self.log.error()
    }

    /// It has not come to its end.
    pub(super) fn is_open(&self) -> MachineLogError {
        self.log.is_open()
    }

    /// Read `from` to its end; sends [`MachineEvent::Splat`] for new splats, and [`MachineEvent::ConsoleClosed`].
    pub(super) fn watch(&self, from: impl Read, on_flood: impl FnOnce(), events: &SyncSender<MachineEvent>) {
        self.log.keep(from, |bytes| self.search(|scanner| scanner.feed(bytes), events), on_flood);
        self.search(SplatScanner::finish, events);
        self.state().closed = true;
        self.shared.grew.notify_all();
        let _ = events.send(MachineEvent::ConsoleClosed);
    }

    fn search(&self, search: impl FnOnce(&mut SplatScanner), events: &SyncSender<MachineEvent>) {
        let found = {
            let scanner = &mut self.state().scanner;
            let fingerprint =
                |scanner: &SplatScanner| scanner.splats().map(|splat| 1 + u32::from(splat.fatal)).sum();
            let before: u32 = fingerprint(scanner);
            search(scanner);
            fingerprint(scanner) != before
        };
        self.shared.grew.notify_all();
        if found {
            // Where no event fits, one is on its way to the receiver, which then looks at the splats.
            let _ = events.try_send(MachineEvent::Splat);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::mpsc::sync_channel;

    use super::*;
    use crate::qemu::log::MachineLogs;

    const TEXT: &[u8] = b"all is well\n<4>[    1.000000] WARNING: kernel/x.c:1 at f+0x1/0x2\n";

    fn unnamed() -> ConsoleLog {
        ConsoleLog::new(MachineLogs::unnamed().expect("files").console, KnownMessages::default())
    }

    #[test]
    fn splats_are_found_in_what_is_not_kept() {
        let (events, received) = sync_channel(8);
        let full = File::options().read(true).write(true).open("/dev/full").expect("there");
        let console =
            ConsoleLog::new(LogFile::new("it", "console.log".into(), full), KnownMessages::default());
        console.watch(TEXT, || (), &events);
        assert_eq!(console.splats().len(), 1);
        assert!(matches!(console.error(), Some(MachineLogError::Write(..))));
        assert!(matches!(received.recv(), Ok(MachineEvent::Splat)));
        assert!(matches!(received.recv(), Ok(MachineEvent::ConsoleClosed)));
    }

    #[test]
    fn splats_are_found_while_no_event_is_taken() {
        let (events, received) = sync_channel(1);
        let console = unnamed();
        let watcher = {
            let console = console.clone();
            std::thread::spawn(move || console.watch(&TEXT.repeat(100)[..], || (), &events))
        };
        // The end is the one event that waits for room.
        while console.splats().len() < 100 {
            std::thread::yield_now();
        }
        let events: Vec<MachineEvent> = received.iter().collect();
        assert!(
            events.len() <= 3 && matches!(events.last(), Some(MachineEvent::ConsoleClosed)),
            "{events:?}"
        );
        watcher.join().expect("no panic");
    }

    #[test]
    fn mark_is_waited_for_until_it_comes_or_the_console_ends() {
        let (events, _received) = sync_channel(8);
        let marked = unnamed();
        assert!(!marked.wait_for_mark(Duration::from_millis(1)));
        let mark = b"<12>[    1.000000] goldtrace: end of request 0000000000000000\n";
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| marked.wait_for_mark(Duration::from_secs(60)));
            marked.watch(&mark[..], || (), &events);
            assert!(waiting.join().expect("no panic"));
        });
        let unmarked = unnamed();
        unmarked.watch(TEXT, || (), &events);
        assert!(!unmarked.wait_for_mark(Duration::from_secs(60)));
    }
}
