//! From a transcript to an outcome.
//!
//! A pass takes all of it: every step done, silently on its standard error, a console without splats, a guest that powered
//! off, and every capture as its golden says. What the kernel does not do after the agent's greeting is its failure; an error
//! is what QEMU, the agent, the harness or the host did not do. An expected splat accounts for itself alone: everything captured before and beside it is
//! compared as ever. Nothing is read or written here, so that a verdict depends on its arguments alone.

mod captures;
mod outcome;
mod splats;
#[cfg(test)]
mod tests;

use golden::Facts;
use vm::Splat;

use crate::artefacts::TrialDir;
use crate::case::{Case, ExpectedSplat, Stderr};
use crate::execute::{Abort, StepError, StepProblem, Transcript, excerpt};
use captures::judge_captures;
pub use outcome::{
    CaptureFailure, DecodeFailure, ExpectedFailure, Failure, ModuleFailure, Outcome, StepFailure, StepPlace,
    TrialError,
};
use splats::{SortedSplats, sort};

/// How many of the console's last lines an error shows.
const ERROR_TAIL: usize = 50;

/// Judge a trial. `facts` decide which known bugs the kernel has.
pub fn judge(case: &Case, facts: &Facts, transcript: &Transcript, dir: &TrialDir) -> Outcome {
    if matches!(transcript.abort, Some(Abort::Interrupted)) {
        return Outcome::Interrupted;
    }
    let expected: Vec<&ExpectedSplat> =
        case.expected_splats.iter().filter(|expected| expected.applies(facts)).collect();
    let splats = sort(&expected, &transcript.splats, last_step(case, transcript));
    let of_kernel = match kernel_failures(case, transcript, &splats, dir) {
        Ok(failures) => failures,
        Err(what) => return Outcome::Error(Box::new(error(case, transcript, dir, what))),
    };
    let ended_early = transcript.abort.is_some() && !splats.died_as_expected;
    if ended_early && matches!(of_kernel.first(), Some(Failure::Kernel { .. })) {
        // Nothing but the splat says why the trial ended, and it may have spoiled the captures.
        return Outcome::Fail(of_kernel);
    }
    let mut judged = judge_captures(case, facts, transcript, dir);
    judged.failures.splice(0..0, of_kernel.into_iter().chain(unclean_steps(case, transcript, dir)));
    let known = |expected: &&ExpectedSplat| ExpectedFailure::of_splat(expected);
    judged.present.splice(0..0, splats.seen.iter().map(known));
    // Beside another splat it is unknown whether the expected one is gone or looks different.
    if splats.unexpected.is_empty() {
        judged.gone.splice(0..0, splats.missing.iter().map(known));
    }
    judged.outcome()
}

/// The kernel's own failures: splats that are not expected, or those after which the trial did not go on as it should,
/// and then the step that it refused or never ended.
///
/// # Errors
/// What kept the trial from its end when that is not the kernel's failure.
fn kernel_failures(
    case: &Case,
    transcript: &Transcript,
    splats: &SortedSplats<'_>,
    dir: &TrialDir,
) -> Result<Vec<Failure>, String> {
    let failure = |found: &[&Splat]| {
        let splat = found.iter().find(|splat| splat.fatal).or(found.first())?;
        Some(Failure::Kernel {
            splat: (*splat).clone(),
            others: found.len() - 1,
            step: transcript.abort.as_ref().and_then(|_| stopped_at(case, transcript)),
            console: dir.console(),
        })
    };
    let unexpected = failure(&splats.unexpected);
    let Some(abort) = &transcript.abort else { return Ok(unexpected.into_iter().collect()) };
    if transcript.boot_time.is_none() {
        // Before the greeting no kernel is known to be the one that was built.
        let fatal = transcript.splats.iter().find(|splat| splat.fatal);
        return Err(match (abort, fatal) {
            (Abort::Panic, Some(splat)) => {
                format!("the kernel panicked before the agent's greeting: {}", splat.line)
            }
            (Abort::Panic, None) => "the kernel panicked before the agent's greeting".to_owned(),
            _ => abort.to_string(),
        });
    }
    let step = abort.of_kernel().map(|error| {
        Failure::Step(Box::new(StepFailure::new(stopped_at(case, transcript), error, transcript, dir)))
    });
    match (abort, unexpected, step) {
        (_, Some(splat), step) => Ok([Some(splat), step].into_iter().flatten().collect()),
        (Abort::Panic, None, _) if splats.died_as_expected => Ok(Vec::new()),
        (Abort::Panic, None, _) => Err("the kernel panicked, and its console has no line of it".to_owned()),
        (_, None, Some(step)) => Ok(vec![step]),
        // A guest that is lost after a splat is the kernel's failure, whatever the harness saw of it.
        (abort, None, None) => {
            let all: Vec<&Splat> = transcript.splats.iter().collect();
            failure(&all).map(|failure| vec![failure]).ok_or_else(|| abort.to_string())
        }
    }
}

/// Steps that ended as they should and still did what their case does not allow.
fn unclean_steps<'t>(
    case: &'t Case,
    transcript: &'t Transcript,
    dir: &'t TrialDir,
) -> impl Iterator<Item = Failure> + 't {
    let failure = |step, problem, stderr| {
        let error = StepError { problem, stderr };
        let place = Some(StepPlace::of(case, step));
        Failure::Step(Box::new(StepFailure::new(place, error, transcript, dir)))
    };
    case.steps.iter().zip(transcript.completed()).flat_map(move |(step, record)| {
        let stderr = &record.output.stderr;
        let noisy = (step.stderr == Stderr::Empty && !stderr.is_empty())
            .then(|| failure(step, StepProblem::Noisy, excerpt(stderr)));
        let held_open = (step.capture.is_some() && record.held_open)
            .then(|| failure(step, StepProblem::HeldOpen, String::new()));
        noisy.into_iter().chain(held_open)
    })
}

/// The last step that was begun, as an index of the case's steps; `None` when none was.
fn last_step(case: &Case, transcript: &Transcript) -> Option<usize> {
    transcript.boot_time?;
    let answered = transcript.steps.len();
    // A step that did not end as expected was answered; one that was cut short was not.
    let begun = match transcript.abort {
        Some(Abort::Step(_)) | None => answered,
        Some(_) => answered + 1,
    };
    begun.min(case.steps.len()).checked_sub(1)
}

/// The step at which the trial stopped; `None` for the boot and the end.
fn stopped_at(case: &Case, transcript: &Transcript) -> Option<StepPlace> {
    transcript.boot_time?;
    let answered = transcript.steps.len();
    let at = match transcript.abort {
        Some(Abort::Step(_)) => answered.checked_sub(1)?,
        _ => answered,
    };
    case.steps.get(at).map(|step| StepPlace::of(case, step))
}

fn error(case: &Case, transcript: &Transcript, dir: &TrialDir, what: String) -> TrialError {
    TrialError {
        what,
        step: stopped_at(case, transcript),
        command: transcript.command.clone(),
        stderr: transcript.stderr.clone(),
        console: transcript.console_tail(ERROR_TAIL).to_owned(),
        dir: Some(dir.dir.clone()),
    }
}
