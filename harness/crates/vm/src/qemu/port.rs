//! The agent's port: a socket in a private directory, to which QEMU connects the guest's virtio-serial port.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tempfile::TempDir;

use super::argv::Mode;
use super::event::MachineEvent;
use crate::Frame;

/// How long a request may wait until the guest takes it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);
/// The longest path of a directory of sockets. A socket's path has at most 107 bytes on Linux (unix(7)).
const DIR_MAX: usize = 90;

/// The host's end of the port.
#[derive(Debug, Clone)]
pub(super) struct AgentPort {
    socket: Utf8PathBuf,
    stream: Arc<Mutex<Option<UnixStream>>>,
    closing: Arc<AtomicBool>,
}

impl AgentPort {
    pub(super) fn new(socket: Utf8PathBuf) -> AgentPort {
        AgentPort { socket, stream: Arc::default(), closing: Arc::default() }
    }

    /// Send a frame to the agent.
    ///
    /// # Errors
    /// Why it was not sent.
    pub(super) fn send(&self, frame: &Frame) -> Result<(), String> {
        match self.stream().as_mut().map(|stream| stream.write_all(&frame.encode())) {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(format!("failed to write to the agent's port: {error}")),
            None => Err("the agent's port is not open".to_owned()),
        }
    }

    /// Wait for QEMU to connect, then send everything that comes as events until the port closes.
    pub(super) fn watch(&self, listener: &UnixListener, mode: Mode, events: &SyncSender<MachineEvent>) {
        if let Err(why) = self.connect_and_read(listener, mode, events) {
            let _ = events.send(MachineEvent::PortClosed(why));
        }
    }

    /// Ends with the reason for which the port closed; `Ok` when the machine is being dropped.
    fn connect_and_read(
        &self,
        listener: &UnixListener,
        mode: Mode,
        events: &SyncSender<MachineEvent>,
    ) -> Result<(), Option<String>> {
        let (mut stream, _) = listener.accept().map_err(|error| {
            Some(format!("failed to accept QEMU's connection for the agent's port: {error}"))
        })?;
        if self.closing.load(Ordering::SeqCst) {
            return Ok(());
        }
        let usable = stream.set_write_timeout(Some(WRITE_TIMEOUT)).and_then(|()| stream.try_clone());
        *self.stream() =
            Some(usable.map_err(|error| Some(format!("failed to set up the agent's port: {error}")))?);
        if mode == Mode::Stopped {
            if let Ok(1..) = stream.read(&mut [0]) {
                let _ = events.send(MachineEvent::MonitorGreeted);
            }
            return Ok(());
        }
        loop {
            let frame = Frame::read(&mut stream).map_err(|error| Some(error.to_string()))?.ok_or(None)?;
            if events.send(MachineEvent::Frame(frame)).is_err() {
                return Ok(());
            }
        }
    }

    /// End [`AgentPort::watch`], also while it waits for QEMU to connect.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
        let _ = UnixStream::connect(&self.socket);
    }

    fn stream(&self) -> MutexGuard<'_, Option<UnixStream>> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A directory for sockets that only we can enter, with a name that cannot be guessed.
///
/// # Errors
/// When it cannot be made, or its path is too long for a socket.
pub(super) fn private_dir() -> io::Result<(TempDir, Utf8PathBuf)> {
    let dir = tempfile::Builder::new().prefix("goldtrace-").tempdir()?;
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700))?;
    let path = Utf8Path::from_path(dir.path());
    let path =
        path.ok_or_else(|| io::Error::other("the path of the temporary directory is not UTF-8: set TMPDIR"))?;
    check_length(path)?;
    let path = path.to_owned();
    Ok((dir, path))
}

fn check_length(dir: &Utf8Path) -> io::Result<()> {
    if dir.as_str().len() <= DIR_MAX {
        return Ok(());
    }
    Err(io::Error::other(format!("the path {dir} is too long for a socket: set TMPDIR to a shorter one")))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;
    use crate::FrameKind;

    #[test]
    fn garbage_closes_the_port_with_a_reason_and_an_end_without() {
        let (dir, path) = private_dir().expect("a directory");
        for (sent, expected) in [(&b"garbage that is not a frame"[..], true), (&b""[..], false)] {
            let socket = path.join(format!("s{expected}"));
            let listener = UnixListener::bind(&socket).expect("bound");
            let port = AgentPort::new(socket.clone());
            assert_eq!(
                port.send(&Frame { kind: FrameKind::End, nonce: 1, payload: Vec::new() }),
                Err("the agent's port is not open".to_owned())
            );
            UnixStream::connect(&socket).and_then(|mut s| s.write_all(sent)).expect("sent");
            let (events, received) = sync_channel(8);
            port.watch(&listener, Mode::Agent, &events);
            let Ok(MachineEvent::PortClosed(why)) = received.recv() else { panic!("an end") };
            assert_eq!(why.is_some_and(|why| why.contains("is not the protocol")), expected);
            let error = port.send(&Frame { kind: FrameKind::End, nonce: 1, payload: Vec::new() });
            let error = error.expect_err("the other end is gone");
            assert!(error.starts_with("failed to write to the agent's port: "), "{error}");
        }
        drop(dir);
    }

    #[test]
    fn directory_is_private_and_short_enough() {
        let (_dir, path) = private_dir().expect("a directory");
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let error = check_length(Utf8Path::new(&"/x".repeat(46))).expect_err("too long").to_string();
        assert!(error.contains("is too long for a socket: set TMPDIR to a shorter one"), "{error}");
    }
}
