//! An answer that is on its way: its frames, checked one by one.

use std::time::Duration;

use super::error::ProtocolError;
use super::request::{Answer, KernelState, StepEnd};
use super::timeout::Timeout;
use crate::{Frame, FrameKind};

/// An answer that is on its way.
#[derive(Debug)]
pub struct Pending {
    pub(super) nonce: u64,
    /// What is waited for, for messages.
    pub(super) awaited: String,
    pub(super) timeout: Timeout,
    /// Its timeout is over, and its processes are being killed.
    pub(super) killed: bool,
    output_limit: usize,
    /// Its last frame has come.
    pub(super) ended: bool,
    /// Input was sent that the guest has not taken.
    pub(super) input_is_under_way: bool,
    pub(super) answer: Answer,
    /// How many bytes of standard output and standard error were taken out of the answer already.
    taken: (usize, usize),
}

impl Pending {
    pub(super) fn new(nonce: u64, awaited: String, timeout: Timeout, output_limit: u32) -> Pending {
        let answer = Answer {
            end: StepEnd::Exited(0),
            stdout: Vec::new(),
            stderr: Vec::new(),
            elapsed: Duration::ZERO,
            held_open: false,
            kernel: KernelState::default(),
        };
        let output_limit = output_limit as usize;
        Pending {
            nonce,
            awaited,
            timeout,
            killed: false,
            output_limit,
            ended: false,
            input_is_under_way: false,
            answer,
            taken: (0, 0),
        }
    }

    /// What the guest has answered so far.
    pub fn answer(&self) -> &Answer {
        &self.answer
    }

    /// Take what has come of standard output and standard error since this was called last. It is not in the answer at
    /// its end.
    pub fn take_output(&mut self) -> (Vec<u8>, Vec<u8>) {
        let answer = &mut self.answer;
        self.taken.0 += answer.stdout.len();
        self.taken.1 += answer.stderr.len();
        (std::mem::take(&mut answer.stdout), std::mem::take(&mut answer.stderr))
    }

    /// Whether the next part of its input may be sent.
    pub fn takes_input(&self) -> bool {
        !self.ended && !self.input_is_under_way
    }

    /// How many bytes have come of each.
    fn received(&self) -> (usize, usize) {
        (self.taken.0 + self.answer.stdout.len(), self.taken.1 + self.answer.stderr.len())
    }

    /// Add a frame to the answer; whether it was the last.
    ///
    /// # Errors
    /// When it cannot be a part of this answer.
    pub(super) fn add(&mut self, frame: Frame) -> Result<bool, ProtocolError> {
        if frame.nonce != self.nonce || self.ended {
            return Err(ProtocolError::UnknownRequest);
        }
        let answer = &mut self.answer;
        match frame.kind {
            FrameKind::Stdout => answer.stdout.extend(frame.payload),
            FrameKind::Stderr => answer.stderr.extend(frame.payload),
            FrameKind::Done => {
                let received = self.received();
                finish(&mut self.answer, &frame.payload, received)?;
                self.ended = true;
                return Ok(true);
            }
            FrameKind::Taken if self.input_is_under_way => self.input_is_under_way = false,
            other => return Err(ProtocolError::InsideAnswer(other)),
        }
        let (stdout, stderr) = self.received();
        if stdout + stderr > self.output_limit {
            return Err(ProtocolError::TooMuchOutput(self.output_limit));
        }
        Ok(false)
    }
}

fn finish(answer: &mut Answer, payload: &[u8], received: (usize, usize)) -> Result<(), ProtocolError> {
    let payload: &[u8; 56] = payload.try_into().map_err(|_| ProtocolError::DoneSize(payload.len()))?;
    let word = |at: usize| u32::from_le_bytes(payload[at..at + 4].try_into().expect("four bytes"));
    let long = |at: usize| u64::from_le_bytes(payload[at..at + 8].try_into().expect("eight bytes"));
    let value = word(4);
    answer.end = match word(0) {
        0 => StepEnd::Exited(value),
        1 => StepEnd::Signalled(value),
        2 => StepEnd::TimedOut,
        3 => StepEnd::Flooded,
        4 => StepEnd::Errno(value),
        other => return Err(ProtocolError::DoneKind(other)),
    };
    answer.elapsed = Duration::from_micros(long(24));
    answer.held_open = [word(32), word(36)] != [0, 0];
    answer.kernel = KernelState { tainted: long(40), console_level: word(48), message_level: word(52) };
    let received = (received.0 as u64, received.1 as u64);
    let sent = (long(8), long(16));
    if received == sent { Ok(()) } else { Err(ProtocolError::Counts { sent, received }) }
}
