//! All trials of a plan, several at once.
//!
//! Every trial has a result, in the plan's order: a panic in one is that trial's error, and the others go on.
//! How a trial is run is the caller's; this module knows no guest.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::judge::{Outcome, TrialError};
use crate::plan::Trial;

/// A trial that is over.
#[derive(Debug, Clone)]
pub struct TrialResult {
    /// Its name.
    pub name: String,
    /// Which time it was that it ran, from 1; 0 when it ran once.
    pub repetition: u32,
    /// What came of it.
    pub outcome: Outcome,
    /// How long it took.
    pub elapsed: Duration,
}

/// Run every trial, `jobs` at once, calling `finished` with each that was begun as it ends. The results come back
/// in the order of `trials`. After the first that was interrupted none is begun, and all are
/// interrupted.
pub fn run_all<'p>(
    trials: &[Trial<'p>],
    jobs: usize,
    run: impl Fn(&Trial<'p>) -> Outcome + Sync,
    finished: impl Fn(&TrialResult) + Sync,
) -> Vec<TrialResult> {
    let next = AtomicUsize::new(0);
    let interrupted = AtomicBool::new(false);
    let results: Vec<Mutex<Option<TrialResult>>> = trials.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, trials.len().max(1)) {
            scope.spawn(|| {
                while let Some((trial, slot)) = {
                    let at = next.fetch_add(1, Ordering::SeqCst);
                    trials.get(at).zip(results.get(at))
                } {
                    let result = if interrupted.load(Ordering::SeqCst) {
                        run_one(trial, || Outcome::Interrupted)
                    } else {
                        let result = run_one(trial, || run(trial));
                        if matches!(result.outcome, Outcome::Interrupted) {
                            interrupted.store(true, Ordering::SeqCst);
                        }
                        finished(&result);
                        result
                    };
                    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
                }
            });
        }
    });
    // A thread ends only when no trial is left, so that each has a result.
    results.into_iter().filter_map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

/// Run one trial on the calling thread. A panic of `run` is the trial's error.
pub fn run_one(trial: &Trial<'_>, run: impl FnOnce() -> Outcome) -> TrialResult {
    let start = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| {
        let words = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let words = words.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        Outcome::Error(Box::new(TrialError::harness(format!("the harness panicked: {words}"))))
    });
    TrialResult { name: trial.to_string(), repetition: trial.repetition, outcome, elapsed: start.elapsed() }
}

/// How many trials run at once by default: half as many again as there are CPUs, as some wait for
/// time to pass in their guests.
pub fn default_jobs() -> usize {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    cpus + cpus.div_ceil(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{numbered_cases, real_guest};

    /// How each of ten trials ends, by its number.
    fn outcomes(jobs: usize, run: impl Fn(usize) -> Outcome + Sync) -> Vec<TrialResult> {
        let (cases, guest) = (numbered_cases(10), real_guest("x86_64"));
        let trials: Vec<Trial<'_>> =
            cases.iter().map(|case| Trial { case, guest: &guest, repetition: 0 }).collect();
        let (begun, finished) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let number = |trial: &Trial<'_>| trial.case.id.as_str()[1..].parse().expect("a number");
        let results = run_all(
            &trials,
            jobs,
            |trial| {
                begun.lock().expect("no panic").push(trial.to_string());
                run(number(trial))
            },
            |result| finished.lock().expect("no panic").push(result.name.clone()),
        );
        // The user hears of each that was begun, and of no other.
        let [begun, finished] = [begun, finished].map(|names| {
            let mut names = names.into_inner().expect("no panic");
            names.sort();
            names
        });
        assert_eq!(finished, begun);
        assert_eq!(results.len(), trials.len());
        results
    }

    fn skip(number: usize) -> Outcome {
        Outcome::Skip(number.to_string())
    }

    #[test]
    fn results_are_in_the_order_of_the_plan() {
        for jobs in [0, 1, 3, 64] {
            // The first trials take longest.
            let results = outcomes(jobs, |number| {
                std::thread::sleep(Duration::from_millis(20 - 2 * number as u64));
                skip(number)
            });
            let numbers: Vec<String> = results
                .iter()
                .map(|result| match &result.outcome {
                    Outcome::Skip(number) => number.clone(),
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(numbers, (0..10).map(|number| number.to_string()).collect::<Vec<_>>());
            assert_eq!(results[3].name, "c3@x86_64");
        }
    }

    #[test]
    fn as_many_trials_run_at_once_as_there_are_jobs() {
        let (running, most, begun) = (AtomicUsize::new(0), AtomicUsize::new(0), Instant::now());
        outcomes(3, |number| {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            // The first ones wait for each other, however long a busy host takes to start a thread.
            while most.load(Ordering::SeqCst) < 3 && begun.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(1));
            }
            running.fetch_sub(1, Ordering::SeqCst);
            skip(number)
        });
        assert_eq!(most.into_inner(), 3);
    }

    #[test]
    fn panic_in_a_trial_is_its_error_and_the_others_go_on() {
        let results = outcomes(2, |number| match number {
            4 => panic!("no such {number}"),
            number => skip(number),
        });
        for (at, result) in results.iter().enumerate() {
            match &result.outcome {
                Outcome::Skip(_) => assert_ne!(at, 4),
                Outcome::Error(error) => {
                    assert_eq!((at, error.what.as_str()), (4, "the harness panicked: no such 4"));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn no_trial_is_begun_after_an_interrupt() {
        let begun = AtomicUsize::new(0);
        let results = outcomes(1, |number| {
            begun.fetch_add(1, Ordering::SeqCst);
            if number == 2 { Outcome::Interrupted } else { skip(number) }
        });
        assert_eq!(begun.into_inner(), 3);
        let interrupted = |result: &&TrialResult| matches!(result.outcome, Outcome::Interrupted);
        assert_eq!(results.iter().filter(interrupted).count(), 8);
    }
}
