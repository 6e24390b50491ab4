//! Data that perf on the host and perf in the guest print differently.

use std::fmt::Write as _;

use similar::TextDiff;

use super::text::ReportText;
use trial::{DecodeFailure, StepPlace};

/// Lines of a difference beyond these are counted, not shown.
const LINES_MAX: usize = 40;

/// Write the failure: where, and the lines that differ, the guest's with a minus.
pub(super) fn render(failure: &DecodeFailure, text: &mut ReportText) {
    let DecodeFailure { step: StepPlace { file, line, summary }, guest, file: capture, host } = failure;
    let _ = writeln!(text, "{file}:{line}: `{summary}` does not print the same on the host");
    if let Some(failed) = &host.failed {
        let _ = writeln!(text, "  perf on the host failed: {}", failed);
    }
    let (guest, other) = (String::from_utf8_lossy(guest), String::from_utf8_lossy(&host.stdout));
    let diff = TextDiff::from_lines(guest.as_ref(), other.as_ref());
    let shown = diff.unified_diff().context_radius(1).header("guest", "host").to_string();
    let mut lines = shown.lines();
    for line in lines.by_ref().take(LINES_MAX) {
        let _ = writeln!(text, "  {}", line);
    }
    let more = lines.count();
    if more > 0 {
        let _ = writeln!(text, "  ... and {more} more lines");
    }
    let _ = writeln!(text, "  in the guest: {capture}\n  on the host, in {}: {}", host.dir, host.command);
}
