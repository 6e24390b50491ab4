//! What QEMU and the guest print, kept in files that have an end.
//!
//! Nobody but us writes these files, and no more than [`LOG_MAX`] bytes each: a guest fills neither disk nor memory.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};

/// The most bytes that are kept of the console, and of QEMU's standard error.
pub(super) const LOG_MAX: u64 = 16 << 20;
/// How many bytes of a log are returned as text.
const TAIL_MAX: u64 = 1 << 20;

/// Where a machine's logs are kept.
#[derive(Debug)]
pub struct MachineLogs {
    pub(super) console: LogFile,
    pub(super) stderr: LogFile,
}

/// Why a log is not known to be complete.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MachineLogError {
    /// The pipe from QEMU cannot be read.
    #[error("failed to read {0}: {1}")]
    Read(&'static str, String),
    /// Its file cannot be written.
    #[error("failed to write {0}: {1}")]
    Write(Utf8PathBuf, String),
    /// There was too much.
    #[error("{0} flooded: it reached {max} MiB, and QEMU was killed", max = LOG_MAX >> 20)]
    Flooded(&'static str),
    /// The pipe from QEMU has not ended although QEMU has.
    #[error("{0} did not end with QEMU: its last lines may be missing")]
    Open(&'static str),
}

/// A log's file and what went wrong with it.
#[derive(Debug, Clone)]
pub(super) struct LogFile {
    what: &'static str,
    name: Utf8PathBuf,
    file: Arc<File>,
    error: Arc<Mutex<Option<MachineLogError>>>,
}

impl MachineLogs {
    /// `console.log` and `qemu-stderr.log` in a directory.
    ///
    /// # Errors
    /// When they cannot be made.
    pub fn in_directory(directory: &Utf8Path) -> io::Result<MachineLogs> {
        let create = |name: &str| {
            let name = directory.join(name);
            let file = File::options().read(true).write(true).create(true).truncate(true).open(&name);
            let fail = |error: io::Error| {
                io::Error::new(error.kind(), format!("failed to create `{name}`: {error}"))
            };
            file.map(|file| (name.clone(), file)).map_err(fail)
        };
        let (console, stderr) = (create("console.log")?, create("qemu-stderr.log")?);
        Ok(MachineLogs {
            console: LogFile::new(CONSOLE, console.0, console.1),
            stderr: LogFile::new(STDERR, stderr.0, stderr.1),
        })
    }

    /// Files without a name, which are gone with the machine, however that ends.
    ///
    /// # Errors
    /// When they cannot be made.
    pub fn unnamed() -> io::Result<MachineLogs> {
        let create =
            |what| io::Result::Ok(LogFile::new(what, "a temporary file".into(), tempfile::tempfile()?));
        Ok(MachineLogs { console: create(CONSOLE)?, stderr: create(STDERR)? })
    }
}

const CONSOLE: &str = "the guest's console";
const STDERR: &str = "QEMU's standard error";

impl LogFile {
    pub(super) fn new(what: &'static str, name: Utf8PathBuf, file: File) -> LogFile {
        LogFile { what, name, file: Arc::new(file), error: Arc::default() }
    }

    /// Keep what comes from `from` until it ends, and give each part to `search` before. What comes after a write has
    /// failed is still given to it. Where there is too much, `on_flood` is called, and nothing more is taken.
    pub(super) fn keep(&self, mut from: impl Read, mut search: impl FnMut(&[u8]), on_flood: impl FnOnce()) {
        let mut buffer = [0; 4096];
        let (mut left, mut is_full) = (LOG_MAX, false);
        loop {
            let bytes = match from.read(&mut buffer) {
                Ok(0) => return,
                Ok(n) => &buffer[..n],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return self.fail(MachineLogError::Read(self.what, error.to_string())),
            };
            search(bytes);
            let kept = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            if !is_full {
                if let Err(error) = (&*self.file).write_all(&bytes[..kept]) {
                    is_full = true;
                    self.fail(MachineLogError::Write(self.name.clone(), error.to_string()));
                }
            }
            left -= kept as u64;
            if kept < bytes.len() {
                self.fail(MachineLogError::Flooded(self.what));
                return on_flood();
            }
        }
    }

    /// The end of what was kept; at most a MiB. No more than that is read.
    pub(super) fn tail(&self) -> io::Result<String> {
        let size = self.size()?;
        let mut bytes = vec![0; size.min(TAIL_MAX) as usize];
        self.file.read_exact_at(&mut bytes, size.saturating_sub(TAIL_MAX))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// How many bytes were kept.
    pub(super) fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// What was kept behind the first `from` bytes; at most a MiB of it.
    pub(super) fn behind(&self, from: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.size()?.saturating_sub(from).min(TAIL_MAX) as usize];
        self.file.read_exact_at(&mut bytes, from)?;
        Ok(bytes)
    }

    /// The first thing that went wrong.
    pub(super) fn error(&self) -> Option<MachineLogError> {
        self.lock().clone()
    }

    /// It has not come to its end.
    pub(super) fn is_open(&self) -> MachineLogError {
        MachineLogError::Open(self.what)
    }

    fn fail(&self, error: MachineLogError) {
        let mut first = self.lock();
        // Who floods a full disk floods.
        if first.is_none() || matches!(error, MachineLogError::Flooded(_)) {
            *first = Some(error);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<MachineLogError>> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text, then an error.
    struct Broken<'a>(&'a [u8]);

    impl Read for Broken<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() { Err(io::Error::other("gone")) } else { self.0.read(buffer) }
        }
    }

    fn unnamed() -> LogFile {
        MachineLogs::unnamed().expect("files").console
    }

    /// What becomes of a text: the log's error, the bytes that were searched, and whether it flooded.
    fn kept(log: &LogFile, from: impl Read) -> (Option<String>, u64, bool) {
        let (mut searched, mut flooded) = (0, false);
        log.keep(from, |bytes| searched += bytes.len() as u64, || flooded = true);
        (log.error().map(|error| error.to_string()), searched, flooded)
    }

    #[test]
    fn log_is_kept_and_its_tail_is_its_end() {
        let log = unnamed();
        let text = format!("{}the end\n", "x".repeat(3 << 20));
        assert_eq!(kept(&log, text.as_bytes()), (None, text.len() as u64, false));
        let tail = log.tail().expect("readable");
        assert!(tail.len() == 1 << 20 && tail.ends_with("the end\n"));
        assert_eq!(unnamed().tail().expect("readable"), "");
    }

    #[test]
    fn what_is_behind_a_place_is_the_log_from_there_on() {
        let log = unnamed();
        kept(&log, &b"one\ntwo\n"[..]);
        assert_eq!(log.size().expect("a size"), 8);
        let behind = |from| String::from_utf8(log.behind(from).expect("readable")).expect("text");
        assert_eq!([0, 4, 8, 9].map(behind), ["one\ntwo\n", "two\n", "", ""]);
    }

    #[test]
    fn log_takes_no_more_than_its_size() {
        let log = unnamed();
        assert_eq!(kept(&log, io::repeat(b'x').take(LOG_MAX)), (None, LOG_MAX, false));
        let log = unnamed();
        let (error, searched, flooded) = kept(&log, io::repeat(b'x'));
        let expected = "the guest's console flooded: it reached 16 MiB, and QEMU was killed";
        assert!(error.as_deref() == Some(expected) && flooded, "{error:?}");
        assert!(searched <= LOG_MAX + 4096, "{searched}");
        assert_eq!(log.file.metadata().expect("a size").len(), LOG_MAX);
    }

    #[test]
    fn full_disk_hides_nothing_and_is_an_error() {
        let file = File::options().read(true).write(true).open("/dev/full").expect("there");
        let log = LogFile::new(CONSOLE, "d/console.log".into(), file);
        let (error, searched, flooded) = kept(&log, &[b'x'; 9000][..]);
        assert_eq!((searched, flooded), (9000, false));
        let error = error.expect("full");
        assert_eq!(error, "failed to write d/console.log: No space left on device (os error 28)");
    }

    #[test]
    fn unreadable_pipe_is_an_error() {
        let error = kept(&unnamed(), Broken(b"text")).0.expect("broken");
        assert_eq!(error, "failed to read the guest's console: gone");
        let error = MachineLogs::in_directory("/nowhere".into()).expect_err("no directory").to_string();
        assert!(error.starts_with("failed to create `/nowhere/console.log`: No such file"), "{error}");
    }
}
