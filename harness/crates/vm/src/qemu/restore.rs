//! Restoring a guest from a [`Snapshot`].

use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::SystemTime;

use super::descriptors::STATE;
use super::event::MachineEvent;
use super::monitor::Monitor;
use super::port::AgentPort;
use super::snapshot::Snapshot;
use crate::{Frame, FrameKind};

/// How many random bytes a restored guest is given: what its kernel's generator holds (`BLAKE2S_HASH_SIZE`,
/// drivers/char/random.c).
const RANDOM: usize = 32;

/// What is done for a guest that waits for its state, by a thread of its own.
pub(super) struct Restore {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) monitor: Arc<Mutex<Monitor>>,
    pub(super) port: AgentPort,
    /// Where QEMU reads the state.
    pub(super) state: File,
}

impl Restore {
    /// Restore the guest and tell its agent, whose greeting comes next. A failure closes the agent's port.
    pub(super) fn spawn(self, events: &SyncSender<MachineEvent>) -> JoinHandle<()> {
        let events = events.clone();
        std::thread::spawn(move || {
            if let Err(why) = self.run() {
                let _ = events.send(MachineEvent::PortClosed(Some(why)));
            }
        })
    }

    fn run(self) -> Result<(), String> {
        let failed = |error: io::Error| format!("failed to restore the guest from its snapshot: {error}");
        let Restore { snapshot, monitor, port, mut state } = self;
        let mut monitor = monitor.lock().unwrap_or_else(PoisonError::into_inner);
        let version = monitor.greet().map_err(failed)?;
        let saved_by = &snapshot.description.qemu;
        if version != *saved_by {
            let why = format!("it was saved by QEMU {saved_by}, and this is QEMU {version}");
            return Err(failed(io::Error::other(why)));
        }
        // The state is longer than what a pipe takes at once. A QEMU that refuses it ends, and so does this.
        let writer = std::thread::spawn(move || state.write_all(&snapshot.state));
        monitor.load_state(STATE).map_err(failed)?;
        writer.join().expect("no panic").map_err(failed)?;
        port.send(&resume().map_err(failed)?)
    }
}

/// The frame that tells a restored agent the time, and gives it random numbers.
fn resume() -> io::Result<Frame> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_err(io::Error::other)?;
    let now = u64::try_from(now.as_nanos()).map_err(io::Error::other)?;
    let mut payload = now.to_le_bytes().to_vec();
    let mut random = [0; RANDOM];
    let got = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    // getrandom(2) returns as many as this in one call.
    assert_eq!(got, RANDOM, "random bytes");
    payload.extend(random);
    Ok(Frame { kind: FrameKind::Resume, nonce: 0, payload })
}
