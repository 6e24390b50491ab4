//! Sizes that more than one part of the picture works with, in pixels.

/// Width of the time axis.
pub(super) const WIDTH: u32 = 1200;
/// Width and height that a dispatch's head takes.
pub(super) const HEAD: u32 = 13;
/// Width of a counting head.
pub(super) const GROUP: u32 = 24;
