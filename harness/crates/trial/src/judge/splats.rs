//! Which splats of a trial are the ones that its case expects.
//!
//! An expected splat is one of that kind, in that function, in that step, and the same report again. Every other one is
//! the kernel's failure, whatever is expected besides.

use std::slice;

use vm::{Splat, SplatKind};

use crate::case::{ExpectedAt, ExpectedSplat};
use crate::execute::StepRecord;

/// The splats of a trial, beside those that its case expects.
#[derive(Debug, Default)]
pub(super) struct SortedSplats<'t> {
    /// Expected ones that came, each once.
    pub(super) seen: Vec<&'t ExpectedSplat>,
    /// Expected ones whose step was begun and that did not come.
    pub(super) missing: Vec<&'t ExpectedSplat>,
    /// Splats that the case does not expect.
    pub(super) unexpected: Vec<&'t Splat>,
    /// One of those that were expected was the kernel's end.
    pub(super) died_as_expected: bool,
}

impl SortedSplats<'_> {
    /// The kinds of the expected splats that came.
    pub(super) fn kinds(&self) -> Vec<SplatKind> {
        self.seen.iter().map(|expected| expected.kind).collect()
    }
}

/// The step in which a splat came, as an index of the case's steps; their number for one that came after the last one;
/// `None` for one of the boot. `steps` are those that were answered.
///
/// The console shows the end of each request to the agent, in order with the kernel's messages.
pub(crate) fn step_of(splat: &Splat, steps: &[StepRecord]) -> Option<usize> {
    // A step that looks at a module does nothing in the guest.
    let first_from = |first: usize| {
        let more = steps.iter().enumerate().skip(first);
        more.filter(|(_, step)| !step.requests.is_empty()).map(|(at, _)| at).next().unwrap_or(steps.len())
    };
    match splat.after? {
        // The agent's greeting.
        0 => Some(first_from(0)),
        ended => {
            let step = steps.iter().position(|step| step.requests.contains(&ended))?;
            let has_ended = steps[step].requests.last() == Some(&ended);
            Some(if has_ended { first_from(step + 1) } else { step })
        }
    }
}

/// Sort the splats of a trial. `steps` are those that were answered; `last_step` is the last step that was begun, as an
/// index of the case's steps; `None` when none was.
pub(super) fn sort<'t>(
    expected: &[&'t ExpectedSplat],
    splats: &'t [Splat],
    steps: &[StepRecord],
    last_step: Option<usize>,
) -> SortedSplats<'t> {
    let mut sorted = SortedSplats::default();
    // The first report that each of those seen was.
    let mut reports: Vec<&Splat> = Vec::new();
    for splat in splats {
        let step = step_of(splat, steps);
        let seen_at = |known: &ExpectedSplat| sorted.seen.iter().position(|seen| std::ptr::eq(*seen, known));
        let known = expected.iter().find(|known| {
            is(known, splat, step, last_step)
                && seen_at(known).is_none_or(|at| reports[at].is_same_report(splat))
        });
        match known {
            Some(known) => {
                sorted.died_as_expected |= splat.fatal;
                if seen_at(known).is_none() {
                    sorted.seen.push(known);
                    reports.push(splat);
                }
            }
            None => sorted.unexpected.push(splat),
        }
    }
    let was_begun = |expected: &ExpectedSplat| match expected.step {
        ExpectedAt::Last | ExpectedAt::Any => last_step.is_some(),
        ExpectedAt::Step(step) => last_step.is_some_and(|last| step <= last),
    };
    let is_missing = |known: &&&ExpectedSplat| {
        was_begun(known) && !sorted.seen.iter().any(|seen| std::ptr::eq(*seen, **known))
    };
    sorted.missing = expected.iter().filter(is_missing).copied().collect();
    sorted
}

/// Whether a splat that came in this step is the expected one. One of the boot never is.
fn is(expected: &ExpectedSplat, splat: &Splat, step: Option<usize>, last_step: Option<usize>) -> bool {
    let in_step = match (expected.step, step, last_step) {
        (ExpectedAt::Step(expected), Some(step), _) => expected == step,
        (ExpectedAt::Last, Some(step), Some(last)) => step >= last,
        (ExpectedAt::Any, Some(_), _) => true,
        _ => false,
    };
    let in_function = expected.symbol.as_ref().is_none_or(|symbol| splat.function.as_ref() == Some(symbol));
    let has_message =
        expected.message.as_ref().is_none_or(|message| splat.known_as(slice::from_ref(message)).is_some());
    splat.kind == expected.kind && in_function && has_message && in_step
}
