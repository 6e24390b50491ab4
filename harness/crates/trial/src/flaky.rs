//! Trials that came to different outcomes in one run.
//!
//! Nothing is ever run again until it passes: a trial whose outcome depends on the time of day says nothing of the kernel
//! that one of its outcomes would, and is a failure.

use std::collections::BTreeMap;

use crate::record::Verdict;
use crate::schedule::TrialResult;

/// A trial that came to different outcomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaky {
    /// Its name.
    pub name: String,
    /// How often it came to each of its outcomes.
    pub outcomes: BTreeMap<Verdict, usize>,
}

/// The trials that came to different outcomes, in the order of their first results. What an interrupt has cut short
/// counts for nothing.
pub fn flaky<'r>(results: impl IntoIterator<Item = &'r TrialResult>) -> Vec<Flaky> {
    let mut all: Vec<Flaky> = Vec::new();
    for TrialResult { name, outcome, .. } in results {
        let verdict = Verdict::of(outcome);
        if verdict == Verdict::Interrupted {
            continue;
        }
        let at = all.iter().position(|known| known.name == *name).unwrap_or_else(|| {
            all.push(Flaky { name: name.clone(), outcomes: BTreeMap::new() });
            all.len() - 1
        });
        *all[at].outcomes.entry(verdict).or_default() += 1;
    }
    all.retain(|trial| trial.outcomes.len() > 1);
    all
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::judge::Outcome;

    #[test]
    fn trial_of_two_outcomes_is_flaky() {
        let result = |name: &str, outcome| TrialResult {
            name: name.to_owned(),
            repetition: 1,
            outcome,
            elapsed: Duration::ZERO,
        };
        let skip = || Outcome::Skip("s".to_owned());
        let results = [
            result("a@x", Outcome::Pass),
            result("b@x", skip()),
            result("c@x", Outcome::Interrupted),
            result("a@x", Outcome::Fail(Vec::new())),
            result("b@x", skip()),
            result("c@x", Outcome::Pass),
            result("a@x", Outcome::Pass),
        ];
        let outcomes = BTreeMap::from([(Verdict::Pass, 2), (Verdict::Fail, 1)]);
        assert_eq!(flaky(&results), [Flaky { name: "a@x".to_owned(), outcomes }]);
        assert_eq!(flaky(&results[..3]), []);
    }
}
