//! Virtual machines: QEMU as a process, the agent in the guest, and the guest's memory.
//!
//! [`qemu::Machine`] starts QEMU and turns everything that happens into [`qemu::Event`]s, so that every wait ends when
//! QEMU dies or the kernel panics. [`Session`] sends requests to the agent over the machine's port and gathers its answers
//! byte for byte. [`dispatch_log::Writer`] writes the dispatch trace log into the guest's memory. Everything that is
//! started here, or by [`process`] for others, ends with goldtrace.
//!
//! This crate knows no case and no golden: it runs scripts and reads files.

pub mod dispatch_log;
pub mod process;
mod protocol;
pub mod qemu;
mod session;

pub use protocol::{Frame, FrameError, Kind, PROTOCOL_VERSION, Ready};
pub use session::{Answer, Ended, OpenError, Pending, Request, Session, SessionError, Work};
