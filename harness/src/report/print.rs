//! The one place that prints: standard output, which may be closed or full, and standard error.

use std::io::{self, Write};
use std::sync::OnceLock;

use super::text::ReportText;

/// Standard output could not be written.
#[derive(Debug, thiserror::Error)]
#[error("failed to write to standard output: {0}")]
pub struct PrintError(#[from] io::Error);

/// Print on standard output, in colour where it shows colours.
///
/// # Errors
/// When nobody reads it any more, or it has no room.
pub fn print(text: &ReportText) -> Result<(), PrintError> {
    write(&mut anstream::stdout().lock(), text).map_err(PrintError)
}

/// Print on standard error. Where that cannot be written, there is nobody to report it to.
pub fn note(text: &ReportText) {
    let _ = write(&mut anstream::stderr().lock(), text);
}

/// Pass bytes on to standard output as they are.
///
/// # Errors
/// As [`print`].
pub fn pass_on(bytes: &[u8]) -> Result<(), PrintError> {
    let mut out = io::stdout().lock();
    Ok(out.write_all(bytes).and_then(|()| out.flush())?)
}

/// The same to standard error.
///
/// # Errors
/// When nobody reads it any more, or it has no room.
pub fn pass_on_to_stderr(bytes: &[u8]) -> io::Result<()> {
    io::stderr().lock().write_all(bytes)
}

/// Standard output of a command that goes on to its end when that cannot be written.
#[derive(Debug, Default)]
pub struct Output {
    failed: OnceLock<PrintError>,
}

impl Output {
    /// Print, unless that has failed before.
    pub fn print(&self, text: &ReportText) {
        if self.failed.get().is_none() {
            if let Err(error) = print(text) {
                // Another thread's error is as good.
                let _ = self.failed.set(error);
            }
        }
    }

    /// Whether everything was printed.
    ///
    /// # Errors
    /// Why not.
    pub fn finish(self) -> Result<(), PrintError> {
        self.failed.into_inner().map_or(Ok(()), Err)
    }
}

fn write(to: &mut impl Write, text: &ReportText) -> io::Result<()> {
    to.write_all(text.as_str().as_bytes())?;
    to.flush()
}
