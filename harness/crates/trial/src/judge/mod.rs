//! From a transcript to an outcome.
//!
//! A pass takes all of it: every step done, a console without splats, a guest that powered off, and every capture as its
//! golden says. An expected splat accounts for itself alone: everything captured before and beside it is
//! compared as ever. Nothing is read or written here, so that a verdict depends on its arguments alone.

mod captures;
mod outcome;
mod splats;
#[cfg(test)]
mod tests;

use golden::Facts;
use vm::Splat;
use vm::process::last_lines;

use crate::artefacts::TrialDir;
use crate::case::{Case, ExpectedSplat};
use crate::execute::{Abort, Transcript};
use captures::judge_captures;
pub use outcome::{
    CaptureFailure, DecodeFailure, ExpectedFailure, Failure, ModuleFailure, Outcome, StepPlace, TrialError,
};
use splats::{SortedSplats, sort};

/// How many of the console's last lines an error shows.
const TAIL_LINES: usize = 50;

/// Judge a trial. `facts` decide which known bugs the kernel has.
pub fn judge(case: &Case, facts: &Facts, transcript: &Transcript, dir: &TrialDir) -> Outcome {
    if matches!(transcript.abort, Some(Abort::Interrupted)) {
        return Outcome::Interrupted;
    }
    let expected: Vec<&ExpectedSplat> =
        case.expected_splats.iter().filter(|expected| expected.applies(facts)).collect();
    let splats = sort(&expected, &transcript.splats, last_step(case, transcript));
    let kernel = match kernel_failure(case, transcript, &splats, dir) {
        Ok(failure) => failure,
        Err(what) => return Outcome::Error(Box::new(error(case, transcript, dir, what))),
    };
    if transcript.abort.is_some() && !splats.died_as_expected {
        // Nothing but the splat says why the trial ended, and it may have spoiled the captures.
        return Outcome::Fail(kernel.into_iter().collect());
    }
    let mut judged = judge_captures(case, facts, transcript, dir);
    judged.failures.splice(0..0, kernel);
    let known = |expected: &&ExpectedSplat| ExpectedFailure::of_splat(expected);
    judged.present.splice(0..0, splats.seen.iter().map(known));
    // Beside another splat it is unknown whether the expected one is gone or looks different.
    if splats.unexpected.is_empty() {
        judged.gone.splice(0..0, splats.missing.iter().map(known));
    }
    judged.outcome()
}

/// The kernel's own failure, if any: splats that are not expected, or those after which the trial
/// did not go on as it should.
///
/// # Errors
/// What kept the trial from its end when that is not the kernel's failure.
fn kernel_failure(
    case: &Case,
    transcript: &Transcript,
    splats: &SortedSplats<'_>,
    dir: &TrialDir,
) -> Result<Option<Failure>, String> {
    let failure = |found: &[&Splat]| {
        let splat = found.iter().find(|splat| splat.fatal).or(found.first())?;
        Some(Failure::Kernel {
            splat: (*splat).clone(),
            others: found.len() - 1,
            step: transcript.abort.as_ref().and_then(|_| stopped_at(case, transcript)),
            console: dir.console(),
        })
    };
    let all: Vec<&Splat> = transcript.splats.iter().collect();
    match &transcript.abort {
        Some(Abort::Panic) if transcript.boot_time.is_none() => {
            let line = all.iter().find(|splat| splat.fatal).map_or("(no line)", |splat| splat.line.as_str());
            Err(format!("the kernel panicked before the agent's greeting: {line}"))
        }
        // Before the greeting no kernel is known to be the one that was built.
        Some(abort) if transcript.boot_time.is_none() => Err(abort.to_string()),
        _ if !splats.unexpected.is_empty() => Ok(failure(&splats.unexpected)),
        Some(Abort::Panic) if splats.died_as_expected => Ok(None),
        Some(Abort::Panic) => Err("the kernel panicked, and its console has no line of it".to_owned()),
        // A guest that is lost after a splat is the kernel's failure, whatever the harness saw of it.
        Some(_) if !all.is_empty() => Ok(failure(&all)),
        Some(abort) => Err(abort.to_string()),
        None => Ok(None),
    }
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
        console: last_lines(&transcript.console, TAIL_LINES).to_owned(),
        dir: Some(dir.dir.clone()),
    }
}
