//! A picture of dispatches and preempts: an SVG with a lane for each CPU.
//!
//! From records to [lanes](lane) (what each CPU did when), to [windows](window) (which stretch of
//! time goes into which row), to a [layout] in pixels, to a [sheet], whose elements are [SVG](svg).
//! Only the last knows XML, and nothing here reads or writes files.

mod axis;
mod label;
mod lane;
mod layout;
mod legend;
mod palette;
mod sheet;
mod size;
mod svg;
mod window;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod testing;

use formats::dispatch_log::DispatchSample;

/// How fast the timebase of a POWER machine runs, in Hz (PAPR; QEMU's pseries too).
pub const FREQUENCY: u64 = 512_000_000;

/// The picture as the text of an SVG file that stands alone: no script, no font, no link.
///
/// `title` stands at its head, and `frequency` is the timebase's, in Hz (0 counts as 1): waits are
/// in its ticks. Without records there is only the head.
pub fn render(records: &[DispatchSample], title: &str, frequency: u64) -> String {
    let lanes = lane::lanes(records, frequency.max(1));
    let windows = window::windows(&lanes);
    let rows = layout::rows(&lanes, &windows);
    sheet::write(title, &lanes, &rows, &legend::Legend::of(&lanes))
}
