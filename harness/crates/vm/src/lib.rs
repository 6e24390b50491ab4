//! Virtual machines: QEMU as a process, the agent in the guest, and the guest's memory.
//!
//! [`qemu::Machine`] starts QEMU and turns everything that happens into [`qemu::MachineEvent`]s, so that every wait ends
//! when QEMU dies or the kernel panics. [`Session`] sends requests to the agent over the machine's port and gathers its
//! answers byte for byte. [`dispatch_log::Writer`] writes the dispatch trace log into the guest's memory. Everything that
//! is started here, or by [`process`] for others, ends with goldtrace.
//!
//! This crate knows no case and no golden: it runs scripts and reads files.

pub mod dispatch_log;
pub mod memory;
pub mod process;
mod protocol;
pub mod qemu;
mod session;
mod splat;

pub use protocol::{Frame, FrameError, FrameKind, PROTOCOL_VERSION, Ready};
pub use session::{
    Answer, OpenError, Pending, Port, ProtocolError, Request, Session, SessionError, StepEnd, Work,
};
pub use splat::{Splat, SplatKind, SplatScanner};
