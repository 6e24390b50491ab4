//! The guest's console: kept in a file and searched for splats while it arrives.
//!
//! Every byte is searched before it is written to the file, so a full disk hides no splat; but it makes the file
//! incomplete, which [`ConsoleError`] reports.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};

use super::event::MachineEvent;
use crate::process::tail_of_file;
use crate::{Splat, SplatScanner};

/// How many bytes of a console are returned as text.
const TAIL_MAX: u64 = 1 << 20;

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

/// Why a console is not known to be complete.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    /// The pipe from QEMU cannot be read.
    #[error("failed to read the guest's console: {0}")]
    Read(#[source] io::Error),
    /// Its file cannot be written.
    #[error("failed to write {file}: {error}")]
    Write {
        /// The console's file.
        file: Utf8PathBuf,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// The pipe from QEMU has not ended although QEMU has.
    #[error("the guest's console did not end with QEMU: its last lines may be missing")]
    Open,
}

#[derive(Debug, Default)]
struct State {
    scanner: SplatScanner,
    error: Option<ConsoleError>,
}

/// The console of a running machine, as it has arrived.
#[derive(Debug, Clone)]
pub(super) struct ConsoleLog {
    file: Utf8PathBuf,
    state: Arc<Mutex<State>>,
}

impl ConsoleLog {
    pub(super) fn new(file: Utf8PathBuf) -> ConsoleLog {
        ConsoleLog { file, state: Arc::default() }
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
        tail_of_file(&self.file, TAIL_MAX)
    }

    /// What went wrong with reading or writing it; once.
    pub(super) fn take_error(&self) -> Option<ConsoleError> {
        self.state().error.take()
    }

    /// Read `from` to its end; sends [`MachineEvent::Splat`] for new splats, and [`MachineEvent::ConsoleClosed`].
    pub(super) fn watch(&self, mut from: impl Read, mut log: impl Write, events: &SyncSender<MachineEvent>) {
        let mut buffer = [0; 4096];
        let mut is_full = false;
        loop {
            let bytes = match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => &buffer[..n],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.fail(ConsoleError::Read(error));
                    break;
                }
            };
            self.search(|scanner| scanner.feed(bytes), events);
            if !is_full {
                if let Err(error) = log.write_all(bytes) {
                    is_full = true;
                    self.fail(ConsoleError::Write { file: self.file.clone(), error });
                }
            }
        }
        self.search(SplatScanner::finish, events);
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
        if found {
            // Where no event fits, one is on its way to the receiver, which then looks at the splats.
            let _ = events.try_send(MachineEvent::Splat);
        }
    }

    fn fail(&self, error: ConsoleError) {
        self.state().error.get_or_insert(error);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The text of a log that may not exist, such as QEMU's standard error.
pub(super) fn text_of(file: &Utf8Path) -> io::Result<String> {
    Ok(tail_of_file(file, TAIL_MAX)?.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    /// A device that is full after some bytes.
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let n = bytes.len().min(self.0);
            self.0 -= n;
            Ok(n)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Text, then an error.
    struct Broken<'a>(&'a [u8]);

    impl Read for Broken<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() { Err(io::Error::other("gone")) } else { self.0.read(buffer) }
        }
    }

    const TEXT: &[u8] = b"all is well\nWARNING: kernel/x.c:1 at f+0x1/0x2\n";

    #[test]
    fn full_disk_hides_no_splat_and_is_an_error() {
        let (events, received) = sync_channel(8);
        let console = ConsoleLog::new("d/console.log".into());
        console.watch(TEXT, Full(4), &events);
        assert_eq!(console.splats().len(), 1);
        let error = console.take_error().expect("full").to_string();
        assert_eq!(error, "failed to write d/console.log: no storage space");
        assert!(matches!(received.recv(), Ok(MachineEvent::Splat)));
        assert!(matches!(received.recv(), Ok(MachineEvent::ConsoleClosed)));
    }

    #[test]
    fn unreadable_console_is_an_error() {
        let (events, _received) = sync_channel(8);
        let console = ConsoleLog::new("console.log".into());
        console.watch(Broken(TEXT), io::sink(), &events);
        assert_eq!(console.splats().len(), 1);
        let error = console.take_error().expect("broken").to_string();
        assert_eq!(error, "failed to read the guest's console: gone");
    }

    #[test]
    fn splats_are_found_while_no_event_is_taken() {
        let (events, received) = sync_channel(1);
        let console = ConsoleLog::new("console.log".into());
        let watcher = {
            let console = console.clone();
            std::thread::spawn(move || console.watch(&TEXT.repeat(100)[..], io::sink(), &events))
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
    fn tail_of_a_large_console_is_its_end() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = Utf8Path::from_path(dir.path()).expect("UTF-8").join("console.log");
        std::fs::write(&path, format!("{}the end\n", "x".repeat(3 << 20))).expect("written");
        let tail = ConsoleLog::new(path).tail().expect("readable");
        assert!(tail.len() == 1 << 20 && tail.ends_with("the end\n"));
        assert!(ConsoleLog::new(Utf8PathBuf::from("/nowhere/console.log")).tail().is_err());
    }
}
