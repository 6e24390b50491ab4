//! The standard input of a request that runs, and the size of its terminal.

use super::request::TerminalSize;
use super::{Pending, Port, Session, SessionError};
use crate::protocol::{CHUNK_MAX, Frame, FrameKind};

impl<P: Port> Session<P> {
    /// Send bytes to the standard input of a [`Work::RunOpen`](super::Work::RunOpen), or as if they were typed to that
    /// of a [`Work::Terminal`](super::Work::Terminal), when [`Pending::takes_input`] says so. They are dropped where
    /// nothing reads them any more.
    ///
    /// # Errors
    /// When the port is closed.
    ///
    /// # Panics
    /// When there are more than [`CHUNK_MAX`] bytes or none.
    pub fn send_input(&mut self, pending: &mut Pending, bytes: &[u8]) -> Result<(), SessionError> {
        assert!((1..=CHUNK_MAX).contains(&bytes.len()), "{} bytes of input at once", bytes.len());
        pending.input_is_under_way = true;
        self.send_to(pending, FrameKind::Input, bytes.to_vec())
    }

    /// End the standard input of a [`Work::RunOpen`](super::Work::RunOpen). When the script has ended already, nothing
    /// happens.
    ///
    /// # Errors
    /// When the port is closed.
    pub fn close_input(&mut self, pending: &Pending) -> Result<(), SessionError> {
        self.send_to(pending, FrameKind::Close, Vec::new())
    }

    /// Give the terminal of a [`Work::Terminal`](super::Work::Terminal) another size.
    ///
    /// # Errors
    /// When the port is closed.
    pub fn resize(&mut self, pending: &Pending, size: TerminalSize) -> Result<(), SessionError> {
        self.send_to(pending, FrameKind::Resize, size.bytes().to_vec())
    }

    fn send_to(&mut self, pending: &Pending, kind: FrameKind, payload: Vec<u8>) -> Result<(), SessionError> {
        Ok(self.machine.send(&Frame { kind, nonce: pending.nonce, payload })?)
    }
}
