//! One trial from its plan to its outcome: prepare, execute, judge, and keep what came of it.

use std::io;
use std::time::Instant;

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
    let start = Instant::now();
    match prepared.trial(trial) {
        Ok(guest) => run_prepared(trial, &guest, dir),
        Err(Unprepared::Skip(why)) => Ending::new(Outcome::Skip(why)).keep(trial, start, dir),
        Err(Unprepared::Failed(error)) if error.is_interrupt() => Outcome::Interrupted,
        Err(Unprepared::Failed(error)) => {
            let error = TrialError::harness(format!("failed to prepare the guest: {error}"));
            Ending::new(Outcome::Error(Box::new(error))).keep(trial, start, dir)
        }
    }
}

/// Run a trial in a guest that is prepared for it.
pub fn run_prepared(trial: &Trial<'_>, guest: &PreparedGuest, dir: &RunDir) -> Outcome {
    let start = Instant::now();
    let done = match guest.obstacle(trial.case) {
        Some(why) => Ok(Ending::new(Outcome::Skip(why))),
        None => executed(trial, guest, dir),
    };
    let ending = done.unwrap_or_else(|error| Ending::new(unkept(&error, dir)));
    Ending { ran_on: Some(RanOn::of(guest)), ..ending }.keep(trial, start, dir)
}

fn executed(trial: &Trial<'_>, guest: &PreparedGuest, dir: &RunDir) -> io::Result<Ending> {
    let dir = dir.trial(trial)?;
    let transcript = execute(trial.case, guest, &dir)?;
    let outcome = judge(trial.case, &guest.facts(), &transcript, &dir);
    Ok(Ending { console: ConsoleRecord::of(&transcript), ..Ending::new(outcome) })
}

/// How a trial ended.
struct Ending {
    outcome: Outcome,
    ran_on: Option<RanOn>,
    console: ConsoleRecord,
}

impl Ending {
    /// That of a trial for which nothing ran.
    fn new(outcome: Outcome) -> Ending {
        Ending { outcome, ran_on: None, console: ConsoleRecord::default() }
    }

    /// Keep the record of a trial that began at `start`.
    fn keep(self, trial: &Trial<'_>, start: Instant, dir: &RunDir) -> Outcome {
        let Ending { outcome, ran_on, console } = self;
        let record = TrialRecord {
            elapsed: Some(start.elapsed()),
            ..TrialRecord::new(trial.case, ran_on, &outcome, console)
        };
        match dir.trial(trial).and_then(|dir| record.write(&dir)) {
            Ok(()) => outcome,
            Err(error) => unkept(&error, dir),
        }
    }
}

fn unkept(error: &io::Error, dir: &RunDir) -> Outcome {
    let what = format!("failed to keep the trial's results in `{}`: {error}", dir.path());
    Outcome::Error(Box::new(TrialError::harness(what)))
}
