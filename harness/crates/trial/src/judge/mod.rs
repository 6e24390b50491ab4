//! From a transcript to an outcome.
//!
//! A pass takes all of it: every step done, silently on its standard error, a console without splats, a guest that powered
//! off, and every capture as its golden says. What the kernel does not do after the agent's greeting is its failure; an error
//! is what QEMU, the agent, the harness or the host did not do. An expected splat accounts for itself alone: everything captured before and beside it is
//! compared as ever. Nothing is read or written here, so that a verdict depends on its arguments alone.

mod captures;
mod outcome;
#[cfg(test)]
mod splat_tests;
mod splats;
mod taint;
#[cfg(test)]
mod tests;

use golden::Facts;
use vm::qemu::{CONSOLE_LEVEL, MESSAGE_LEVEL};
use vm::{KernelState, Splat};

use crate::artefacts::TrialDir;
use crate::case::{Case, ExpectedSplat, Stderr, Step};
use crate::execute::{Abort, StepError, StepProblem, Transcript, excerpt};
use captures::judge_captures;
pub use outcome::{
    CaptureFailure, DecodeFailure, ExpectedFailure, Failure, ModuleFailure, Outcome, StepFailure, StepPlace,
    TrialError,
};
pub(crate) use splats::step_of;
use splats::{SortedSplats, sort};
pub use taint::Taint;
use taint::{unexplained, words};

/// How many of the console's last lines an error shows.
const ERROR_TAIL: usize = 50;

/// Judge a trial. `facts` decide which known bugs the kernel has.
pub fn judge(case: &Case, facts: &Facts, transcript: &Transcript, dir: &TrialDir) -> Outcome {
    if matches!(transcript.abort, Some(Abort::Interrupted)) {
        return Outcome::Interrupted;
    }
    let expected: Vec<&ExpectedSplat> =
        case.expected_splats.iter().filter(|expected| expected.applies(facts)).collect();
    let splats = sort(&expected, &transcript.splats, &transcript.steps, last_step(case, transcript));
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
            step: step_of(splat, &transcript.steps)
                .and_then(|step| case.steps.get(step))
                .map(|step| StepPlace::of(case, step)),
            console: dir.console(),
        })
    };
    let unexpected = failure(&splats.unexpected);
    let Some(abort) = &transcript.abort else {
        let of_state = || judge_state(case, transcript, splats, dir).map(Vec::from_iter);
        return unexpected.map_or_else(of_state, |splat| Ok(vec![splat]));
    };
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
    if matches!(abort, Abort::Boot { .. }) {
        // Its splat is the host's doing.
        return Err(abort.to_string());
    }
    let step = abort.of_kernel().map(|error| {
        Failure::Step(Box::new(StepFailure::new(stopped_at(case, transcript), error, transcript, dir)))
    });
    match (abort, unexpected, step) {
        (_, Some(splat), step) => Ok([Some(splat), step].into_iter().flatten().collect()),
        (Abort::Panic, None, _) if splats.died_as_expected => {
            judge_state(case, transcript, splats, dir).map(Vec::from_iter)
        }
        (Abort::Panic, None, _) => Err("the kernel panicked, and its console has no line of it".to_owned()),
        (_, None, Some(step)) => {
            // It failed whatever the console did not show.
            let of_state = judge_state(case, transcript, splats, dir).unwrap_or_default();
            Ok([Some(step), of_state].into_iter().flatten().collect())
        }
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

/// The failure that the kernel's state after a step shows although the console shows none.
///
/// # Errors
/// When messages may have been kept from the console: nothing shows then that there was no splat.
fn judge_state(
    case: &Case,
    transcript: &Transcript,
    splats: &SortedSplats<'_>,
    dir: &TrialDir,
) -> Result<Option<Failure>, String> {
    if transcript.lost_messages > 0 {
        return Err(format!(
            "the kernel's log overflowed: {} messages are missing on the console",
            transcript.lost_messages
        ));
    }
    let states = case.steps.iter().zip(transcript.steps.iter().map(|step| step.kernel));
    let states: Vec<(&Step, KernelState)> = states.filter_map(|(step, state)| Some((step, state?))).collect();
    let taints = |state: &KernelState| unexplained(state.tainted, &splats.kinds());
    let silenced =
        |state: &KernelState| (state.console_level, state.message_level) != (CONSOLE_LEVEL, MESSAGE_LEVEL);
    if let Some((step, state)) = states.iter().find(|(_, state)| silenced(state)) {
        let KernelState { console_level, message_level, .. } = state;
        let tainted = match states.last().map(|(_, state)| taints(state)).as_deref() {
            None | Some([]) => String::new(),
            Some(taints) => format!("; the kernel is tainted: {}", words(taints)),
        };
        return Err(format!(
            "the levels in /proc/sys/kernel/printk are {console_level} {message_level} after the step at {}:{}, \
             expected {CONSOLE_LEVEL} {MESSAGE_LEVEL}: the console may not have shown every splat{tainted}",
            case.file, step.line
        ));
    }
    Ok(states.iter().find(|(_, state)| !taints(state).is_empty()).map(|(step, state)| Failure::Tainted {
        taints: taints(state),
        step: StepPlace::of(case, step),
        console: dir.console(),
    }))
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
