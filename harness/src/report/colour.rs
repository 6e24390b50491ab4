//! Whether text is coloured, and in which colours.
//!
//! The caller decides: text for libtest or a file is printed as it is, without anstream to drop the colours on the way.

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

/// Whether text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// With escape sequences.
    Yes,
    /// Plain: what colour would show is shown by characters where that can be.
    No,
}

impl Colour {
    /// What suits a stream: its kind and the environment (`NO_COLOR`, `CLICOLOR_FORCE`) decide.
    pub fn of<S: RawStream>(stream: &S) -> Colour {
        match AutoStream::choice(stream) {
            ColorChoice::Never => Colour::No,
            _ => Colour::Yes,
        }
    }
}

/// The styles of a failed comparison. A plain style prints nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Palette {
    /// The line that says where a failure is.
    pub(super) title: Style,
    /// What is there for orientation only.
    pub(super) faint: Style,
    /// A line that only the golden has.
    pub(super) golden: Style,
    /// The words in it that differ.
    pub(super) golden_word: Style,
    /// A line that only the capture has.
    pub(super) capture: Style,
    /// The words in it that differ.
    pub(super) capture_word: Style,
}

impl Palette {
    pub(super) fn new(colour: Colour) -> Palette {
        if colour == Colour::No {
            return Palette::default();
        }
        let (golden, capture) = (AnsiColor::Red.on_default(), AnsiColor::Green.on_default());
        Palette {
            title: Style::new().bold(),
            faint: Style::new().dimmed(),
            golden,
            // Inverse video shows space too.
            golden_word: golden.bold().invert(),
            capture,
            capture_word: capture.bold().invert(),
        }
    }
}
