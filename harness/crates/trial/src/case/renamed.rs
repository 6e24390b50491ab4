//! Words that case files used to have, each with what to write in its place.
//!
//! A file with an old word is an error that names the new one, so that no old case is read as
//! something else.

/// Keys of a case.
pub(super) const CASE: [(&str, &str); 3] = [
    ("directory", "`cwd: DIRECTORY`"),
    ("limit", "`timeout: TIME`"),
    ("expect", "`xfail:` with an entry `- splat: KIND`"),
];

/// Keys of a step.
pub(super) const STEP: [(&str, &str); 2] = [("status", "`exit_status: N`"), ("limit", "`timeout: TIME`")];

/// Keys of an entry of `xfail:`.
pub(super) const XFAIL: [(&str, &str); 2] = [("complaint", "`splat: KIND`"), ("when", "`if: CONDITION`")];

/// Keys of an entry of a dispatch trace log.
pub(super) const LOG_ENTRY: [(&str, &str); 1] = [("processor", "`processor_id: N`")];

/// Actions on a dispatch trace log.
pub(super) const LOG_ACTION: [(&str, &str); 3] =
    [("poll", "`wait: drained`"), ("output", "`wait: output`"), ("end unread", "`leave_unread: true`")];
