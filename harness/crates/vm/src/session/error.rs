//! Why a request has no answer.

use crate::qemu::StopReason;
use crate::{FrameError, FrameKind, PROTOCOL_VERSION};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The machine stopped, or did nothing for too long.
    #[error(transparent)]
    Stopped(#[from] StopReason),
    /// The agent does not keep to the protocol, or is not the one that was built.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The request does not fit in a frame.
    #[error("the step is too large: {size} bytes, and at most {max} fit")]
    TooLarge {
        /// Bytes of the request.
        size: usize,
        /// Bytes that fit.
        max: usize,
    },
}

/// What the agent sent that it should not have sent.
#[derive(Debug, thiserror::Error)]
pub enum ProtocolError {
    /// The first frame is not a greeting.
    #[error("expected the agent's greeting, got a {0:?} frame")]
    NotAGreeting(FrameKind),
    /// The greeting cannot be read.
    #[error(transparent)]
    Greeting(#[from] FrameError),
    /// The agent was built for another goldtrace.
    #[error("the agent speaks version {0} of the protocol, expected {PROTOCOL_VERSION}")]
    Version(u32),
    /// Another kernel was booted.
    #[error("the guest runs kernel {found}, expected {expected}")]
    Release {
        /// The kernel that runs.
        found: String,
        /// The kernel that was to be booted.
        expected: String,
    },
    /// The guest has not as many CPUs as its description says.
    #[error("{online} of the guest's {expected} CPUs are online")]
    Cpus {
        /// CPUs that are online.
        online: u32,
        /// CPUs of the guest's description.
        expected: u64,
    },
    /// A frame that belongs to no request.
    #[error("the agent answered a request that was not made")]
    UnknownRequest,
    /// A frame that cannot be part of an answer.
    #[error("unexpected {0:?} frame in an answer")]
    InsideAnswer(FrameKind),
    /// More output than the request allows.
    #[error("the agent sent more than the {0} bytes of output that it may send")]
    TooMuchOutput(usize),
    /// The frame that ends an answer has another size.
    #[error("the frame that ends an answer has {0} bytes, expected 56")]
    DoneSize(usize),
    /// The frame that ends an answer gives an unknown reason.
    #[error("the frame that ends an answer is of the unknown kind {0}")]
    DoneKind(u32),
    /// Output was lost or made up on the way.
    #[error(
        "the agent sent {} and {} bytes of output, received {} and {}", sent.0, sent.1, received.0, received.1
    )]
    Counts {
        /// Bytes of standard output and of standard error that the agent counted.
        sent: (u64, u64),
        /// Bytes that came.
        received: (u64, u64),
    },
    /// Another frame than the answer to a request to quiesce.
    #[error("expected the answer to QUIESCE, got a {0:?} frame")]
    NotQuiesced(FrameKind),
    /// The processor has no timebase.
    #[error("the guest's processor has no timebase")]
    NoTimebase,
    /// A frame after the request to power off.
    #[error("unexpected {0:?} frame from the agent after END")]
    AfterEnd(FrameKind),
}
