//! One trial from its plan to its outcome: prepare, execute, judge, and keep what came of it.

use std::io;

use vm::process::interrupt;

use crate::artefacts::RunDir;
use crate::execute::execute;
use crate::judge::{Outcome, TrialError, judge};
use crate::plan::Trial;
use crate::prepare::{PreparedGuest, PreparedGuests, Unprepared};
use crate::record::{ConsoleRecord, RanOn, TrialRecord};

/// Run a trial. What it boots is made now, unless it was made before.
pub fn run_trial(trial: &Trial<'_>, prepared: &PreparedGuests, dir: &RunDir) -> Outcome {
    if interrupt::happened() {
        return Outcome::Interrupted;
    }
    match prepared.trial(trial) {
        Ok(guest) => run_prepared(trial, &guest, dir),
        Err(Unprepared::Skip(why)) => end(trial, None, Outcome::Skip(why), ConsoleRecord::default(), dir),
        Err(Unprepared::Failed(error)) if error.is_interrupt() => Outcome::Interrupted,
        Err(Unprepared::Failed(error)) => {
            let error = TrialError::harness(format!("failed to prepare the guest: {error}"));
            end(trial, None, Outcome::Error(Box::new(error)), ConsoleRecord::default(), dir)
        }
    }
}

/// Run a trial in a guest that is prepared for it.
pub fn run_prepared(trial: &Trial<'_>, guest: &PreparedGuest, dir: &RunDir) -> Outcome {
    let done = match guest.obstacle(trial.case) {
        Some(why) => Ok((Outcome::Skip(why), ConsoleRecord::default())),
        None => executed(trial, guest, dir),
    };
    let (outcome, console) = done.unwrap_or_else(|error| (unkept(&error, dir), ConsoleRecord::default()));
    end(trial, Some(RanOn::of(guest)), outcome, console, dir)
}

fn executed(trial: &Trial<'_>, guest: &PreparedGuest, dir: &RunDir) -> io::Result<(Outcome, ConsoleRecord)> {
    let dir = dir.trial(trial)?;
    let transcript = execute(trial.case, guest, &dir)?;
    let outcome = judge(trial.case, &guest.facts(), &transcript, &dir);
    Ok((outcome, ConsoleRecord::of(&transcript)))
}

/// Keep the trial's record.
fn end(
    trial: &Trial<'_>,
    ran_on: Option<RanOn>,
    outcome: Outcome,
    console: ConsoleRecord,
    dir: &RunDir,
) -> Outcome {
    let record = TrialRecord::new(trial.case, ran_on, &outcome, console);
    match dir.trial(trial).and_then(|dir| record.write(&dir)) {
        Ok(()) => outcome,
        Err(error) => unkept(&error, dir),
    }
}

fn unkept(error: &io::Error, dir: &RunDir) -> Outcome {
    let what = format!("failed to keep the trial's results in `{}`: {error}", dir.path());
    Outcome::Error(Box::new(TrialError::harness(what)))
}
