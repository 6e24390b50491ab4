//! In which order the trials of a plan are begun.
//!
//! The longest come first, so that no CPU waits at the end of a run for one trial that was begun last. How long a trial
//! takes is known from earlier runs; one that never ran is taken for a long one.

use std::cmp::Reverse;
use std::time::Duration;

use crate::artefacts::RunDir;
use crate::case::{Action, Step};
use crate::plan::Trial;
use crate::record::TrialRecord;

/// The places of the trials in the plan, in the order in which they are to be begun: repetition by repetition, the longest
/// first. `earlier` are the runs to look in, the newest first. What cannot be read there is as good as nothing.
pub fn longest_first(trials: &[Trial<'_>], earlier: &[RunDir]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..trials.len()).collect();
    places.sort_by_cached_key(|at| {
        let trial = &trials[*at];
        (trial.repetition, Reverse(time(trial, earlier)))
    });
    places
}

/// How long a trial took when it ran last. Of two that never ran, the one that decodes more takes longer.
fn time(trial: &Trial<'_>, earlier: &[RunDir]) -> (bool, usize, Duration) {
    let record = |run: &RunDir| {
        let dir = run.trial_dir(&trial.case.id, &trial.guest.name);
        TrialRecord::read(&dir).ok().flatten().and_then(|record| record.elapsed)
    };
    match earlier.iter().find_map(record) {
        Some(elapsed) => (false, 0, elapsed),
        None => {
            let decodes = |step: &&Step| matches!(step.action, Action::Decode { .. });
            (true, trial.case.steps.iter().filter(decodes).count(), Duration::ZERO)
        }
    }
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::*;
    use crate::judge::Outcome;
    use crate::record::ConsoleRecord;
    use crate::testing::{numbered_cases, real_guest, step};

    #[test]
    fn longest_of_earlier_runs_is_begun_first() {
        let temporary = tempfile::tempdir().expect("a directory");
        let root = Utf8Path::from_path(temporary.path()).expect("UTF-8");
        let (mut cases, guest) = (numbered_cases(5), real_guest("x86_64"));
        let decode = Action::Decode { arguments: Vec::new(), data: "perf.data".to_owned() };
        cases[4].steps = vec![Step { action: decode, ..step(1, "a", "") }];
        let trials: Vec<Trial<'_>> = (1..=2)
            .flat_map(|repetition| cases.iter().map(move |case| (case, repetition)))
            .map(|(case, repetition)| Trial { case, guest: &guest, repetition })
            .collect();
        let run = |name: &str, times: &[(usize, u64)]| {
            let run = RunDir::create_in(root, name).expect("a run");
            for (case, seconds) in times {
                let record = TrialRecord {
                    elapsed: Some(Duration::from_secs(*seconds)),
                    ..TrialRecord::new(&cases[*case], None, &Outcome::Pass, ConsoleRecord::default())
                };
                record.write(&run.trial(&trials[*case]).expect("made")).expect("written");
            }
            run
        };
        // The newest run counts; an older one where that has not run the trial.
        let earlier = [run("run-new", &[(0, 1), (1, 3)]), run("run-old", &[(0, 9), (2, 2)])];
        assert_eq!(longest_first(&trials, &earlier), [4, 3, 1, 2, 0, 9, 8, 6, 7, 5]);
        assert_eq!(longest_first(&trials, &[]), [4, 0, 1, 2, 3, 9, 5, 6, 7, 8]);
    }
}
