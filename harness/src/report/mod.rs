//! What people see. This and the commands are the only places that print.

mod colour;
mod common_splats;
mod decoded;
mod diagnostics;
mod diff;
mod equal;
mod escape;
#[cfg(test)]
mod hostile_tests;
mod human;
mod live;
mod print;
mod progress;
#[cfg(test)]
mod testing;
mod text;
mod timelines;

pub use colour::Colour;
pub use common_splats::common_splats;
pub use diagnostics::render as render_diagnostics;
pub use equal::groups;
pub use human::{RerunHint, Summary, describe, describe_group, flaky_lines, headline};
pub use live::Live;
pub use print::{Output, PrintError, note, pass_on, pass_on_to_stderr, print};
pub use progress::{Progress, Style};
pub use text::ReportText;
pub use timelines::draw_timelines;
