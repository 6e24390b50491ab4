//! The agent's port: our end of a pair of sockets, to whose other end QEMU connects the guest's virtio-serial port.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use super::boot::Mode;
use super::event::MachineEvent;
use crate::Frame;

/// How long a request may wait until the guest takes it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);

/// The host's end of the port.
#[derive(Debug, Clone)]
pub(super) struct AgentPort {
    stream: Arc<UnixStream>,
}

impl AgentPort {
    /// # Errors
    /// When the socket cannot be set up.
    pub(super) fn new(stream: UnixStream) -> io::Result<AgentPort> {
        stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        Ok(AgentPort { stream: Arc::new(stream) })
    }

    /// Send a frame to the agent.
    ///
    /// # Errors
    /// Why it was not sent.
    pub(super) fn send(&self, frame: &Frame) -> Result<(), String> {
        let sent = (&*self.stream).write_all(&frame.encode());
        sent.map_err(|error| format!("failed to write to the agent's port: {error}"))
    }

    /// Send everything that comes as events until the port closes.
    pub(super) fn watch(&self, mode: Mode, events: &SyncSender<MachineEvent>) {
        if let Err(why) = self.read(mode, events) {
            let _ = events.send(MachineEvent::PortClosed(why));
        }
    }

    /// Ends with the reason for which the port closed; `Ok` when the machine is being dropped.
    fn read(&self, mode: Mode, events: &SyncSender<MachineEvent>) -> Result<(), Option<String>> {
        let mut stream = &*self.stream;
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

    /// End [`AgentPort::watch`].
    pub(super) fn close(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;
    use crate::FrameKind;

    #[test]
    fn garbage_closes_the_port_with_a_reason_and_an_end_without() {
        for (sent, expected) in [(&b"garbage that is not a frame"[..], true), (&b""[..], false)] {
            let (ours, mut qemu) = UnixStream::pair().expect("a pair");
            let port = AgentPort::new(ours).expect("a socket");
            qemu.write_all(sent).expect("sent");
            drop(qemu);
            let (events, received) = sync_channel(8);
            port.watch(Mode::Agent, &events);
            let Ok(MachineEvent::PortClosed(why)) = received.recv() else { panic!("an end") };
            assert_eq!(why.is_some_and(|why| why.contains("is not the protocol")), expected);
            let error = port.send(&Frame { kind: FrameKind::End, nonce: 1, payload: Vec::new() });
            let error = error.expect_err("the other end is gone");
            assert!(error.starts_with("failed to write to the agent's port: "), "{error}");
        }
    }

    #[test]
    fn watch_ends_when_the_port_is_closed_here() {
        let (ours, _qemu) = UnixStream::pair().expect("a pair");
        let port = AgentPort::new(ours).expect("a socket");
        let watcher = {
            let port = port.clone();
            std::thread::spawn(move || port.watch(Mode::Agent, &sync_channel(8).0))
        };
        port.close();
        watcher.join().expect("no panic");
    }
}
