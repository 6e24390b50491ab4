//! What happened in a trial, as plain data.

use std::time::Duration;

use super::abort::Abort;
use super::decode::SecondDecoding;
use super::inspect::Inspected;
use dtl::Written;
use vm::process::last_lines;
use vm::{Answer, KernelState, Splat};

/// What happened in a trial.
#[derive(Debug, Default)]
pub struct Transcript {
    /// What QEMU was started with.
    pub command: String,
    /// From QEMU's start to the agent's greeting; `None` when there was none.
    pub boot_time: Option<Duration>,
    /// The steps that were answered, in order.
    pub steps: Vec<StepRecord>,
    /// Why the trial did not get to its end; `None` when every step was done and the guest powered
    /// off.
    pub abort: Option<Abort>,
    /// The kernel's splats, in order.
    pub splats: Vec<Splat>,
    /// How many messages the kernel says that the console does not have.
    pub lost_messages: u64,
    /// The patterns of the guest's known messages that came.
    pub known_messages: Vec<String>,
    /// The console, at most its last MiB.
    pub console: String,
    /// What QEMU printed on its standard error.
    pub stderr: String,
}

impl Transcript {
    /// The steps that ended as their case says.
    pub fn completed(&self) -> &[StepRecord] {
        let refused = usize::from(matches!(self.abort, Some(Abort::Step(_))));
        &self.steps[..self.steps.len() - refused]
    }

    /// The console's last lines.
    pub fn console_tail(&self, lines: usize) -> &str {
        last_lines(&self.console, lines)
    }
}

/// A step that was answered.
#[derive(Debug, Clone)]
pub struct StepRecord {
    /// What it printed.
    pub output: StepOutput,
    /// The nonces of its requests to the agent, in order.
    pub requests: Vec<u64>,
    /// The kernel's state after it; `None` for one that does nothing in the guest.
    pub kernel: Option<KernelState>,
    /// What was written to the dispatch trace log while its command ran.
    pub written: Option<Written>,
    /// What perf printed of the same data in a guest of another architecture.
    pub second: Option<SecondDecoding>,
    /// The module that the step has looked at, or whose events' formats it has read.
    pub inspected: Option<Inspected>,
    /// A process that it left behind holds its output open.
    pub held_open: bool,
}

/// What a step printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepOutput {
    /// Its standard output, or the file's content.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

impl From<Answer> for StepOutput {
    fn from(answer: Answer) -> StepOutput {
        StepOutput { stdout: answer.stdout, stderr: answer.stderr }
    }
}

impl StepRecord {
    /// A step that printed this, and of which nothing more is known.
    pub(crate) fn new(output: StepOutput) -> StepRecord {
        StepRecord {
            output,
            requests: Vec::new(),
            kernel: None,
            written: None,
            second: None,
            inspected: None,
            held_open: false,
        }
    }
}
