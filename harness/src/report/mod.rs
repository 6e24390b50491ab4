//! What people see. This and the commands are the only places that print.

mod colour;
mod decoded;
mod diagnostics;
mod diff;
mod human;
mod progress;
mod timelines;

pub use colour::Colour;
pub use diagnostics::render as render_diagnostics;
pub use human::{RerunHint, Summary, describe, headline};
pub use progress::{Progress, Style};
pub use timelines::draw_timelines;
