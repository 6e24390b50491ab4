//! From a transcript to an outcome.

use super::artefacts::TrialDir;
use super::execute::{Transcript, Trouble};
use super::outcome::{CaptureFailure, Failure, Outcome, StepPlace, TrialError};
use crate::case::Case;
use crate::golden::{Bindings, Facts, compare};

/// Judge a trial. A pass takes all three: every step done, a clean console, a guest that ended as
/// told; and then every capture must be what its golden says.
pub fn judge(case: &Case, facts: &Facts, transcript: &Transcript, dir: &TrialDir) -> Outcome {
    let next_step = || {
        // A step that ended otherwise than expected was answered; one without an answer was not.
        let answered = transcript.steps.len();
        let at = if matches!(transcript.trouble, Some(Trouble::Step(_))) { answered - 1 } else { answered };
        case.steps.get(at).filter(|_| transcript.boot_time.is_some()).map(|step| StepPlace {
            file: case.file.clone(),
            line: step.line,
            summary: step.summary(),
        })
    };
    let booted = transcript.boot_time.is_some();
    let fatal = transcript.complaints.iter().find(|c| c.fatal);
    let error = |what: String| {
        Outcome::Error(Box::new(TrialError {
            what,
            step: next_step(),
            command: transcript.command.clone(),
            stderr: transcript.stderr.clone(),
            console: transcript.console_tail.clone(),
            dir: dir.dir.clone(),
        }))
    };
    match &transcript.trouble {
        Some(Trouble::Interrupted) => return Outcome::Interrupted,
        Some(Trouble::Panic) if !booted => {
            let line = fatal.map_or("(no line)", |c| c.line.as_str());
            return error(format!("the kernel panicked before the agent was there: {line}"));
        }
        // A guest that dies of a complaint is the kernel's failure, whatever the harness saw first.
        Some(_) if booted && !transcript.complaints.is_empty() => {}
        Some(Trouble::Panic) => {
            return error("the kernel panicked, and its console has no line of it".to_owned());
        }
        Some(Trouble::Step(what) | Trouble::Machine(what)) => return error(what.clone()),
        None => {}
    }
    let mut failures = Vec::new();
    if let Some(complaint) = fatal.or(transcript.complaints.first()) {
        failures.push(Failure::Kernel {
            complaint: complaint.clone(),
            others: transcript.complaints.len() - 1,
            step: transcript.trouble.as_ref().and_then(|_| next_step()),
            console: dir.console(),
        });
    }
    if transcript.trouble.is_none() {
        failures.extend(captures(case, facts, transcript, dir));
    }
    if failures.is_empty() { Outcome::Pass } else { Outcome::Fail(failures) }
}

fn captures(case: &Case, facts: &Facts, transcript: &Transcript, dir: &TrialDir) -> Vec<Failure> {
    let mut bindings = Bindings::new();
    let mut failures = Vec::new();
    for (step, record) in case.steps.iter().zip(&transcript.steps) {
        let Some(capture) = &step.capture else { continue };
        let bytes = &record.answer.stdout;
        let comparison = compare(&capture.golden, bytes, capture.format, facts, &mut bindings);
        if !comparison.passes() {
            failures.push(Failure::Capture(Box::new(CaptureFailure {
                golden: capture.golden.clone(),
                capture: bytes.clone(),
                comparison,
                bindings: bindings.clone(),
                format: capture.format,
                file: dir.capture(&capture.name),
            })));
        }
    }
    failures
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use camino::{Utf8Path, Utf8PathBuf};

    use super::super::execute::StepRecord;
    use super::*;
    use crate::agent::{Answer, Ended};
    use crate::case::{Action, Capture, CaseId, Step};
    use crate::golden::Golden;
    use crate::normalise::Format;
    use crate::qemu::Complaint;

    fn case() -> Case {
        let golden = Golden::parse(Utf8Path::new("out.golden"), b"#@ golden v1\nright\n").expect("valid");
        let capture = Some(Capture { name: "out".to_owned(), format: Format::Plain, golden });
        let step = Step {
            line: 3,
            action: Action::Run { script: "x".to_owned(), status: 0 },
            limit: Duration::from_secs(1),
            capture,
        };
        Case {
            id: CaseId::new("a/b"),
            title: "T".to_owned(),
            document: None,
            file: Utf8PathBuf::from("cases/a/b/case.yaml"),
            guests: Vec::new(),
            requires: Vec::new(),
            directory: "/".to_owned(),
            steps: vec![step],
        }
    }

    fn transcript(stdout: &str) -> Transcript {
        let answer = Answer {
            ended: Ended::Exited(0),
            stdout: stdout.as_bytes().to_vec(),
            stderr: Vec::new(),
            elapsed: Duration::ZERO,
        };
        Transcript {
            boot_time: Some(Duration::from_secs(1)),
            steps: vec![StepRecord { answer }],
            ..Transcript::default()
        }
    }

    fn complaint(fatal: bool) -> Complaint {
        Complaint { line: "WARNING: x".to_owned(), fatal }
    }

    fn outcome(transcript: &Transcript) -> &'static str {
        match judge(&case(), &Facts::default(), transcript, &TrialDir { dir: Utf8PathBuf::from("d") }) {
            Outcome::Pass => "pass",
            Outcome::Fail(failures) => match failures[0] {
                Failure::Kernel { .. } => "fail: kernel",
                Failure::Capture(_) => "fail: capture",
            },
            Outcome::Skip(_) => "skip",
            Outcome::Error(_) => "error",
            Outcome::Interrupted => "interrupted",
        }
    }

    #[test]
    fn a_pass_takes_the_right_text_a_clean_console_and_an_orderly_end() {
        assert_eq!(outcome(&transcript("right\n")), "pass");
        assert_eq!(outcome(&transcript("wrong\n")), "fail: capture");
        let complained = Transcript { complaints: vec![complaint(false)], ..transcript("right\n") };
        assert_eq!(outcome(&complained), "fail: kernel");
        let stuck =
            Transcript { trouble: Some(Trouble::Machine("no end".to_owned())), ..transcript("right\n") };
        assert_eq!(outcome(&stuck), "error");
    }

    #[test]
    fn a_panic_is_the_kernels_failure_once_it_has_booted() {
        let panic = Transcript {
            trouble: Some(Trouble::Panic),
            complaints: vec![complaint(true)],
            ..Transcript::default()
        };
        assert_eq!(outcome(&panic), "error");
        assert_eq!(outcome(&Transcript { boot_time: Some(Duration::ZERO), ..panic }), "fail: kernel");
    }

    #[test]
    fn a_step_that_ends_otherwise_is_an_error_and_a_splat_explains_it() {
        let step =
            Transcript { trouble: Some(Trouble::Step("status 1".to_owned())), ..transcript("right\n") };
        assert_eq!(outcome(&step), "error");
        assert_eq!(outcome(&Transcript { complaints: vec![complaint(false)], ..step }), "fail: kernel");
    }
}
