//! Formats in which nothing varies: plain text, and an event's `trigger` file.

use super::row::FormatRow;

pub(super) const FORMAT: FormatRow =
    FormatRow { name: "plain", files: &[], tokens: None, violations: None, numbers_are_significant: true };

/// A trigger is printed as it was written, with its defaults and its state (`event_trigger_ops.print`,
/// kernel/trace/trace_events_trigger.c, Linux 7.2).
pub(super) const TRIGGER: FormatRow = FormatRow { name: "trigger", files: &["trigger"], ..FORMAT };
