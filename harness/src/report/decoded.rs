//! Data that perf in two guests prints differently.

use std::fmt::Write as _;

use similar::TextDiff;

use super::text::ReportText;
use trial::{DecodeFailure, StepPlace};

/// Lines of a difference beyond these are counted, not shown.
const LINES_MAX: usize = 40;

/// Write the failure: where, and the lines that differ, those of the guest that recorded with a minus.
pub(super) fn render(failure: &DecodeFailure, text: &mut ReportText) {
    let DecodeFailure { step: StepPlace { file, line, summary }, guest, file: capture, second } = failure;
    let _ = writeln!(text, "{file}:{line}: `{summary}` does not print the same in guest {}", second.guest);
    if let Some(failed) = &second.failed {
        let _ = writeln!(text, "  perf failed there: {failed}");
    }
    let (guest, other) = (String::from_utf8_lossy(guest), String::from_utf8_lossy(&second.stdout));
    let diff = TextDiff::from_lines(guest.as_ref(), other.as_ref());
    let shown = diff
        .unified_diff()
        .context_radius(1)
        .header("where it was recorded", &format!("guest {}", second.guest))
        .to_string();
    let mut lines = shown.lines();
    for line in lines.by_ref().take(LINES_MAX) {
        let _ = writeln!(text, "  {}", line);
    }
    let more = lines.count();
    if more > 0 {
        let _ = writeln!(text, "  ... and {more} more lines");
    }
    let _ = writeln!(
        text,
        "  where it was recorded: {capture}\n  in guest {}: {}\n  its data and console: {}",
        second.guest, second.command, second.dir
    );
}
