//! Which trials are run.

use std::fmt;

use crate::case::Case;
use diagnostic::did_you_mean;
use guest::Guest;

/// One case on one guest.
#[derive(Debug, Clone, Copy)]
pub struct Trial<'p> {
    /// The case.
    pub case: &'p Case,
    /// The guest.
    pub guest: &'p Guest,
    /// Which time it is that it runs, from 1; 0 when it runs once.
    pub repetition: u32,
}

impl fmt::Display for Trial<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}@{}", self.case.id, self.guest.name))
    }
}

/// The trials of a run, in order.
#[derive(Debug, Clone)]
pub struct TrialPlan<'p> {
    /// The trials.
    pub trials: Vec<Trial<'p>>,
}

/// A choice that selects no trial.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTrial {
    /// A filter matches none.
    #[error("no trial matches `{filter}`{}", help.as_ref().map(|h| format!(": {h}")).unwrap_or_default())]
    Filter {
        /// The filter.
        filter: String,
        /// Advice.
        help: Option<String>,
    },
    /// There is none on the chosen guests.
    #[error("no case runs on {}: `goldtrace list` prints all cases with their guests", guests.join(", "))]
    Guests {
        /// The guests.
        guests: Vec<String>,
    },
}

impl<'p> TrialPlan<'p> {
    /// The trials of `cases` on `guests` whose name contains one of `filters`; all without filters.
    ///
    /// # Errors
    /// When there is nothing to run, or one of the filters selects nothing: a run that tests nothing must not look good.
    pub fn make(
        cases: &'p [Case],
        guests: &[&'p Guest],
        filters: &[String],
    ) -> Result<TrialPlan<'p>, NoTrial> {
        let all: Vec<Trial<'p>> = cases
            .iter()
            .flat_map(|case| {
                let guests = guests.iter().filter(|guest| case.runs_on(&guest.name));
                guests.map(move |guest| Trial { case, guest, repetition: 0 })
            })
            .collect();
        if all.is_empty() {
            let guests = guests.iter().map(|guest| guest.name.to_string()).collect();
            return Err(NoTrial::Guests { guests });
        }
        for filter in filters {
            if !all.iter().any(|trial| selects(filter, trial)) {
                let names: Vec<String> = all.iter().map(ToString::to_string).collect();
                let parts = names.iter().flat_map(|name| {
                    std::iter::once(name.as_str()).chain(name.split('@')).chain(name.split(['/', '@']))
                });
                return Err(NoTrial::Filter { filter: filter.clone(), help: did_you_mean(filter, parts) });
            }
        }
        let chosen =
            |trial: &Trial<'_>| filters.is_empty() || filters.iter().any(|filter| selects(filter, trial));
        Ok(TrialPlan { trials: all.into_iter().filter(chosen).collect() })
    }

    /// Every trial `times` times: first all of them once, then all again.
    pub fn repeat(self, times: u32) -> TrialPlan<'p> {
        let nth = |repetition| self.trials.iter().map(move |trial| Trial { repetition, ..*trial });
        TrialPlan { trials: (1..=times).flat_map(nth).collect() }
    }

    /// The guests that the plan needs, each once.
    pub fn guests(&self) -> Vec<&'p Guest> {
        let mut guests: Vec<&Guest> = Vec::new();
        for trial in &self.trials {
            if !guests.iter().any(|guest| guest.name == trial.guest.name) {
                guests.push(trial.guest);
            }
        }
        guests
    }
}

fn selects(filter: &str, trial: &Trial<'_>) -> bool {
    trial.to_string().contains(filter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{numbered_cases, real_guest};

    #[test]
    fn choice_that_selects_nothing_is_an_error() {
        let (cases, guest) = (numbered_cases(2), real_guest("x86_64"));
        let make = |cases: &[Case], filters: &[&str]| {
            let filters: Vec<String> = filters.iter().map(|filter| (*filter).to_owned()).collect();
            TrialPlan::make(cases, &[&guest], &filters)
                .map(|plan| plan.trials.len())
                .map_err(|e| e.to_string())
        };
        assert_eq!(make(&cases, &[]), Ok(2));
        assert_eq!(make(&cases, &["c1", "c0@"]), Ok(2));
        assert_eq!(make(&cases, &["c1", "c3"]), Err("no trial matches `c3`: did you mean `c0`?".to_owned()));
        let none = "no case runs on x86_64: `goldtrace list` prints all cases with their guests";
        assert_eq!(make(&[], &[]), Err(none.to_owned()));
    }
}
