//! All trials of a plan, several at once.
//!
//! Guests take CPUs and memory: as many run at once as the host has both for.
//!
//! Every trial has a result, in the plan's order: a panic in one is that trial's error, and the others go on.
//! How a trial is run is the caller's; this module knows no guest.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use guest::Guest;

use crate::judge::{Outcome, TrialError};
use crate::plan::Trial;

/// What a QEMU takes besides its guest's memory, in MiB: translated code, most of all.
const QEMU_MIB: u64 = 128;
/// How many trials run at once for each CPU (harness/README.md has what other numbers cost).
const JOBS_PER_CPU: usize = 3;

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

/// Watches trials while they run, from several threads. Both are given the trial's place in the plan.
pub trait Watcher: Sync {
    /// A trial begins.
    fn begun(&self, _place: usize) {}
    /// One that was begun has ended.
    fn ended(&self, _place: usize, _result: &TrialResult) {}
}

/// Nobody watches.
impl Watcher for () {}

/// Run every trial, `jobs` at once, begun in `order`: the places of all trials in `trials`, each once. The results come
/// back in the order of `trials`. After the first that was interrupted none is begun, and all are interrupted.
pub fn run_all<'p>(
    trials: &[Trial<'p>],
    order: &[usize],
    jobs: usize,
    run: impl Fn(&Trial<'p>) -> Outcome + Sync,
    watcher: &impl Watcher,
) -> Vec<TrialResult> {
    let next = AtomicUsize::new(0);
    let interrupted = AtomicBool::new(false);
    let results: Vec<Mutex<Option<TrialResult>>> = trials.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, trials.len().max(1)) {
            scope.spawn(|| {
                while let Some(place) = order.get(next.fetch_add(1, Ordering::SeqCst)).copied() {
                    let (Some(trial), Some(slot)) = (trials.get(place), results.get(place)) else { continue };
                    let result = if interrupted.load(Ordering::SeqCst) {
                        run_one(trial, || Outcome::Interrupted)
                    } else {
                        watcher.begun(place);
                        let result = run_one(trial, || run(trial));
                        if matches!(result.outcome, Outcome::Interrupted) {
                            interrupted.store(true, Ordering::SeqCst);
                        }
                        watcher.ended(place, &result);
                        result
                    };
                    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
                }
            });
        }
    });
    let result = |(trial, slot): (&Trial<'p>, Mutex<Option<TrialResult>>)| {
        let never_begun = || Outcome::Error(Box::new(TrialError::harness("it was never begun".to_owned())));
        let result = slot.into_inner().unwrap_or_else(PoisonError::into_inner);
        result.unwrap_or_else(|| run_one(trial, never_begun))
    };
    trials.iter().zip(results).map(result).collect()
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

/// How many trials run at once by default: three for each CPU, as many wait for time to pass in their guests, but no
/// more than the host has memory for, and always one.
pub fn default_jobs(guests: &[Guest]) -> usize {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = fs::read_to_string("/proc/meminfo").ok().and_then(|text| available_mib(&text));
    jobs(cpus, memory, guests)
}

fn jobs(cpus: usize, memory_mib: Option<u64>, guests: &[Guest]) -> usize {
    // A trial that decodes has a second guest.
    let most = guests.iter().map(|guest| guest.memory_mib + QEMU_MIB).max().unwrap_or(0).max(1) * 2;
    let room = memory_mib.map_or(usize::MAX, |mib| usize::try_from(mib / most).unwrap_or(usize::MAX));
    (cpus * JOBS_PER_CPU).min(room).max(1)
}

/// The memory that can be had without swapping, in MiB, as /proc/meminfo has it: `MemAvailable`, in kB that are KiB
/// (Documentation/filesystems/proc.rst).
fn available_mib(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{numbered_cases, real_guest};

    /// Which trials it saw begin and end.
    #[derive(Default)]
    struct Seen {
        begun: Mutex<Vec<usize>>,
        ended: Mutex<Vec<usize>>,
    }

    impl Watcher for Seen {
        fn begun(&self, place: usize) {
            self.begun.lock().expect("no panic").push(place);
        }

        fn ended(&self, place: usize, result: &TrialResult) {
            assert_eq!(result.name, format!("c{place}@x86_64"));
            self.ended.lock().expect("no panic").push(place);
        }
    }

    /// How each of ten trials ends, by its number. The last is begun first.
    fn outcomes(jobs: usize, run: impl Fn(usize) -> Outcome + Sync) -> Vec<TrialResult> {
        let (cases, guest) = (numbered_cases(10), real_guest("x86_64"));
        let trials: Vec<Trial<'_>> =
            cases.iter().map(|case| Trial { case, guest: &guest, repetition: 0 }).collect();
        let (order, ran, seen): (Vec<usize>, _, _) =
            ((0..10).rev().collect(), Mutex::new(Vec::new()), Seen::default());
        let number = |trial: &Trial<'_>| trial.case.id.as_str()[1..].parse().expect("a number");
        let results = run_all(
            &trials,
            &order,
            jobs,
            |trial| {
                ran.lock().expect("no panic").push(number(trial));
                run(number(trial))
            },
            &seen,
        );
        // The watcher sees each that ran, and no other.
        let [mut ran, mut begun, mut ended] =
            [ran, seen.begun, seen.ended].map(|places| places.into_inner().expect("no panic"));
        if jobs == 1 {
            assert_eq!(ran, order[..ran.len()]);
        }
        for places in [&mut ran, &mut begun, &mut ended] {
            places.sort_unstable();
        }
        assert!(begun == ran && ended == ran, "{ran:?} {begun:?} {ended:?}");
        assert_eq!(results.len(), trials.len());
        results
    }

    #[test]
    fn as_many_trials_run_at_once_as_there_are_cpus_and_memory_for() {
        let guests = [real_guest("x86_64"), real_guest("ppc64le")];
        let each = 2 * (256 + QEMU_MIB);
        for (cpus, memory, expected) in [
            (2, None, 6),
            (2, Some(100_000), 6),
            (2, Some(3 * each), 3),
            (2, Some(3 * each - 1), 2),
            (1, Some(0), 1),
            (64, Some(100_000), 130),
            (64, None, 192),
        ] {
            assert_eq!(jobs(cpus, memory, &guests), expected, "{cpus} {memory:?}");
        }
        let meminfo = "MemTotal:       24555000 kB\nMemAvailable:   12345678 kB\nBuffers:  1 kB\n";
        assert_eq!(available_mib(meminfo), Some(12056));
        assert_eq!(available_mib("MemTotal: 1 kB\n"), None);
        assert!(available_mib(&fs::read_to_string("/proc/meminfo").expect("Linux")).is_some());
    }

    fn skip(number: usize) -> Outcome {
        Outcome::Skip(number.to_string())
    }

    #[test]
    fn results_are_in_the_order_of_the_plan() {
        for jobs in [0, 1, 3, 64] {
            // The first trials take longest, and are begun last.
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
    fn trial_without_a_place_in_the_order_is_an_error() {
        let (cases, guest) = (numbered_cases(2), real_guest("x86_64"));
        let trials: Vec<Trial<'_>> =
            cases.iter().map(|case| Trial { case, guest: &guest, repetition: 0 }).collect();
        let results = run_all(&trials, &[1, 2], 1, |_| Outcome::Pass, &());
        let outcomes: Vec<&Outcome> = results.iter().map(|result| &result.outcome).collect();
        assert!(matches!(outcomes[..], [Outcome::Error(_), Outcome::Pass]), "{outcomes:?}");
    }

    #[test]
    fn no_trial_is_begun_after_an_interrupt() {
        let begun = AtomicUsize::new(0);
        let results = outcomes(1, |number| {
            begun.fetch_add(1, Ordering::SeqCst);
            if number == 7 { Outcome::Interrupted } else { skip(number) }
        });
        assert_eq!(begun.into_inner(), 3);
        let interrupted = |result: &&TrialResult| matches!(result.outcome, Outcome::Interrupted);
        assert_eq!(results.iter().filter(interrupted).count(), 8);
    }
}
