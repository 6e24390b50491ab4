//! Results of trials for tests.

use std::time::Duration;

use camino::Utf8Path;

use formats::Format;
use golden::{Bindings, Facts, Golden, compare};
use trial::{CaptureFailure, Failure, Outcome, TrialError, TrialResult};
use vm::Splat;

pub(super) fn result(name: &str, outcome: Outcome) -> TrialResult {
    TrialResult { name: name.to_owned(), repetition: 0, outcome, elapsed: Duration::from_secs(1) }
}

/// The capture of a golden, which is given without its first line.
pub(super) fn capture_failure(golden: &str, capture: &str, format: Format) -> Failure {
    let text = format!("#@ golden v1\n{golden}");
    let golden = Golden::parse(Utf8Path::new("out.golden"), text.as_bytes()).expect("valid");
    let mut bindings = Bindings::new();
    let capture = capture.as_bytes().to_vec();
    let comparison = compare(&golden, &capture, format, &Facts::default(), &mut bindings);
    let file = "last/out".into();
    Failure::Capture(Box::new(CaptureFailure { golden, capture, comparison, bindings, format, file }))
}

pub(super) fn splat(line: &str) -> Failure {
    let splat = Splat::scan(format!("<4>[    1.000000] {line}\n").as_bytes()).remove(0);
    Failure::Kernel { splat, others: 0, step: None, console: "last/console.log".into() }
}

pub(super) fn error(what: &str) -> Outcome {
    Outcome::Error(Box::new(TrialError {
        what: what.to_owned(),
        step: None,
        command: "qemu -x".to_owned(),
        stderr: String::new(),
        console: String::new(),
        dir: Some("last/a".into()),
    }))
}
