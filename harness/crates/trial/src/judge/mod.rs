//! From a transcript to an outcome.

mod outcome;
mod splat;

use crate::artefacts::TrialDir;
use crate::case::{Action, Capture, CapturePart, Case};
use crate::execute::{Abort, Transcript};
use formats::Violation;
use golden::{Bindings, Facts, Seen, compare};
use kmod::{Module, format_violations, read_formats};
pub use outcome::{
    CaptureFailure, DecodeFailure, ExpectedFailure, Failure, ModuleFailure, Outcome, StepPlace, TrialError,
};
use splat::is_expected;
use vm::process::last_lines;

/// How many of the console's last lines an error shows.
const TAIL_LINES: usize = 50;

/// Judge a trial. A pass takes all three: every step done, a clean console, a guest that ended as
/// told; and then every capture must be what its golden says. A fault that the case excuses is told
/// as such, and so is an excuse that nothing needs.
pub fn judge(case: &Case, facts: &Facts, transcript: &Transcript, dir: &TrialDir) -> Outcome {
    if transcript.abort == Some(Abort::Interrupted) {
        return Outcome::Interrupted;
    }
    let kernel = match kernel_failure(case, transcript, dir) {
        Ok(failure) => failure,
        Err(what) => return error(case, transcript, dir, what),
    };
    if let Some(expected) = case.expected_splats.iter().find(|expected| expected.applies(facts)) {
        let excused = vec![excused(case, expected.line, &expected.reason)];
        let is_it = is_expected(expected, &transcript.complaints);
        // After a warning the guest goes on, and what it does then counts.
        let goes_on = transcript.abort.is_none();
        return match kernel {
            None => {
                Outcome::Xpass { excuses: excused, failures: captures(case, facts, transcript, dir).failures }
            }
            Some(_) if is_it && goes_on => captures(case, facts, transcript, dir).outcome(excused),
            Some(_) if is_it && transcript.complaints[0].fatal => Outcome::Xfail(excused),
            Some(failure) => Outcome::Fail(vec![failure]),
        };
    }
    let mut found = match transcript.abort {
        None => captures(case, facts, transcript, dir),
        Some(_) => Captures::default(),
    };
    found.failures.splice(0..0, kernel);
    found.outcome(Vec::new())
}

/// The kernel's own failure, if any.
///
/// # Errors
/// What kept the trial from its end when that is not the kernel's failure.
fn kernel_failure(case: &Case, transcript: &Transcript, dir: &TrialDir) -> Result<Option<Failure>, String> {
    let booted = transcript.boot_time.is_some();
    let fatal = transcript.complaints.iter().find(|c| c.fatal);
    match &transcript.abort {
        Some(Abort::Panic) if !booted => {
            let line = fatal.map_or("(no line)", |c| c.line.as_str());
            return Err(format!("the kernel panicked before the agent was there: {line}"));
        }
        // A guest that dies of a complaint is the kernel's failure, whatever the harness saw first.
        Some(_) if booted && !transcript.complaints.is_empty() => {}
        Some(Abort::Step(what) | Abort::Machine(what)) => return Err(what.clone()),
        Some(Abort::Panic) => {
            return Err("the kernel panicked, and its console has no line of it".to_owned());
        }
        Some(Abort::Interrupted) | None => {}
    }
    Ok(fatal.or(transcript.complaints.first()).map(|complaint| Failure::Kernel {
        complaint: complaint.clone(),
        others: transcript.complaints.len() - 1,
        step: transcript.abort.as_ref().and_then(|_| stopped_at(case, transcript)),
        console: dir.console(),
    }))
}

/// The step at which the trial stopped; `None` for the boot and the end.
fn stopped_at(case: &Case, transcript: &Transcript) -> Option<StepPlace> {
    transcript.boot_time?;
    // A step that ended otherwise than expected was answered; one without an answer was not.
    let answered = transcript.steps.len();
    let at = if matches!(transcript.abort, Some(Abort::Step(_))) { answered - 1 } else { answered };
    let step = case.steps.get(at)?;
    Some(StepPlace { file: case.file.clone(), line: step.line, summary: step.summary() })
}

fn error(case: &Case, transcript: &Transcript, dir: &TrialDir, what: String) -> Outcome {
    Outcome::Error(Box::new(TrialError {
        what,
        step: stopped_at(case, transcript),
        command: transcript.command.clone(),
        stderr: transcript.stderr.clone(),
        console: last_lines(&transcript.console, TAIL_LINES).to_owned(),
        dir: dir.dir.clone(),
    }))
}

fn excused(case: &Case, line: usize, reason: &str) -> ExpectedFailure {
    ExpectedFailure { file: case.file.clone(), line, reason: reason.to_owned() }
}

/// What the comparison of all captures came to.
#[derive(Default)]
struct Captures {
    failures: Vec<Failure>,
    /// Excuses for faults that are there.
    needed: Vec<ExpectedFailure>,
    /// Excuses for faults that are not.
    unneeded: Vec<ExpectedFailure>,
}

impl Captures {
    /// What it comes to when `excused` was needed besides.
    fn outcome(self, mut excused: Vec<ExpectedFailure>) -> Outcome {
        excused.extend(self.needed);
        if !self.unneeded.is_empty() {
            Outcome::Xpass { excuses: self.unneeded, failures: self.failures }
        } else if !self.failures.is_empty() {
            Outcome::Fail(self.failures)
        } else if !excused.is_empty() {
            Outcome::Xfail(excused)
        } else {
            Outcome::Pass
        }
    }
}

fn captures(case: &Case, facts: &Facts, transcript: &Transcript, dir: &TrialDir) -> Captures {
    let mut bindings = Bindings::new();
    let mut found = Captures::default();
    let mut written = None;
    for (step, record) in case.steps.iter().zip(&transcript.steps) {
        written = record.written.as_ref().or(written);
        let Some(capture) = &step.capture else { continue };
        let bytes = &capture.part.of(&record.answer.stdout);
        let mut comparison = compare(&capture.golden, bytes, capture.format, facts, &mut bindings);
        for bug in comparison.known_bugs.iter().filter(|_| comparison.passes()) {
            let expected = ExpectedFailure {
                file: capture.golden.file.clone(),
                line: bug.line,
                reason: bug.reason.clone(),
            };
            match bug.seen {
                Seen::Actual => found.needed.push(expected),
                Seen::Right => found.unneeded.push(expected),
                Seen::Neither => {}
            }
        }
        if let Some(written) = written.filter(|_| shows_all(&step.action)) {
            let mut found = dtl::violations(written, capture.format, &record.answer.stdout);
            if capture.part != CapturePart::All {
                // Their lines are those of the whole output.
                found.iter_mut().for_each(|violation| violation.line = 1);
            } else {
                // What a known bug prints is not what was written.
                found.retain(|violation| !comparison.is_in_actual_part(violation.line));
            }
            comparison.violations.extend(found);
        }
        if let Some(inspected) = &record.inspected {
            comparison.violations.extend(disagreements(capture, bytes, &inspected.module));
            if !inspected.undefined.is_empty() {
                found.failures.push(Failure::Module(Box::new(ModuleFailure {
                    step: StepPlace { file: case.file.clone(), line: step.line, summary: step.summary() },
                    module: inspected.module.identity().name.clone(),
                    faults: inspected.undefined.clone(),
                })));
            }
        }
        if let Some(host) =
            record.host.as_ref().filter(|h| h.failed.is_some() || h.stdout != record.answer.stdout)
        {
            found.failures.push(Failure::Decoded(Box::new(DecodeFailure {
                step: StepPlace { file: case.file.clone(), line: step.line, summary: step.summary() },
                guest: record.answer.stdout.clone(),
                file: dir.capture(&capture.name),
                host: host.clone(),
            })));
        }
        if !comparison.passes() {
            found.failures.push(Failure::Capture(Box::new(CaptureFailure {
                golden: capture.golden.clone(),
                capture: bytes.clone(),
                comparison,
                bindings: bindings.clone(),
                format: capture.format,
                file: dir.capture(&capture.name),
            })));
        }
    }
    found
}

/// How the captured formats differ from what the module's file defines.
fn disagreements(capture: &Capture, bytes: &[u8], module: &Module) -> Vec<Violation> {
    if capture.defined_by.is_none() {
        return Vec::new();
    }
    match read_formats(bytes) {
        Ok(formats) => format_violations(module, &formats),
        Err(violation) => vec![violation],
    }
}

/// Whether what perf prints of an entry is all of it: `-F` leaves something out.
fn shows_all(action: &Action) -> bool {
    let leaves_out = |word: &String| word.starts_with("-F") || word.starts_with("--fields");
    !matches!(action, Action::Decode { arguments, .. } if arguments.iter().any(leaves_out))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use camino::{Utf8Path, Utf8PathBuf};

    use super::*;
    use crate::case::{Capture, CaseId, ExpectedSplat, Requires, Step};
    use crate::execute::Inspected;
    use crate::execute::StepRecord;
    use formats::Format;
    use golden::Golden;
    use vm::{Answer, Splat, SplatKind, StepEnd};

    fn case() -> Case {
        let golden = Golden::parse(Utf8Path::new("out.golden"), b"#@ golden v1\nright\n").expect("valid");
        let capture = Some(Capture {
            name: "out".to_owned(),
            format: Format::Plain,
            part: CapturePart::All,
            defined_by: None,
            golden,
        });
        let step = Step {
            line: 3,
            action: Action::Run { script: "x".to_owned(), exit_status: 0, log: None },
            timeout: Duration::from_secs(1),
            output_limit: 1,
            capture,
        };
        Case {
            id: CaseId::new("a/b"),
            title: "T".to_owned(),
            document: None,
            file: Utf8PathBuf::from("cases/a/b/case.yaml"),
            digest: String::new(),
            guests: Vec::new(),
            requires: Requires::default(),
            modules: Vec::new(),
            cwd: "/".to_owned(),
            expected_splats: Vec::new(),
            steps: vec![step],
        }
    }

    fn transcript(stdout: &str) -> Transcript {
        let answer = Answer {
            end: StepEnd::Exited(0),
            stdout: stdout.as_bytes().to_vec(),
            stderr: Vec::new(),
            elapsed: Duration::ZERO,
        };
        Transcript {
            boot_time: Some(Duration::from_secs(1)),
            steps: vec![StepRecord { answer, written: None, host: None, inspected: None }],
            ..Transcript::default()
        }
    }

    fn splats(console: &str) -> Vec<Splat> {
        Splat::scan(console.as_bytes())
    }

    const WARNING: &str = "WARNING: x";
    const PANIC: &str = "Kernel panic - not syncing: x\n f+0x1/0x2\n";

    fn outcome(transcript: &Transcript) -> &'static str {
        outcome_of(&case(), transcript)
    }

    fn outcome_of(case: &Case, transcript: &Transcript) -> &'static str {
        outcome_on(case, &Facts::default(), transcript)
    }

    fn outcome_on(case: &Case, facts: &Facts, transcript: &Transcript) -> &'static str {
        match judge(case, facts, transcript, &TrialDir { dir: Utf8PathBuf::from("d") }) {
            Outcome::Pass => "pass",
            Outcome::Fail(failures) => match failures[0] {
                Failure::Kernel { .. } => "fail: kernel",
                Failure::Capture(_) => "fail: capture",
                Failure::Decoded(_) => "fail: decoded",
                Failure::Module(_) => "fail: module",
            },
            Outcome::Xfail(_) => "xfail",
            Outcome::Xpass { .. } => "xpass",
            Outcome::Skip(_) => "skip",
            Outcome::Error(_) => "error",
            Outcome::Interrupted => "interrupted",
        }
    }

    #[test]
    fn a_pass_takes_the_right_text_a_clean_console_and_an_orderly_end() {
        assert_eq!(outcome(&transcript("right\n")), "pass");
        assert_eq!(outcome(&transcript("wrong\n")), "fail: capture");
        let complained = Transcript { complaints: splats(WARNING), ..transcript("right\n") };
        assert_eq!(outcome(&complained), "fail: kernel");
        let stuck = Transcript { abort: Some(Abort::Machine("no end".to_owned())), ..transcript("right\n") };
        assert_eq!(outcome(&stuck), "error");
    }

    #[test]
    fn a_panic_is_the_kernels_failure_once_it_has_booted() {
        let panic =
            Transcript { abort: Some(Abort::Panic), complaints: splats(PANIC), ..Transcript::default() };
        assert_eq!(outcome(&panic), "error");
        assert_eq!(outcome(&Transcript { boot_time: Some(Duration::ZERO), ..panic }), "fail: kernel");
    }

    #[test]
    fn a_step_that_ends_otherwise_is_an_error_and_a_splat_explains_it() {
        let step = Transcript { abort: Some(Abort::Step("status 1".to_owned())), ..transcript("right\n") };
        assert_eq!(outcome(&step), "error");
        assert_eq!(outcome(&Transcript { complaints: splats(WARNING), ..step }), "fail: kernel");
    }

    /// A case whose golden has a known bug of x86_64.
    fn with_known_bug() -> Case {
        let text = "#@ golden v1\n#@ xfail \"R\" if arch == x86_64\nright\n#@ actual\nwrong\n#@ end\n";
        let mut case = case();
        let capture = case.steps[0].capture.as_mut().expect("one");
        capture.golden = Golden::parse(Utf8Path::new("out.golden"), text).expect("valid");
        case
    }

    #[test]
    fn known_bug_is_xfail_and_its_absence_is_xpass() {
        let case = with_known_bug();
        let on = |arch: &str, transcript: &Transcript| {
            let facts = Facts { arch: arch.to_owned(), ..Facts::default() };
            outcome_on(&case, &facts, transcript)
        };
        assert_eq!(on("x86_64", &transcript("wrong\n")), "xfail");
        assert_eq!(on("x86_64", &transcript("right\n")), "xpass");
        assert_eq!(on("x86_64", &transcript("other\n")), "fail: capture");
        assert_eq!(on("x86_64", &transcript("wrong\nmore\n")), "fail: capture");
        assert_eq!(on("ppc64le", &transcript("right\n")), "pass");
        assert_eq!(on("ppc64le", &transcript("wrong\n")), "fail: capture");
        let with_splat = Transcript { complaints: splats(WARNING), ..transcript("wrong\n") };
        assert_eq!(on("x86_64", &with_splat), "fail: kernel");
    }

    #[test]
    fn a_module_that_is_not_what_its_source_or_the_guest_says_is_a_failure() {
        let looked = |undefined: &[&str]| {
            let undefined = undefined.iter().map(|fault| (*fault).to_owned()).collect();
            let mut transcript = transcript("right\n");
            transcript.steps[0].inspected = Some(Inspected { module: kmod::for_tests(), undefined });
            transcript
        };
        assert_eq!(outcome(&looked(&[])), "pass");
        assert_eq!(outcome(&looked(&["foo_bar: no class"])), "fail: module");
        let mut case = case();
        case.steps[0].capture.as_mut().expect("one").defined_by = Some("some".to_owned());
        // The text is no format file.
        assert_eq!(outcome_of(&case, &looked(&[])), "fail: capture");
    }

    #[test]
    fn an_expected_death_is_no_failure_and_a_life_is_one() {
        let symbol = Some("f".to_owned());
        let death = ExpectedSplat {
            file: "cases/a/b/case.yaml".into(),
            line: 9,
            kind: SplatKind::Panic,
            symbol,
            step: None,
            condition: None,
            reason: "R".to_owned(),
        };
        let case = Case { expected_splats: vec![death], ..case() };
        let dead = |console: &str| Transcript {
            abort: Some(Abort::Panic),
            complaints: splats(console),
            ..transcript("right\n")
        };
        assert_eq!(outcome_of(&case, &dead(PANIC)), "xfail");
        assert_eq!(outcome_of(&case, &dead(&PANIC.replace(" f+", " g+"))), "fail: kernel");
        assert_eq!(outcome_of(&case, &transcript("right\n")), "xpass");
    }

    #[test]
    fn after_an_expected_warning_the_captures_count() {
        let symbol = Some("f".to_owned());
        let kind = SplatKind::Warning;
        let expected = ExpectedSplat {
            file: "cases/a/b/case.yaml".into(),
            line: 9,
            kind,
            symbol,
            step: None,
            condition: None,
            reason: "R".to_owned(),
        };
        let case = Case { expected_splats: vec![expected], ..case() };
        let warned =
            |line: &str, capture: &str| Transcript { complaints: splats(line), ..transcript(capture) };
        let warning = "WARNING: kernel/x.c:1 at f+0x1/0x2, CPU#0: sh/1";
        assert_eq!(outcome_of(&case, &warned(warning, "right\n")), "xfail");
        assert_eq!(outcome_of(&case, &warned(warning, "wrong\n")), "fail: capture");
        assert_eq!(
            outcome_of(&case, &warned("WARNING: kernel/x.c:1 at g+0x1/0x2", "right\n")),
            "fail: kernel"
        );
        assert_eq!(outcome_of(&case, &transcript("right\n")), "xpass");
        let stopped = Transcript { abort: Some(Abort::Step("x".to_owned())), ..warned(warning, "right\n") };
        assert_eq!(outcome_of(&case, &stopped), "fail: kernel");
    }
}
