//! Outcomes for a person.

use std::fmt::{self, Write as _};
use std::time::Duration;

use anstyle::AnsiColor;

use super::diff;
use crate::run::{Excused, Failure, Finished, Outcome, StepPlace, TrialError};

/// How many trials came to what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Trials that passed.
    pub passed: usize,
    /// Trials that failed.
    pub failed: usize,
    /// Trials that could not be done.
    pub errors: usize,
    /// Trials that were not run, with a reason.
    pub skipped: usize,
    /// Trials in which a known fault is excused.
    pub xfailed: usize,
    /// Trials in which an excused fault is gone.
    pub xpassed: usize,
    /// Trials that an interrupt cut short.
    pub interrupted: usize,
}

impl Summary {
    /// Count outcomes.
    pub fn of<'f>(trials: impl IntoIterator<Item = &'f Finished>) -> Summary {
        let mut summary = Summary::default();
        for trial in trials {
            match trial.outcome {
                Outcome::Pass => summary.passed += 1,
                Outcome::Fail(_) => summary.failed += 1,
                Outcome::Error(_) => summary.errors += 1,
                Outcome::Skip(_) => summary.skipped += 1,
                Outcome::Xfail(_) => summary.xfailed += 1,
                Outcome::Xpass { .. } => summary.xpassed += 1,
                Outcome::Interrupted => summary.interrupted += 1,
            }
        }
        summary
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { passed, failed, errors, skipped, xfailed, xpassed, interrupted } = self;
        write!(f, "{passed} passed, {failed} failed, {errors} errors, {skipped} skipped")?;
        for (count, what) in [(xfailed, "xfailed"), (xpassed, "xpassed")] {
            if *count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        if *interrupted > 0 { write!(f, ", {interrupted} interrupted") } else { Ok(()) }
    }
}

/// One line for a trial that is over, with colours; printing through anstream drops them where they
/// do not belong.
pub fn headline(trial: &Finished) -> String {
    let (word, colour) = match &trial.outcome {
        Outcome::Pass => ("PASS ", AnsiColor::Green),
        Outcome::Fail(_) => ("FAIL ", AnsiColor::Red),
        Outcome::Xfail(_) => ("XFAIL", AnsiColor::Yellow),
        Outcome::Xpass { .. } => ("XPASS", AnsiColor::Red),
        Outcome::Skip(_) => ("SKIP ", AnsiColor::Yellow),
        Outcome::Error(_) => ("ERROR", AnsiColor::Magenta),
        Outcome::Interrupted => ("INTERRUPTED", AnsiColor::Yellow),
    };
    let style = colour.on_default().bold();
    let mut line = format!("{style}{word}{style:#} {} ({})", trial.name, seconds(trial.elapsed));
    match &trial.outcome {
        Outcome::Skip(why) => {
            let _ = write!(line, ": {why}");
        }
        Outcome::Xfail(excuses) => {
            let reasons: Vec<&str> = excuses.iter().map(|excuse| excuse.reason.as_str()).collect();
            let _ = write!(line, ": {}", reasons.join("; "));
        }
        _ => {}
    }
    line
}

/// Everything that a person needs to know of a trial that did not pass; `None` when it did. `again`
/// is the command that runs this trial alone.
pub fn describe(trial: &Finished, again: &str) -> Option<String> {
    let mut text = String::new();
    match &trial.outcome {
        Outcome::Pass | Outcome::Xfail(_) | Outcome::Skip(_) | Outcome::Interrupted => return None,
        Outcome::Fail(found) => failures(found, &mut text),
        Outcome::Xpass { excuses, failures: found } => {
            for Excused { file, line, reason } in excuses {
                let _ = writeln!(
                    text,
                    "{file}:{line}: the excused fault is not there: remove the excuse ({reason})"
                );
            }
            failures(found, &mut text);
        }
        Outcome::Error(error) => trial_error(error, &mut text),
    }
    let _ = writeln!(text, "run it alone: {again}");
    Some(text)
}

fn failures(failures: &[Failure], text: &mut String) {
    for failure in failures {
        match failure {
            Failure::Capture(failure) => text.push_str(&diff::render(failure)),
            Failure::Kernel { complaint, others, step, console } => {
                let what = if complaint.fatal { "panicked" } else { "complained" };
                let _ = writeln!(text, "the kernel {what}: {}", complaint.line);
                at_step(step.as_ref(), text);
                if *others > 0 {
                    let _ = writeln!(text, "  and {others} more lines of complaint");
                }
                let _ = writeln!(text, "  console: {console}");
            }
        }
    }
}

fn trial_error(error: &TrialError, text: &mut String) {
    let TrialError { what, step, command, stderr, console, dir } = error;
    let _ = writeln!(text, "{what}");
    at_step(step.as_ref(), text);
    if !command.is_empty() {
        let _ = writeln!(text, "  QEMU was started as: {command}");
    }
    if !stderr.is_empty() {
        let _ = writeln!(text, "  QEMU's standard error:\n{}", indented(stderr));
    }
    if !console.is_empty() {
        let _ = writeln!(text, "  the console's last lines:\n{}", indented(console));
    }
    let _ = writeln!(text, "  kept in: {dir}");
}

fn at_step(step: Option<&StepPlace>, text: &mut String) {
    if let Some(StepPlace { file, line, summary }) = step {
        let _ = writeln!(text, "  at {file}:{line}: {summary}");
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {}", line.trim_end())).collect::<Vec<_>>().join("\n")
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
