//! The guest's console: kept in a file and searched for splats while it arrives.
//!
//! Every byte is searched before it is written to the file, so a full disk hides no splat.

use std::fs::File;
use std::io::{self, Read};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::event::MachineEvent;
use super::log::{LogFile, MachineLogError};
use crate::{Splat, SplatScanner};

/// How the machine's console is connected.
#[derive(Debug)]
pub enum Console {
    /// Output is kept and searched for splats; there is no input.
    Watched,
    /// Output goes to one file and input comes from another, for a person.
    Piped {
        /// Where the guest's input comes from.
        input: File,
        /// Where the guest's output goes.
        output: File,
    },
}

/// The console of a running machine, as it has arrived.
#[derive(Debug, Clone)]
pub(super) struct ConsoleLog {
    log: LogFile,
    scanner: Arc<Mutex<SplatScanner>>,
}

impl ConsoleLog {
    pub(super) fn new(log: LogFile) -> ConsoleLog {
        ConsoleLog { log, scanner: Arc::default() }
    }

    /// The splats so far.
    pub(super) fn splats(&self) -> Vec<Splat> {
        self.scanner().splats().cloned().collect()
    }

    /// The line of the first report on which the kernel panicked.
    pub(super) fn panic(&self) -> Option<String> {
        self.scanner().splats().find(|splat| splat.fatal).map(|splat| splat.line.clone())
    }

    /// The console so far; at most its last MiB.
    pub(super) fn tail(&self) -> io::Result<String> {
        self.log.tail()
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
        let _ = events.send(MachineEvent::ConsoleClosed);
    }

    fn search(&self, search: impl FnOnce(&mut SplatScanner), events: &SyncSender<MachineEvent>) {
        let found = {
            let scanner = &mut self.scanner();
            let fingerprint =
                |scanner: &SplatScanner| scanner.splats().map(|splat| 1 + u32::from(splat.fatal)).sum();
            let before: u32 = fingerprint(scanner);
            search(scanner);
            fingerprint(scanner) != before
        };
        if found {
            // Where no event fits, one is on its way to the receiver, which then looks at the splats.
            let _ = events.try_send(MachineEvent::Splat);
        }
    }

    fn scanner(&self) -> MutexGuard<'_, SplatScanner> {
        self.scanner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;
    use crate::qemu::log::MachineLogs;

    const TEXT: &[u8] = b"all is well\nWARNING: kernel/x.c:1 at f+0x1/0x2\n";

    fn unnamed() -> ConsoleLog {
        ConsoleLog::new(MachineLogs::unnamed().expect("files").console)
    }

    #[test]
    fn splats_are_found_in_what_is_not_kept() {
        let (events, received) = sync_channel(8);
        let full = File::options().read(true).write(true).open("/dev/full").expect("there");
        let console = ConsoleLog::new(LogFile::new("it", "console.log".into(), full));
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
}
