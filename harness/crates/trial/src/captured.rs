//! What of a step's output is captured.

use std::borrow::Cow;

use crate::case::CapturePart;
use formats::dispatch_log::{auxtrace_part, log_entries};

/// This part of an output.
pub(crate) fn captured(part: CapturePart, output: &[u8]) -> Cow<'_, [u8]> {
    match part {
        CapturePart::All => Cow::Borrowed(output),
        CapturePart::AuxTrace => Cow::Owned(auxtrace_part(output)),
        CapturePart::Entries => Cow::Owned(log_entries(output)),
    }
}
