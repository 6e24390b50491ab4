//! Files of the guest, read and written as a whole.

use std::time::Duration;

use super::{Port, Request, Session, SessionError, StepEnd, Work};

/// How many bytes of a file one request writes. The rest of its frame is for the path.
const PART: usize = 1_000_000;

impl<P: Port> Session<P> {
    /// Make a file hold these bytes, in as many requests as that takes; how the last of them ended, which is
    /// `Exited(0)` when all was written. A relative path starts from `cwd`. Each request has the timeout.
    ///
    /// # Errors
    /// As [`Session::request`].
    pub fn write_file(
        &mut self,
        cwd: &str,
        path: &str,
        content: &[u8],
        timeout: Duration,
    ) -> Result<StepEnd, SessionError> {
        let (first, rest) = content.split_at(content.len().min(PART));
        let path = || path.to_owned();
        let first = Work::Write { path: path(), content: first.to_vec() };
        let rest = rest.chunks(PART).map(|part| Work::Append { path: path(), content: part.to_vec() });
        for work in std::iter::once(first).chain(rest) {
            let answer =
                self.request(&Request { work, cwd: cwd.to_owned(), timeout, output_limit: 1 << 10 })?;
            if answer.end != StepEnd::Exited(0) {
                return Ok(answer.end);
            }
        }
        Ok(StepEnd::Exited(0))
    }
}
