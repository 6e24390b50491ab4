//! All trials of a plan, several at once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::artefacts::RunDir;
use crate::execute::execute;
use crate::judge::judge;
use crate::judge::{Outcome, TrialError};
use crate::plan::{Trial, TrialPlan};
use crate::prepare::PreparedGuests;
use crate::record::TrialRecord;
use vm::process::interrupt;

/// A trial that is over.
#[derive(Debug, Clone)]
pub struct TrialResult {
    /// Its name.
    pub name: String,
    /// What came of it.
    pub outcome: Outcome,
    /// How long it took.
    pub elapsed: Duration,
}

/// Run every trial of the plan, `jobs` at once, calling `finished` with each as it ends. The
/// results come back in the plan's order.
pub fn run_all(
    plan: &TrialPlan<'_>,
    prepared: &PreparedGuests,
    dir: &RunDir,
    jobs: usize,
    finished: impl Fn(&Trial<'_>, &TrialResult) + Sync,
) -> Vec<TrialResult> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<TrialResult>>> = plan.trials.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, plan.trials.len().max(1)) {
            scope.spawn(|| {
                while let Some(at) =
                    Some(next.fetch_add(1, Ordering::SeqCst)).filter(|at| *at < results.len())
                {
                    let done = run_one(&plan.trials[at], prepared, dir);
                    finished(&plan.trials[at], &done);
                    *results[at].lock().expect("no panic while held") = Some(done);
                }
            });
        }
    });
    results
        .into_iter()
        .map(|result| result.into_inner().expect("no panic while held").expect("every trial was taken"))
        .collect()
}

/// Run one trial on the calling thread.
pub fn run_one(trial: &Trial<'_>, prepared: &PreparedGuests, dir: &RunDir) -> TrialResult {
    let start = Instant::now();
    let outcome = outcome(trial, prepared, dir);
    TrialResult { name: trial.to_string(), outcome, elapsed: start.elapsed() }
}

fn outcome(trial: &Trial<'_>, prepared: &PreparedGuests, dir: &RunDir) -> Outcome {
    if interrupt::happened() {
        return Outcome::Interrupted;
    }
    let done = dir.trial(trial).and_then(|dir| {
        let ready = prepared.guest(&trial.guest.name);
        if let Some(why) = prepared.obstacle(trial) {
            let outcome = Outcome::Skip(why);
            TrialRecord::new(trial.case, ready, &outcome).write(&dir)?;
            return Ok(outcome);
        }
        let transcript = execute(trial.case, ready, prepared.host_perf(), &dir)?;
        let outcome = judge(trial.case, &ready.facts(), &transcript, &dir);
        TrialRecord::new(trial.case, ready, &outcome).write(&dir)?;
        Ok(outcome)
    });
    done.unwrap_or_else(|error| {
        Outcome::Error(Box::new(TrialError {
            what: format!("failed to keep the trial's results: {error}"),
            step: None,
            command: String::new(),
            stderr: String::new(),
            console: String::new(),
            dir: dir.path().to_owned(),
        }))
    })
}

/// How many trials run at once when nobody says: half as many again as there are CPUs, as some wait for
/// time to pass in their guests.
pub fn default_jobs() -> usize {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    cpus + cpus.div_ceil(2)
}
