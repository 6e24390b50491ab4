//! Goldens that no longer do what they seem to: stale after an edit of the steps, parts that no guest
//! ever selects, holes that let much through; and known messages of guests that no trial prints any more.
//!
//! This module boots nothing and prints nothing.

use std::collections::BTreeSet;
use std::io;

use crate::artefacts::RunDir;
use crate::case::Case;
use crate::record::TrialRecord;
use diagnostic::{Diagnostic, Span};
use golden::{Condition, Golden, Hole, Passage, PassageKind, Relation};
use guest::{Guest, KnownMessage, Project};

/// What was found.
#[derive(Debug, Default)]
pub struct Findings {
    /// Faults, each with its place.
    pub errors: Vec<Diagnostic>,
    /// Holes that match by a regular expression or match anything, each with its place and text.
    pub wide_holes: Vec<(Diagnostic, String)>,
}

/// Look at all goldens of all cases.
pub fn lint(cases: &[Case], guests: &[Guest]) -> Findings {
    let mut findings = Findings::default();
    for case in cases {
        findings.errors.extend(stale(case));
        let archs: Vec<&str> = guests.iter().filter(|g| case.runs_on(&g.name)).map(|g| g.arch.name).collect();
        for golden in goldens(case) {
            unselected(golden, &golden.passages, &archs, &mut findings.errors);
            for (line, pattern) in golden.patterns() {
                for hole in pattern.holes().filter(|hole| matches!(hole, Hole::Rest | Hole::Regex(_))) {
                    let place = at_line(golden, line, "a wide hole");
                    findings.wide_holes.push((place, hole.to_string()));
                }
            }
        }
    }
    findings
}

/// Known messages of guests that no trial of the last run printed. Nothing is said of a guest of which a trial is missing
/// in the last run, was not run to its end, or was of another case.
///
/// # Errors
/// When the last run cannot be read.
pub fn unused_messages(project: &Project, cases: &[Case], guests: &[Guest]) -> io::Result<Vec<Diagnostic>> {
    let Some(run) = RunDir::last(project) else { return Ok(Vec::new()) };
    let mut unused = Vec::new();
    for guest in guests {
        if let Some(seen) = messages_of(&run, cases, guest)? {
            let known = guest.known_messages.iter();
            let silent = known.filter(|message| !message.sometimes && !seen.contains(&message.pattern));
            unused.extend(silent.map(|message| unused_message(guest, message)));
        }
    }
    Ok(unused)
}

/// The known messages in a run of all cases of a guest; `None` when it is not that.
fn messages_of(run: &RunDir, cases: &[Case], guest: &Guest) -> io::Result<Option<BTreeSet<String>>> {
    let mut seen = BTreeSet::new();
    for case in cases.iter().filter(|case| case.boots() && case.runs_on(&guest.name)) {
        match TrialRecord::read(&run.trial_dir(&case.id, &guest.name))? {
            Some(record) if record.case_digest == case.digest && record.verdict.is_of_the_kernel() => {
                seen.extend(record.console.known_messages);
            }
            _ => return Ok(None),
        }
    }
    Ok(Some(seen))
}

fn unused_message(guest: &Guest, message: &KnownMessage) -> Diagnostic {
    Diagnostic {
        file: format!("guests/{}.yaml", guest.name).into(),
        span: Span { line: message.line, column: 1, width: 1 },
        message: format!("no trial of the last run printed the known message `{}`", message.pattern),
        help: Some("remove it: a message that a healthy kernel does not print is a splat".to_owned()),
        source_line: String::new(),
    }
}

/// Goldens whose head says that they were written for other steps, or for another place.
pub fn stale(case: &Case) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    for (at, step) in case.steps.iter().enumerate() {
        let Some(capture) = &step.capture else { continue };
        let head = &capture.golden.header;
        let digest = case.steps_digest(at);
        let mut check =
            |found: &Option<String>, expected: &str, message: &str| {
                if found.as_ref().is_some_and(|found| found != expected) {
                    let error = at_line(&capture.golden, 1, message);
                    errors.push(error.with_help(
                        "read the golden; when it is right, `goldtrace bless` renews its first line",
                    ));
                }
            };
        check(&head.steps, &digest, "the case's steps have changed since this golden was written");
        check(&head.case, case.id.as_str(), "this golden was written for another case");
        check(&head.capture, &capture.name, "this golden was written for another capture");
    }
    errors
}

fn goldens(case: &Case) -> impl Iterator<Item = &Golden> {
    case.steps.iter().filter_map(|step| Some(&step.capture.as_ref()?.golden))
}

fn at_line(golden: &Golden, line: usize, message: &str) -> Diagnostic {
    let text = golden.text.line(line);
    Diagnostic {
        file: golden.file.clone(),
        span: Span { line, column: 1, width: text.chars().count().max(1) },
        message: message.to_owned(),
        help: None,
        source_line: text.to_owned(),
    }
}

/// Parts under conditions that hold on none of the case's guests, whatever their kernels.
fn unselected(golden: &Golden, passages: &[Passage], archs: &[&str], errors: &mut Vec<Diagnostic>) {
    for passage in passages {
        match &passage.kind {
            PassageKind::If { condition, then, otherwise } => {
                let verdicts: Vec<Option<bool>> = archs.iter().map(|arch| on_arch(condition, arch)).collect();
                let help = format!("the case runs on {}", archs.join(", "));
                if verdicts.iter().all(|verdict| *verdict == Some(false)) {
                    let error = at_line(golden, passage.line, "no guest of the case ever selects this part");
                    errors.push(error.with_help(help.clone()));
                }
                if otherwise.is_some() && verdicts.iter().all(|verdict| *verdict == Some(true)) {
                    let error = at_line(
                        golden,
                        passage.line,
                        "no guest of the case ever selects the `else` of this part",
                    );
                    errors.push(error.with_help(help));
                }
                // Inside, only the guests that may get there count.
                let may = |wanted: bool| -> Vec<&str> {
                    archs
                        .iter()
                        .zip(&verdicts)
                        .filter(|(_, v)| **v != Some(!wanted))
                        .map(|(a, _)| *a)
                        .collect()
                };
                let (yes, no) = (may(true), may(false));
                if !yes.is_empty() {
                    unselected(golden, then, &yes, errors);
                }
                if !no.is_empty() {
                    unselected(golden, otherwise.as_deref().unwrap_or_default(), &no, errors);
                }
            }
            PassageKind::Repeat { block, .. } | PassageKind::Unordered { block, .. } => {
                unselected(golden, block, archs, errors);
            }
            PassageKind::Xfail(xfail) => {
                let holds = |arch: &&str| xfail.condition.as_ref().map(|c| on_arch(c, arch));
                if archs.iter().all(|arch| holds(arch) == Some(Some(false))) {
                    let error = at_line(golden, passage.line, "no guest of the case ever has this known bug");
                    errors.push(error.with_help(format!("the case runs on {}", archs.join(", "))));
                }
            }
            PassageKind::Lines(_)
            | PassageKind::Optional { .. }
            | PassageKind::Any(_)
            | PassageKind::Absent(_) => {}
        }
    }
}

/// Whether parts come to `decisive` because one of them does, or to the other value because all do.
fn decided(parts: &[Condition], arch: &str, decisive: bool) -> Option<bool> {
    let verdicts: Vec<Option<bool>> = parts.iter().map(|part| on_arch(part, arch)).collect();
    if verdicts.contains(&Some(decisive)) {
        Some(decisive)
    } else if verdicts.contains(&None) {
        None
    } else {
        Some(!decisive)
    }
}

/// Whether a condition holds on an architecture; `None` when that depends on the kernel.
fn on_arch(condition: &Condition, arch: &str) -> Option<bool> {
    match condition {
        Condition::Any(parts) => decided(parts, arch, true),
        Condition::All(parts) => decided(parts, arch, false),
        Condition::Not(inner) => on_arch(inner, arch).map(|holds| !holds),
        Condition::Arch(name) => Some(name == arch),
        // A version that is at least nothing always holds.
        Condition::Kernel(Relation::AtLeast, version) if version.iter().all(|part| *part == 0) => Some(true),
        Condition::Kernel(..) | Condition::Config(_) | Condition::Feature(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::*;
    use crate::record::{ConsoleRecord, Verdict};
    use crate::testing::{TestRun, case, real_guest, step};

    #[test]
    fn known_message_that_no_trial_of_a_whole_run_printed_is_found() {
        let message = |pattern: &str, sometimes, line| KnownMessage {
            pattern: pattern.to_owned(),
            reason: "R".to_owned(),
            sometimes,
            line,
        };
        let known_messages = vec![message("a", false, 3), message("b", false, 5), message("c", true, 7)];
        let guest = Guest { known_messages, ..real_guest("x86_64") };
        let cases = ["c0", "c1"]
            .map(|id| Case { id: crate::case::CaseId::new(id), ..case(vec![step(3, "out", "right\n")]) });
        let run = TestRun::new();
        let unused = || {
            let found =
                unused_messages(&run.project, &cases, std::slice::from_ref(&guest)).expect("readable");
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let record = |case: &Case, verdict, seen: &[&str]| {
            let seen = seen.iter().map(|pattern| (*pattern).to_owned()).collect();
            let record = TrialRecord {
                case_digest: case.digest.clone(),
                ran_on: None,
                verdict,
                elapsed: None,
                console: ConsoleRecord { splats: Vec::new(), known_messages: seen },
                unusable: None,
            };
            run.recorded(case, "x86_64", &record, &[]);
        };
        record(&cases[0], Verdict::Pass, &["a"]);
        assert_eq!(unused(), [""; 0], "a trial is missing");
        record(&cases[1], Verdict::Error, &[]);
        assert_eq!(unused(), [""; 0], "a trial was not run to its end");
        record(&cases[1], Verdict::Fail, &["a"]);
        let expected = "guests/x86_64.yaml:5:1: no trial of the last run printed the known message `b` (remove it: a \
                        message that a healthy kernel does not print is a splat)";
        assert_eq!(unused(), [expected]);
        record(&cases[1], Verdict::Xfail, &["b"]);
        assert_eq!(unused(), [""; 0]);
    }

    fn errors(body: &str, archs: &[&str]) -> Vec<usize> {
        let golden =
            Golden::parse(Utf8Path::new("g"), format!("#@ golden v1\n{body}").as_bytes()).expect("valid");
        let mut errors = Vec::new();
        unselected(&golden, &golden.passages, archs, &mut errors);
        errors.iter().map(|error| error.span.line).collect()
    }

    #[test]
    fn parts_that_no_guest_selects_are_found() {
        let both = ["ppc64le", "x86_64"];
        assert_eq!(errors("#@ if arch == ppc64le\na\n#@ end\n", &["x86_64"]), [2]);
        assert_eq!(errors("#@ if arch == ppc64le\na\n#@ end\n", &both), [0_usize; 0]);
        assert_eq!(errors("#@ if arch == x86_64 || config.A\na\n#@ else\nb\n#@ end\n", &["x86_64"]), [2]);
        assert_eq!(
            errors("#@ if arch == x86_64 && kernel > 7\na\n#@ else\nb\n#@ end\n", &both),
            [0_usize; 0]
        );
        assert_eq!(errors("#@ if arch == x86_64\n#@ if arch == ppc64le\na\n#@ end\n#@ end\n", &both), [3]);
    }

    #[test]
    fn known_bug_that_no_guest_has_is_found() {
        let body = "#@ xfail \"x\" if arch == ppc64le && kernel < 8\na\n#@ actual\nb\n#@ end\n";
        assert_eq!(errors(body, &["x86_64"]), [2]);
        assert_eq!(errors(body, &["ppc64le", "x86_64"]), [0_usize; 0]);
        let unconditional = body.replace(" if arch == ppc64le && kernel < 8", "");
        assert_eq!(errors(&unconditional, &["x86_64"]), [0_usize; 0]);
        let nested = format!("#@ if arch == x86_64\n{body}#@ end\n");
        assert_eq!(errors(&nested, &["ppc64le", "x86_64"]), [3]);
    }
}
