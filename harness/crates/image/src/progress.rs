//! The progress of builds. How it is shown is the caller's matter.

use std::time::Duration;

/// Hears of a build's progress. Steps of several threads may overlap.
pub trait ProgressSink: Send + Sync {
    /// A step has begun.
    fn begin(&self, step: &str);
    /// The step printed a line of output.
    fn line(&self, step: &str, line: &str);
    /// The step has ended.
    fn end(&self, step: &str, success: bool, elapsed: Duration);
    /// Something that the user should know.
    fn notice(&self, text: &str);
}

/// Shows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl ProgressSink for Silent {
    fn begin(&self, _: &str) {}
    fn line(&self, _: &str, _: &str) {}
    fn end(&self, _: &str, _: bool, _: Duration) {}
    fn notice(&self, _: &str) {}
}
