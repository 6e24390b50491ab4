//! Our terminal, while a guest's shell has it.

use std::io;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use vm::TerminalSize;

/// The size of a terminal that does not say its own.
const UNKNOWN: TerminalSize = TerminalSize { rows: 24, columns: 80 };

/// Our terminal, which passes every key on until this is dropped.
#[derive(Debug)]
pub(in crate::cli) struct Terminal {
    before: Termios,
    size: TerminalSize,
}

impl Terminal {
    /// Take standard input's terminal.
    ///
    /// # Errors
    /// When it is none, or refuses.
    pub(in crate::cli) fn take() -> io::Result<Terminal> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        Ok(Terminal { before, size: size() })
    }

    /// Its size.
    pub(in crate::cli) fn size(&self) -> TerminalSize {
        self.size
    }

    /// Its size when that is another one than before.
    pub(super) fn new_size(&mut self) -> Option<TerminalSize> {
        let before = std::mem::replace(&mut self.size, size());
        (self.size != before).then_some(self.size)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

fn size() -> TerminalSize {
    let size = tcgetwinsize(io::stdin()).map(|size| TerminalSize { rows: size.ws_row, columns: size.ws_col });
    size.ok().filter(|size| size.rows > 0 && size.columns > 0).unwrap_or(UNKNOWN)
}
