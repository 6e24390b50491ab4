//! The conversation with the agent in the guest.
//!
//! [`Frame`] is the wire format, the host's half of `guests/agent/protocol.h`. [`Session`] sends a
//! request over a running [`crate::qemu::Machine`] and gathers its answer byte for byte.
//!
//! This module knows nothing of cases: it runs scripts and reads files.

mod frame;
mod session;

pub use frame::{Frame, FrameError, Kind, PROTOCOL_VERSION, Ready};
pub use session::{Answer, Ended, OpenError, Pending, Request, Session, SessionError, Work};
