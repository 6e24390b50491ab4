//! Why nothing was blessed.

use camino::Utf8PathBuf;

/// Why nothing was blessed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There are no artefacts.
    #[error("there is no last run: run the case first")]
    NoRun,
    /// A guest of the case is not in the last run.
    #[error("the last run has no trial of it on {guest}: a golden must fit all guests of its case")]
    NoTrial {
        /// The guest.
        guest: String,
    },
    /// A trial says nothing of the kernel that a golden could hold.
    #[error("on {guest}, {why}")]
    Unusable {
        /// The guest.
        guest: String,
        /// Why.
        why: String,
    },
    /// The captures are those of other steps.
    #[error("the case has changed since the last run: run it again")]
    CaseChanged,
    /// It was run nowhere: why.
    #[error("on each of its guests {0}")]
    Skipped(String),
    /// The guests ran different kernels: which.
    #[error("its guests ran different kernels: {}", .0.join(", "))]
    DifferentKernels(Vec<String>),
    /// The kernel is not the one that the goldens are for: how it differs.
    #[error("the last run's kernel is not the project's own ({}): run the case without that", .0.join(", "))]
    ChangedKernel(Vec<String>),
    /// A trial ended before a capture.
    #[error("on {guest}, the trial ended before `{capture}` was captured")]
    NotCaptured {
        /// The guest.
        guest: String,
        /// The capture's name.
        capture: String,
    },
    /// A person has to write the golden.
    #[error("{golden}: {why}; edit it by hand")]
    ByHand {
        /// The golden.
        golden: Utf8PathBuf,
        /// Why.
        why: String,
    },
}
