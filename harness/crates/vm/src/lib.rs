//! Virtual machines: QEMU as a process, the agent in the guest, and the guest's memory.
//!
//! [`qemu::Machine`] starts QEMU and turns everything that happens into [`qemu::MachineEvent`]s, so that every wait ends
//! when QEMU dies or the kernel panics. [`Session`] sends requests to the agent over the machine's port and returns its
//! answers byte for byte. [`Splat`] is a report of the kernel on its console. [`dispatch_log::Writer`] writes the
//! dispatch trace log into the guest's memory.
//!
//! This crate owns the invariant that nothing which is started here, or by [`process`] for others, outlives goldtrace,
//! and that every wait has a timeout. It must not know cases, goldens, formats of captures or how images are built: it
//! boots files, runs scripts and reads bytes.

pub mod dispatch_log;
mod memory;
pub mod process;
mod protocol;
pub mod qemu;
mod session;
mod splat;

pub use memory::NoSuchWord;
pub use protocol::{CHUNK_MAX, END_OF_REQUEST, Frame, FrameError, FrameKind, PROTOCOL_VERSION, Ready};
pub use session::{
    Answer, KernelState, OpenError, Pending, Port, ProtocolError, Request, Session, SessionError, StepEnd,
    TerminalSize, Work,
};
pub use splat::{KnownMessages, Splat, SplatKind, SplatScanner};
