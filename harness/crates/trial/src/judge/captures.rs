//! What was captured, compared with the goldens and with what the harness knows from elsewhere.
//!
//! Every step that ended as it should counts, also when the trial ended early. Names keep their values from one capture of the
//! trial to the next.

use dtl::Written;
use formats::Violation;
use golden::{Bindings, Facts, Seen, compare, split_lines};
use kmod::{Module, read_formats};

use super::outcome::{
    CaptureFailure, DecodeFailure, ExpectedFailure, Failure, ModuleFailure, Outcome, StepPlace,
};
use crate::artefacts::TrialDir;
use crate::captured::captured;
use crate::case::{Action, Capture, CapturePart, Case, Step};
use crate::execute::{StepRecord, Transcript};

/// What the comparison of all captures came to.
#[derive(Debug, Default)]
pub(super) struct JudgedCaptures {
    /// What differs.
    pub(super) failures: Vec<Failure>,
    /// Known bugs that are there.
    pub(super) present: Vec<ExpectedFailure>,
    /// Known bugs that are not.
    pub(super) gone: Vec<ExpectedFailure>,
}

impl JudgedCaptures {
    /// What the trial comes to when nothing else is wrong with it.
    pub(super) fn outcome(self) -> Outcome {
        if !self.gone.is_empty() {
            Outcome::Xpass { gone: self.gone, failures: self.failures }
        } else if !self.failures.is_empty() {
            Outcome::Fail(self.failures)
        } else if !self.present.is_empty() {
            Outcome::Xfail(self.present)
        } else {
            Outcome::Pass
        }
    }
}

/// Compare the captures of all steps that ended as they should.
pub(super) fn judge_captures(
    case: &Case,
    facts: &Facts,
    transcript: &Transcript,
    dir: &TrialDir,
) -> JudgedCaptures {
    let mut bindings = Bindings::new();
    let mut judged = JudgedCaptures::default();
    let mut written = None;
    for (step, record) in case.steps.iter().zip(transcript.completed()) {
        written = record.written.as_ref().or(written);
        let Some(capture) = &step.capture else { continue };
        let bytes = captured(capture.part, &record.output.stdout);
        let file = dir.capture(&capture.name);
        let mut comparison = compare(&capture.golden, &bytes, capture.format, facts, &mut bindings);
        if let Some(written) = written {
            let mut found = unlike_written(written, step, capture, record, &bytes);
            // What a known bug prints is not what was written.
            found.retain(|violation| !comparison.is_in_actual_part(violation.line));
            comparison.violations.extend(found);
        }
        if let Some(inspected) = &record.inspected {
            comparison.violations.extend(unlike_module(capture, &bytes, &inspected.module));
            if !inspected.undefined.is_empty() {
                judged.failures.push(Failure::Module(Box::new(ModuleFailure {
                    step: StepPlace::of(case, step),
                    module: inspected.module.identity().name.clone(),
                    differences: inspected.undefined.clone(),
                })));
            }
        }
        let stdout = &record.output.stdout;
        if let Some(second) = record.second.as_ref().filter(|s| s.failed.is_some() || s.stdout != *stdout) {
            judged.failures.push(Failure::Decoded(Box::new(DecodeFailure {
                step: StepPlace::of(case, step),
                guest: stdout.clone(),
                file: file.clone(),
                second: second.clone(),
            })));
        }
        for bug in comparison.known_bugs.iter().filter(|_| comparison.passes()) {
            let known = ExpectedFailure::of_golden(&capture.golden, bug);
            match bug.seen {
                Seen::Actual => judged.present.push(known),
                Seen::Right => judged.gone.push(known),
                Seen::Neither => {}
            }
        }
        if !comparison.passes() {
            judged.failures.push(Failure::Capture(Box::new(CaptureFailure {
                golden: capture.golden.clone(),
                capture: bytes.into_owned(),
                comparison,
                bindings: bindings.clone(),
                format: capture.format,
                file,
            })));
        }
    }
    judged
}

/// How what perf prints differs from what was written to the dispatch trace log.
fn unlike_written(
    written: &Written,
    step: &Step,
    capture: &Capture,
    record: &StepRecord,
    captured: &[u8],
) -> Vec<Violation> {
    if !shows_all(&step.action) {
        return Vec::new();
    }
    let output = &record.output.stdout;
    let found = dtl::violations(written, capture.format, output);
    if capture.part == CapturePart::All {
        return found;
    }
    found.into_iter().map(|violation| in_capture(violation, output, captured)).collect()
}

/// A violation in a line of a whole output, as one of the part that was captured of it.
fn in_capture(violation: Violation, output: &[u8], captured: &[u8]) -> Violation {
    let text = split_lines(output).0.get(violation.line.saturating_sub(1)).copied();
    let captured = split_lines(captured).0;
    match text.and_then(|text| captured.iter().position(|line| *line == text)) {
        Some(at) => Violation { line: at + 1, ..violation },
        None => {
            let message = format!("line {} of the output: {}", violation.line, violation.message);
            Violation { line: 1, message }
        }
    }
}

/// How the captured formats differ from what the module's file defines.
fn unlike_module(capture: &Capture, bytes: &[u8], module: &Module) -> Vec<Violation> {
    if capture.defined_by.is_none() {
        return Vec::new();
    }
    match read_formats(bytes) {
        Ok(formats) => kmod::format_violations(module, &formats),
        Err(violation) => vec![violation],
    }
}

/// Whether what perf prints of an entry is all of it. `-F` leaves something out unless it only adds fields (`+cpu`). What
/// leaves out entries is an error of the case.
fn shows_all(action: &Action) -> bool {
    let Action::Decode { arguments, .. } = action else { return true };
    arguments.iter().enumerate().all(|(at, word)| {
        let fields = word.strip_prefix("--fields").or_else(|| word.strip_prefix("-F"));
        let fields = match fields.map(|fields| fields.trim_start_matches('=')) {
            None => return true,
            Some("") => arguments.get(at + 1).map_or("", String::as_str),
            Some(fields) => fields,
        };
        fields.split(',').all(|field| field.starts_with('+'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_are_added_leave_nothing_out() {
        let all = |line: &str| {
            let arguments = line.split(' ').map(str::to_owned).collect();
            shows_all(&Action::Decode { arguments, data: "perf.data".to_owned() })
        };
        for line in
            ["script", "script --fields=+cpu", "script -F +cpu,+srcline", "script -F+cpu", "report -D"]
        {
            assert!(all(line), "{line}");
        }
        for line in [
            "script -F time",
            "script -Ftime,cpu",
            "script --fields -comm",
            "script --fields=+cpu,time",
            "script -F",
        ] {
            assert!(!all(line), "{line}");
        }
    }

    #[test]
    fn violation_in_a_part_of_an_output_is_at_the_line_of_the_part() {
        let found = |line| in_capture(Violation { line, message: "M".to_owned() }, b"a\nb\nc\n", b"c\nb\n");
        assert_eq!(found(2), Violation { line: 2, message: "M".to_owned() });
        assert_eq!(found(3), Violation { line: 1, message: "M".to_owned() });
        assert_eq!(found(1), Violation { line: 1, message: "line 1 of the output: M".to_owned() });
        assert_eq!(found(9), Violation { line: 1, message: "line 9 of the output: M".to_owned() });
    }
}
