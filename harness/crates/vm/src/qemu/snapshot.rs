//! A guest that was saved when its agent was ready, to be restored any number of times.
//!
//! Its directory holds four files: `memory`, which pages there are ([`MemoryImage`]); `state`, the machine's devices and
//! processors as QEMU writes them; `console`, what the guest printed until then; and `snapshot.json`.

use std::fs::{self, File};
use std::io::{self, BufReader};

use camino::Utf8Path;
use serde::{Deserialize, Serialize};

use super::host_tsc;
use crate::memory::MemoryImage;

/// The files of a snapshot's directory.
pub(super) const MEMORY: &str = "memory";
pub(super) const STATE: &str = "state";
pub(super) const CONSOLE: &str = "console";
pub(super) const DESCRIPTION: &str = "snapshot.json";

/// By how many millionths the host's time stamp counter may run faster or slower than when the guest was saved: the
/// guest knows its frequency from then. Two measurements on one host differ by less than ten.
const TSC_DRIFT_MAX: u64 = 500;

/// What is known of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Description {
    /// The QEMU that wrote it, as its monitor says: no other is sure to read it.
    pub(super) qemu: String,
    /// The size of the guest's memory in bytes.
    pub(super) memory: u64,
    /// The frequency of the host's time stamp counter in kHz, where the guest was given it.
    pub(super) tsc_khz: Option<u64>,
}

/// A guest that was saved.
#[derive(Debug)]
pub struct Snapshot {
    pub(super) description: Description,
    pub(super) memory: MemoryImage,
    pub(super) state: Vec<u8>,
    /// What its console showed, which belongs to each guest that is restored.
    pub(super) console: Vec<u8>,
}

/// Why a snapshot cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// One of its files cannot be read, or is not what it should be.
    #[error("failed to read {0}: {1}")]
    Read(&'static str, io::Error),
    /// The guest's clock would be wrong.
    #[error(
        "the host's time stamp counter runs at {now} kHz, and ran at {then} kHz when the guest was saved"
    )]
    OtherClock {
        /// The frequency now.
        now: u64,
        /// What the guest was given.
        then: u64,
    },
}

impl Snapshot {
    /// Read the snapshot in a directory, which [`Machine::save`](super::Machine::save) has written.
    ///
    /// # Errors
    /// See [`SnapshotError`].
    pub fn load(directory: &Utf8Path) -> Result<Snapshot, SnapshotError> {
        let read = |name: &'static str| {
            fs::read(directory.join(name)).map_err(|error| SnapshotError::Read(name, error))
        };
        let description: Description = serde_json::from_slice(&read(DESCRIPTION)?)
            .map_err(|error| SnapshotError::Read(DESCRIPTION, error.into()))?;
        if let (Some(then), Some(now)) =
            (description.tsc_khz, description.tsc_khz.and_then(|_| host_tsc::khz()))
        {
            if drifted(then, now) {
                return Err(SnapshotError::OtherClock { now, then });
            }
        }
        let memory = File::open(directory.join(MEMORY))
            .and_then(|file| MemoryImage::unpack(&mut BufReader::new(file), description.memory))
            .map_err(|error| SnapshotError::Read(MEMORY, error))?;
        Ok(Snapshot { description, memory, state: read(STATE)?, console: read(CONSOLE)? })
    }
}

fn drifted(then: u64, now: u64) -> bool {
    then.abs_diff(now).saturating_mul(1_000_000) > then.saturating_mul(TSC_DRIFT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_of_another_frequency_is_refused() {
        assert!(!drifted(2_445_406, 2_445_405) && !drifted(2_445_406, 2_446_000));
        assert!(drifted(2_445_406, 2_450_000) && drifted(2_445_406, 2_440_000) && drifted(2_445_406, 0));
    }

    #[test]
    fn file_that_is_missing_or_cut_is_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = Utf8Path::from_path(dir.path()).expect("UTF-8");
        let error = || Snapshot::load(dir).expect_err("refused").to_string();
        assert!(error().starts_with("failed to read snapshot.json: No such file"), "{}", error());
        fs::write(dir.join(DESCRIPTION), "{}").expect("written");
        assert!(error().starts_with("failed to read snapshot.json: missing field"), "{}", error());
        let description = Description { qemu: "1".to_owned(), memory: 8192, tsc_khz: None };
        fs::write(dir.join(DESCRIPTION), serde_json::to_string(&description).expect("text"))
            .expect("written");
        fs::write(dir.join(MEMORY), [0; 20]).expect("written");
        assert!(error().starts_with("failed to read memory: 0 bytes at 0x0 are no run"), "{}", error());
        fs::write(dir.join(MEMORY), [0; 0]).expect("written");
        assert!(error().starts_with("failed to read state: No such file"), "{}", error());
    }
}
