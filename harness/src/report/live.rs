//! A run's trials while it goes on: one line for each that has ended, in the order of the plan, and on a terminal a line
//! that says which run now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::human::headline;
use super::print::Output;
use super::text::ReportText;
use trial::{Outcome, Trial, TrialResult, Watcher};

/// Prints trials as they end.
pub struct Live<'o> {
    out: &'o Output,
    names: Vec<String>,
    /// Shows nothing where standard error is no terminal.
    bar: ProgressBar,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The first trial whose line is not printed yet.
    next: usize,
    /// The lines of later ones.
    waiting: BTreeMap<usize, ReportText>,
    running: BTreeSet<usize>,
    failed: usize,
}

impl<'o> Live<'o> {
    /// For the trials of a plan, none of which has begun.
    pub fn new(trials: &[Trial<'_>], out: &'o Output) -> Live<'o> {
        let bar = ProgressBar::new(trials.len() as u64);
        let style = ProgressStyle::with_template("{spinner} {pos} of {len}  {elapsed}  {wide_msg}");
        bar.set_style(style.expect("the template is valid"));
        bar.enable_steady_tick(Duration::from_millis(120));
        let names = trials.iter().map(ToString::to_string).collect();
        Live { out, names, bar, state: Mutex::default() }
    }

    /// All have ended that were begun. Lines that still wait for one that was not are printed now.
    pub fn finish(self) {
        self.bar.finish_and_clear();
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.waiting.values().for_each(|line| self.out.print(line));
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        while let Some(line) = state.ready() {
            self.bar.suspend(|| self.out.print(&line));
        }
        self.bar.set_message(state.describe(&self.names).as_str().to_owned());
    }
}

impl Watcher for Live<'_> {
    fn begun(&self, place: usize) {
        self.change(|state| {
            state.running.insert(place);
        });
    }

    fn ended(&self, place: usize, result: &TrialResult) {
        let mut line = headline(result);
        line.end_line();
        self.bar.inc(1);
        self.change(|state| {
            state.running.remove(&place);
            state.waiting.insert(place, line);
            let failed =
                matches!(result.outcome, Outcome::Fail(_) | Outcome::Xpass { .. } | Outcome::Error(_));
            state.failed += usize::from(failed);
        });
    }
}

impl State {
    /// The next line, when it is its turn.
    fn ready(&mut self) -> Option<ReportText> {
        let line = self.waiting.remove(&self.next)?;
        self.next += 1;
        Some(line)
    }

    /// What runs now.
    fn describe(&self, names: &[String]) -> ReportText {
        let running: Vec<&str> =
            self.running.iter().filter_map(|place| names.get(*place)).map(String::as_str).collect();
        let failed = if self.failed > 0 { format!("{} failed  ", self.failed) } else { String::new() };
        ReportText::of(format_args!("{failed}{}", running.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_in_the_order_of_the_plan() {
        let mut state = State::default();
        let mut printed = Vec::new();
        for place in [2, 0, 3, 1, 5] {
            state.waiting.insert(place, ReportText::of(format_args!("{place}")));
            while let Some(line) = state.ready() {
                printed.push(line.to_string());
            }
            printed.push("|".to_owned());
        }
        assert_eq!(printed.join(" "), "| 0 | | 1 2 3 | |");
        assert_eq!(state.waiting.len(), 1);
    }

    #[test]
    fn running_trials_and_failures_are_named() {
        let names = ["a@x", "b@x", "c@x"].map(str::to_owned);
        let mut state = State { running: [2, 0].into(), ..State::default() };
        assert_eq!(state.describe(&names).as_str(), "a@x, c@x");
        state.failed = 2;
        assert_eq!(state.describe(&names).as_str(), "2 failed  a@x, c@x");
    }
}
