//! Which splats of a trial are the ones that its case expects.
//!
//! An expected splat is one of that kind, in that function, in that step. Every other one is the kernel's failure,
//! whatever is expected besides.

use vm::Splat;

use crate::case::ExpectedSplat;

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

/// Sort the splats of a trial. `last_step` is the last step that was begun, as an index of the case's steps; `None` when
/// none was.
pub(super) fn sort<'t>(
    expected: &[&'t ExpectedSplat],
    splats: &'t [Splat],
    last_step: Option<usize>,
) -> SortedSplats<'t> {
    let mut sorted = SortedSplats::default();
    for splat in splats {
        match expected.iter().find(|expected| is(expected, splat, last_step)) {
            Some(known) => {
                sorted.died_as_expected |= splat.fatal;
                if !sorted.seen.iter().any(|seen| std::ptr::eq(*seen, *known)) {
                    sorted.seen.push(known);
                }
            }
            None => sorted.unexpected.push(splat),
        }
    }
    let was_begun =
        |expected: &ExpectedSplat| last_step.is_some_and(|last| expected.step.unwrap_or(last) <= last);
    let is_missing = |known: &&&ExpectedSplat| {
        was_begun(known) && !sorted.seen.iter().any(|seen| std::ptr::eq(*seen, **known))
    };
    sorted.missing = expected.iter().filter(is_missing).copied().collect();
    sorted
}

/// Whether a splat is the expected one. The step of the kernel's end is known: it is the last one.
fn is(expected: &ExpectedSplat, splat: &Splat, last_step: Option<usize>) -> bool {
    let in_step = match expected.step {
        Some(step) if splat.fatal => last_step == Some(step),
        Some(step) => last_step.is_some_and(|last| step <= last),
        None => last_step.is_some(),
    };
    let in_function = expected.symbol.as_ref().is_none_or(|symbol| splat.function.as_ref() == Some(symbol));
    splat.kind == expected.kind && in_function && in_step
}
