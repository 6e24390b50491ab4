//! Outcomes for a person.

use std::fmt::{self, Write as _};
use std::time::Duration;

use anstyle::AnsiColor;
use camino::Utf8Path;

use super::colour::Colour;
use super::text::ReportText;
use super::{decoded, diff};
use trial::{
    ExpectedFailure, Failure, Flaky, ModuleFailure, Outcome, StepFailure, StepPlace, TrialError, TrialResult,
    Verdict,
};
use vm::{Splat, SplatKind};

/// How many trials are named that failed in the same way as the one that is shown.
const OTHERS_MAX: usize = 5;

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
    /// Trials that failed as their xfail entry expects.
    pub xfailed: usize,
    /// Trials whose expected failure did not occur.
    pub xpassed: usize,
    /// Trials that an interrupt cut short.
    pub interrupted: usize,
}

impl Summary {
    /// Count outcomes.
    pub fn of<'f>(trials: impl IntoIterator<Item = &'f TrialResult>) -> Summary {
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

/// One line for a trial that is over, with colours; they are not printed where they do not belong.
pub fn headline(trial: &TrialResult) -> ReportText {
    let verdict = Verdict::of(&trial.outcome);
    let colour = match verdict {
        Verdict::Pass => AnsiColor::Green,
        Verdict::Fail | Verdict::Xpass => AnsiColor::Red,
        Verdict::Xfail | Verdict::Skip | Verdict::Interrupted => AnsiColor::Yellow,
        Verdict::Error => AnsiColor::Magenta,
    };
    let style = colour.on_default().bold();
    let mut line = ReportText::default();
    line.styled(style, &format!("{verdict:<5}"));
    let _ = write!(line, " {}{} ({})", trial.name, repetition(trial), seconds(trial.elapsed));
    match &trial.outcome {
        Outcome::Skip(why) => {
            let _ = write!(line, ": {why}");
        }
        Outcome::Xfail(known) => {
            let mut reasons: Vec<&str> = Vec::new();
            for bug in known {
                if !reasons.contains(&bug.reason.as_str()) {
                    reasons.push(&bug.reason);
                }
            }
            let _ = write!(line, ": {}", reasons.join("; "));
        }
        _ => {}
    }
    line
}

/// Which time a trial ran, where it runs more than once.
fn repetition(trial: &TrialResult) -> String {
    if trial.repetition > 0 { format!(" #{}", trial.repetition) } else { String::new() }
}

/// One line for each trial that came to different outcomes, with how often it came to each.
pub fn flaky_lines(flaky: &[Flaky]) -> ReportText {
    let mut text = ReportText::default();
    for Flaky { name, outcomes } in flaky {
        text.styled(AnsiColor::Red.on_default().bold(), "FLAKY");
        let counts: Vec<String> =
            outcomes.iter().map(|(verdict, count)| format!("{count} {verdict}")).collect();
        let _ = writeln!(text, " {name}: {}", counts.join(", "));
    }
    text
}

/// What to type after a trial that did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RerunHint<'a> {
    /// The command that runs this trial alone.
    pub run: &'a str,
    /// The command that makes the trial's captures the goldens, if there is one.
    pub bless: Option<String>,
}

/// Everything that a person needs to know of a trial that did not pass; `None` when it did. The
/// captures of a trial whose kernel printed a splat are not offered to be accepted.
pub fn describe(trial: &TrialResult, hint: &RerunHint<'_>, colour: Colour) -> Option<ReportText> {
    describe_group(&[trial], hint, colour)
}

/// The same of trials that failed in the same way (see [`groups`](super::groups)): the failure of the first is shown,
/// and then where those of the others are kept.
pub fn describe_group(trials: &[&TrialResult], hint: &RerunHint<'_>, colour: Colour) -> Option<ReportText> {
    let (trial, others) = trials.split_first()?;
    let mut text = ReportText::default();
    match &trial.outcome {
        Outcome::Pass | Outcome::Xfail(_) | Outcome::Skip(_) | Outcome::Interrupted => return None,
        Outcome::Fail(found) => failures(found, colour, &mut text),
        Outcome::Xpass { gone, failures: found } => {
            for ExpectedFailure { file, line, reason } in gone {
                let _ = writeln!(
                    text,
                    "{file}:{line}: expected failure did not occur: remove this xfail entry ({reason})"
                );
            }
            failures(found, colour, &mut text);
        }
        Outcome::Error(error) => trial_error(error, &mut text),
    }
    for other in others.iter().take(OTHERS_MAX) {
        let _ = writeln!(text, "the same on {}{}, kept in:", other.name, repetition(other));
        for file in kept(&other.outcome) {
            let _ = writeln!(text, "  {file}");
        }
    }
    if others.len() > OTHERS_MAX {
        let _ = writeln!(text, "and the same {} times more", others.len() - OTHERS_MAX);
    }
    let alone = if others.is_empty() { "run it alone" } else { "run them alone" };
    let _ = writeln!(text, "{alone}: {}", hint.run);
    if let (Some(bless), true) = (&hint.bless, trial.outcome.only_captures_differ()) {
        let _ = writeln!(text, "accept the capture: {bless}");
    }
    Some(text)
}

/// The files that hold what a failure shows.
fn kept(outcome: &Outcome) -> Vec<&Utf8Path> {
    match outcome {
        Outcome::Fail(failures) | Outcome::Xpass { failures, .. } => failures
            .iter()
            .filter_map(|failure| match failure {
                Failure::Capture(failure) => Some(failure.file.as_path()),
                Failure::Decoded(failure) => Some(failure.file.as_path()),
                Failure::Kernel { console, .. } | Failure::Tainted { console, .. } => Some(console.as_path()),
                Failure::Step(failure) => Some(failure.console.as_path()),
                Failure::Module(_) => None,
            })
            .collect(),
        Outcome::Error(error) => error.dir.iter().map(|dir| dir.as_path()).collect(),
        Outcome::Pass | Outcome::Xfail(_) | Outcome::Skip(_) | Outcome::Interrupted => Vec::new(),
    }
}

fn failures(failures: &[Failure], colour: Colour, text: &mut ReportText) {
    for failure in failures {
        match failure {
            Failure::Capture(failure) => diff::render(failure, colour, text),
            Failure::Decoded(failure) => decoded::render(failure, text),
            Failure::Module(failure) => {
                let ModuleFailure { step: StepPlace { file, line, .. }, module, differences } =
                    failure.as_ref();
                let _ = writeln!(text, "{file}:{line}: module {module} is not what its source defines");
                for difference in differences {
                    let _ = writeln!(text, "  {difference}");
                }
            }
            Failure::Step(failure) => {
                let StepFailure { step, error, tail, console } = failure.as_ref();
                let _ = writeln!(text, "{}: {error}", error.problem.word());
                at_step(step.as_ref(), text);
                if !tail.is_empty() {
                    let _ = writeln!(text, "  the console's last lines:\n{}", indented(tail));
                }
                let _ = writeln!(text, "  console: {console}");
            }
            Failure::Tainted { taints, step, console } => {
                let taints: Vec<String> = taints.iter().map(ToString::to_string).collect();
                let _ = writeln!(
                    text,
                    "kernel tainted: {}, and the console shows no such splat",
                    taints.join(", ")
                );
                at_step(Some(step), text);
                let _ = writeln!(text, "  console: {console}");
            }
            Failure::Kernel { splat, others, step, console } => {
                let _ = writeln!(text, "{}: {}", what(splat), splat.line);
                at_step(step.as_ref(), text);
                if !splat.frames.is_empty() {
                    let _ = writeln!(text, "  called from: {}", splat.frames.join(" < "));
                }
                if *others > 0 {
                    let _ = writeln!(text, "  and {others} more splats");
                }
                let _ = writeln!(text, "  console: {console}");
            }
        }
    }
}

/// What a splat is, in a report.
fn what(splat: &Splat) -> String {
    match (splat.fatal, splat.kind, splat.level) {
        (true, _, _) => "kernel splat that ended the guest".to_owned(),
        (false, SplatKind::Message, Some(level)) => format!("kernel message at level {level}"),
        (false, _, _) => "kernel splat".to_owned(),
    }
}

fn trial_error(error: &TrialError, text: &mut ReportText) {
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
    if let Some(dir) = dir {
        let _ = writeln!(text, "  kept in: {dir}");
    }
}

fn at_step(step: Option<&StepPlace>, text: &mut ReportText) {
    if let Some(StepPlace { file, line, summary }) = step {
        let _ = writeln!(text, "  at {file}:{line}: {summary}");
    }
}

fn indented(text: &str) -> String {
    // Firmware ends lines with a carriage return, before or after the line feed.
    text.lines()
        .map(|line| format!("    {}", line.trim_end().trim_start_matches('\r')))
        .collect::<Vec<_>>()
        .join("\n")
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::{capture_failure, error, result, splat};
    use formats::{Format, Violation};

    fn shown(trials: &[TrialResult]) -> String {
        let bless = Some("goldtrace bless a".to_owned());
        let hint = RerunHint { run: "goldtrace run a@g", bless };
        describe_group(&trials.iter().collect::<Vec<_>>(), &hint, Colour::No).expect("a text").to_string()
    }

    fn capture() -> Failure {
        capture_failure("a\n", "b\n", Format::Plain)
    }

    #[test]
    fn capture_failure_offers_to_bless() {
        expect_test::expect![[r#"
            out.golden:2: the capture differs
            golden capture
                 2         |-a
                         1 |+b
              capture: last/out
            run it alone: goldtrace run a@g
            accept the capture: goldtrace bless a
        "#]]
        .assert_eq(&shown(&[result("a@g", Outcome::Fail(vec![capture()]))]));
    }

    #[test]
    fn splat_offers_no_bless() {
        let text = shown(&[result("a@g", Outcome::Fail(vec![splat("WARNING: x"), capture()]))]);
        assert!(text.starts_with("kernel splat: WARNING: x\n  console: last/console.log\n"), "{text}");
        assert!(text.ends_with("run it alone: goldtrace run a@g\n"), "{text}");
    }

    #[test]
    fn capture_that_contradicts_what_is_known_offers_no_bless() {
        let mut failure = capture();
        if let Failure::Capture(capture) = &mut failure {
            capture.comparison.violations.push(Violation { line: 1, message: "time goes back".to_owned() });
        }
        let text = shown(&[result("a@g", Outcome::Fail(vec![failure]))]);
        assert!(text.ends_with("run it alone: goldtrace run a@g\n"), "{text}");
    }

    #[test]
    fn equal_failures_are_shown_once() {
        let trials = ["a@g", "a@h"].map(|name| result(name, Outcome::Fail(vec![capture()])));
        expect_test::expect![[r#"
            out.golden:2: the capture differs
            golden capture
                 2         |-a
                         1 |+b
              capture: last/out
            the same on a@h, kept in:
              last/out
            run them alone: goldtrace run a@g
            accept the capture: goldtrace bless a
        "#]]
        .assert_eq(&shown(&trials));
        let trials = ["a@g", "a@h"].map(|name| result(name, error("timed out after 1 s")));
        expect_test::expect![[r#"
            timed out after 1 s
              QEMU was started as: qemu -x
              kept in: last/a
            the same on a@h, kept in:
              last/a
            run them alone: goldtrace run a@g
        "#]]
        .assert_eq(&shown(&trials));
    }

    #[test]
    fn reason_of_several_known_bugs_is_shown_once() {
        let bug = |line, reason: &str| ExpectedFailure {
            file: "case.yaml".into(),
            line,
            reason: reason.to_owned(),
        };
        let known = vec![bug(7, "pads"), bug(9, "pads"), bug(12, "counts twice"), bug(15, "pads")];
        let line = headline(&result("a@g", Outcome::Xfail(known))).to_string();
        let line = anstream::adapter::strip_str(&line).to_string();
        assert_eq!(line, "XFAIL a@g (1.0 s): pads; counts twice");
    }

    #[test]
    fn flaky_trial_has_its_outcomes_and_repetitions_their_number() {
        let result = |repetition, outcome| TrialResult { repetition, ..result("a@g", outcome) };
        let results =
            [result(1, Outcome::Pass), result(2, Outcome::Skip("s".to_owned())), result(3, Outcome::Pass)];
        let line = |text: ReportText| anstream::adapter::strip_str(text.as_str()).to_string();
        assert_eq!(line(headline(&results[2])), "PASS  a@g #3 (1.0 s)");
        assert_eq!(line(flaky_lines(&trial::flaky(&results))), "FLAKY a@g: 2 PASS, 1 SKIP\n");
    }

    #[test]
    fn xpass_names_the_entry_to_remove() {
        let bug = ExpectedFailure { file: "case.yaml".into(), line: 7, reason: "it is broken".to_owned() };
        let text = shown(&[result("a@g", Outcome::Xpass { gone: vec![bug], failures: Vec::new() })]);
        let first = "case.yaml:7: expected failure did not occur: remove this xfail entry (it is broken)\n";
        assert!(text.starts_with(first), "{text}");
    }
}
