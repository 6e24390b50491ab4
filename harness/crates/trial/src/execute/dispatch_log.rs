//! A step whose command records while we play the hypervisor.

use std::fs;
use std::time::Duration;

use camino::Utf8Path;

use super::abort::{Abort, DispatchLogError};
use super::problem::excerpt;
use dtl::{LogPlan, Symbols, Written};
use vm::dispatch_log::{RecordingControl, WriteError, Writer};
use vm::qemu::GuestControl;
use vm::{Answer, Pending, Request, Session, SessionError};

/// The guest, and the command that runs in it.
struct Recording<'s> {
    session: &'s mut Session,
    pending: Pending,
}

impl RecordingControl for Recording<'_> {
    type Error = SessionError;

    fn wait(&mut self, time: Duration) -> Result<bool, SessionError> {
        Ok(!self.session.wait(&mut self.pending, time)?)
    }

    fn has_printed(&self) -> bool {
        !self.pending.answer().stdout.is_empty()
    }

    fn quiesce(&mut self) -> Result<Option<u64>, SessionError> {
        self.session.quiesce_during(&mut self.pending)
    }

    fn waited_for_cpu(&self) -> Duration {
        self.session.machine().waited_for_cpu()
    }
}

/// Start the request's command, write the log as planned, end the command's standard input, and
/// gather the answer. `map` is the `System.map` of the guest's kernel.
///
/// # Errors
/// What kept the log from being written, or the command from its end.
pub(super) fn run_with_dispatch_log(
    session: &mut Session,
    control: &mut GuestControl,
    request: &Request,
    plan: &LogPlan,
    cpus: u64,
    map: &Utf8Path,
) -> Result<(Answer, Written), Abort> {
    let text =
        fs::read_to_string(map).map_err(|error| DispatchLogError::Symbols { path: map.to_owned(), error })?;
    let symbols = Symbols::parse(map, &text);
    let timebase = session.quiesce()?;
    let writer = Writer::new(control, &symbols, timebase).map_err(DispatchLogError::Write)?;
    let pending = session.start(request)?;
    let mut recording = Recording { session, pending };
    let written = writer.carry_out(plan, cpus, &mut recording);
    let Recording { session, pending } = recording;
    match written {
        Ok(written) => {
            session.close_input(&pending)?;
            Ok((session.finish(pending)?, written))
        }
        Err(error @ WriteError::Ended(_)) => {
            let answer = pending.answer();
            let stderr = excerpt(&answer.stderr);
            Err(DispatchLogError::Ended { error, end: answer.end.clone(), stderr }.into())
        }
        Err(error) => Err(DispatchLogError::Write(error).into()),
    }
}
