//! Which trials of a case failed in the same way, so that a report shows the failure once.
//!
//! Two captures differ from their golden in the same way when the same golden lines are missing and the same capture
//! lines are unexpected, apart from what varies from run to run by nature: the tokens of the capture's format. Splats,
//! failed steps and errors are the same when their text and their step are. This module shows nothing.

use std::mem;

use camino::Utf8Path;

use formats::{Format, Piece, TokenKind};
use golden::{Conflict, Edit, split_lines};
use trial::{CaptureFailure, ExpectedFailure, Failure, Outcome, StepPlace, StepProblem, Taint, TrialResult};

/// The trials in their order, those of one case that failed in the same way together.
pub fn groups<'t>(trials: impl IntoIterator<Item = &'t TrialResult>) -> Vec<Vec<&'t TrialResult>> {
    let mut groups: Vec<(Option<Way<'t>>, Vec<&'t TrialResult>)> = Vec::new();
    for trial in trials {
        let way = Way::of(trial);
        match groups.iter_mut().find(|(known, _)| way.is_some() && *known == way) {
            Some((_, group)) => group.push(trial),
            None => groups.push((way, vec![trial])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// How a trial failed, without what differs in another run of the same case.
#[derive(Debug, PartialEq, Eq)]
struct Way<'t> {
    case: &'t str,
    what: What<'t>,
}

#[derive(Debug, PartialEq, Eq)]
enum What<'t> {
    Failed { gone: &'t [ExpectedFailure], failures: Vec<FailureWay<'t>> },
    Error { what: &'t str, step: Option<&'t StepPlace> },
}

#[derive(Debug, PartialEq, Eq)]
enum FailureWay<'t> {
    Capture(CaptureWay<'t>),
    Module { step: &'t StepPlace, module: &'t str, errors: &'t [String] },
    Step { problem: &'t StepProblem, step: Option<&'t StepPlace> },
    Tainted { taints: &'t [Taint], step: &'t StepPlace },
    Kernel { splat: String, others: usize, step: Option<&'t StepPlace> },
}

#[derive(Debug, PartialEq, Eq)]
struct CaptureWay<'t> {
    golden: &'t Utf8Path,
    lines: Vec<DifferentLine<'t>>,
    conflicts: Vec<ConflictWay<'t>>,
    violations: Vec<(Vec<PieceWay<'t>>, String)>,
    missing_final_newline: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum DifferentLine<'t> {
    Missing(usize),
    Unexpected { after_golden: usize, pieces: Vec<PieceWay<'t>> },
}

#[derive(Debug, PartialEq, Eq)]
enum PieceWay<'t> {
    Literal(&'t [u8]),
    Varies(TokenKind),
}

#[derive(Debug, PartialEq, Eq)]
struct ConflictWay<'t> {
    kind: mem::Discriminant<Conflict>,
    /// Names or the hole.
    words: [&'t str; 2],
    golden: &'t Utf8Path,
    golden_line: usize,
}

impl<'t> Way<'t> {
    /// `None` for a trial that has nothing to show, or nothing that could be the same elsewhere.
    fn of(trial: &'t TrialResult) -> Option<Way<'t>> {
        let failures = |found: &'t [Failure]| found.iter().map(FailureWay::of).collect::<Option<Vec<_>>>();
        let what = match &trial.outcome {
            Outcome::Fail(found) => What::Failed { gone: &[], failures: failures(found)? },
            Outcome::Xpass { gone, failures: found } => What::Failed { gone, failures: failures(found)? },
            Outcome::Error(error) => What::Error { what: &error.what, step: error.step.as_ref() },
            Outcome::Pass | Outcome::Xfail(_) | Outcome::Skip(_) | Outcome::Interrupted => return None,
        };
        let case = trial.name.rsplit_once('@').map_or(trial.name.as_str(), |(case, _)| case);
        Some(Way { case, what })
    }
}

impl<'t> FailureWay<'t> {
    /// `None` where perf in the decoder and in the guest differ: what they print is each trial's own.
    fn of(failure: &'t Failure) -> Option<FailureWay<'t>> {
        match failure {
            Failure::Capture(failure) => Some(FailureWay::Capture(CaptureWay::of(failure))),
            Failure::Decoded(_) => None,
            Failure::Module(failure) => Some(FailureWay::Module {
                step: &failure.step,
                module: &failure.module,
                errors: &failure.differences,
            }),
            Failure::Step(failure) => {
                Some(FailureWay::Step { problem: &failure.error.problem, step: failure.step.as_ref() })
            }
            Failure::Tainted { taints, step, .. } => Some(FailureWay::Tainted { taints, step }),
            Failure::Kernel { splat, others, step, .. } => {
                Some(FailureWay::Kernel { splat: splat.fingerprint(), others: *others, step: step.as_ref() })
            }
        }
    }
}

impl<'t> CaptureWay<'t> {
    fn of(failure: &'t CaptureFailure) -> CaptureWay<'t> {
        let CaptureFailure { golden, capture, comparison, format, .. } = failure;
        let (texts, _) = split_lines(capture);
        let line = |number: usize| {
            let text: &'t [u8] =
                number.checked_sub(1).and_then(|at| texts.get(at)).copied().unwrap_or_default();
            pieces(text, *format)
        };
        let mut after_golden = 1;
        let mut lines = Vec::new();
        for edit in &comparison.edits {
            match *edit {
                Edit::Same { golden, .. } => after_golden = golden,
                Edit::Missing { golden } => lines.push(DifferentLine::Missing(golden)),
                Edit::Unexpected { capture } => {
                    lines.push(DifferentLine::Unexpected { after_golden, pieces: line(capture) });
                }
                Edit::Ignored { .. } => {}
            }
        }
        CaptureWay {
            golden: &golden.file,
            lines,
            conflicts: comparison.conflicts.iter().map(ConflictWay::of).collect(),
            violations: comparison
                .violations
                .iter()
                .map(|v| (line(v.line), without_numbers(&v.message)))
                .collect(),
            missing_final_newline: comparison.missing_final_newline,
        }
    }
}

impl<'t> ConflictWay<'t> {
    fn of(conflict: &'t Conflict) -> ConflictWay<'t> {
        let words = match conflict {
            Conflict::OtherValue { name, .. } => [name.as_str(), ""],
            Conflict::OtherName { bound, here, .. } => [bound.0.as_str(), here.0.as_str()],
            Conflict::Unrelated { hole, .. } | Conflict::Unbound { hole, .. } => [hole.as_str(), ""],
        };
        let here = conflict.here();
        ConflictWay {
            kind: mem::discriminant(conflict),
            words,
            golden: &here.golden,
            golden_line: here.golden_line,
        }
    }
}

fn pieces(line: &[u8], format: Format) -> Vec<PieceWay<'_>> {
    let pieces = format.pieces(line).into_iter();
    pieces
        .map(|piece| match piece {
            Piece::Literal(span) => PieceWay::Literal(&line[span]),
            Piece::Token(token) => PieceWay::Varies(token.kind),
        })
        .collect()
}

/// The message of a broken rule names the values that break it.
fn without_numbers(message: &str) -> String {
    let words = message.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    words.map(|word| if word.contains(|c: char| c.is_ascii_digit()) { "#" } else { word }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::{capture_failure, error, result, splat};

    fn names(trials: &[TrialResult]) -> Vec<Vec<&str>> {
        groups(trials).iter().map(|group| group.iter().map(|trial| trial.name.as_str()).collect()).collect()
    }

    /// Two trials of a case whose captures are compared with one golden.
    fn captures(golden: &str, captures: [&str; 2], format: Format) -> Vec<Vec<String>> {
        let trial = |guest: &str, capture: &str| {
            result(&format!("a@{guest}"), Outcome::Fail(vec![capture_failure(golden, capture, format)]))
        };
        let trials = [trial("x", captures[0]), trial("y", captures[1])];
        names(&trials).into_iter().map(|group| group.into_iter().map(str::to_owned).collect()).collect()
    }

    #[test]
    fn equal_differences_are_one_group() {
        assert_eq!(captures("a\nb\n", ["a\nc\n", "a\nc\n"], Format::Plain), [["a@x", "a@y"]]);
    }

    #[test]
    fn different_text_is_two_groups() {
        assert_eq!(captures("a\nb\n", ["a\nc\n", "a\nd\n"], Format::Plain), [["a@x"], ["a@y"]]);
        assert_eq!(captures("a\nb\n", ["a\n", "b\n"], Format::Plain), [["a@x"], ["a@y"]]);
        assert_eq!(captures("a\nb\n", ["c\na\nb\n", "a\nb\nc\n"], Format::Plain), [["a@x"], ["a@y"]]);
        assert_eq!(captures("a\n", ["a", "a\nb"], Format::Plain), [["a@x"], ["a@y"]]);
    }

    #[test]
    fn volatile_values_are_set_aside() {
        let lines = ["hist_data: 00000000aaaaaaaa\n", "hist_data: 00000000bbbbbbbb\n"];
        assert_eq!(captures("a\n", lines, Format::HistDebug), [["a@x", "a@y"]]);
        assert_eq!(captures("a\n", lines, Format::Plain), [["a@x"], ["a@y"]]);
    }

    #[test]
    fn conflicts_of_the_same_names_are_one_group() {
        let golden = "hist_data: {{ptr:A}}\nhist_data: {{ptr:A}}\n";
        let other = |a: &str, b: &str| format!("hist_data: 00000000{a}\nhist_data: 00000000{b}\n");
        let both = [other("aaaaaaaa", "bbbbbbbb"), other("cccccccc", "dddddddd")];
        assert_eq!(captures(golden, [&both[0], &both[1]], Format::HistDebug), [["a@x", "a@y"]]);
        let named = "hist_data: {{ptr:A}}\nhist_data: {{ptr:B}}\n";
        let one = other("aaaaaaaa", "aaaaaaaa");
        assert_eq!(captures(named, [&one, &one], Format::HistDebug), [["a@x", "a@y"]]);
        assert_eq!(captures(named, [&one, &other("aaaaaaaa", "x")], Format::HistDebug), [["a@x"], ["a@y"]]);
    }

    #[test]
    fn equal_splats_and_errors_are_one_group() {
        let fail = |name: &str, line: &str| result(name, Outcome::Fail(vec![splat(line)]));
        let trials =
            [fail("a@x", "BUG: b"), fail("a@y", "BUG: b"), fail("a@z", "BUG: c"), fail("b@x", "BUG: b")];
        assert_eq!(names(&trials), [vec!["a@x", "a@y"], vec!["a@z"], vec!["b@x"]]);
        let trials = ["a@x", "a@y"].map(|name| result(name, error("timed out after 1 s")));
        assert_eq!(names(&trials), [["a@x", "a@y"]]);
        let trials =
            [result("a@x", error("one")), result("a@y", error("other")), result("a@z", Outcome::Pass)];
        assert_eq!(names(&trials), [["a@x"], ["a@y"], ["a@z"]]);
    }

    #[test]
    fn one_more_failure_is_another_way() {
        let capture = || capture_failure("a\n", "b\n", Format::Plain);
        let trials = [
            result("a@x", Outcome::Fail(vec![capture()])),
            result("a@y", Outcome::Fail(vec![capture(), splat("BUG: b")])),
        ];
        assert_eq!(names(&trials), [["a@x"], ["a@y"]]);
    }
}
