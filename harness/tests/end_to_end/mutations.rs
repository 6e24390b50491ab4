//! How much the goldens notice: each line of each real capture is deleted, doubled, swapped with
//! the next and edited, one change at a time, and every change that is not noticed is shown. A change is
//! noticed when a comparison fails, or when another part of a known bug is seen.

use std::collections::BTreeSet;
use std::fs;

use crate::support::prepared;
use formats::Format;
use golden::{Bindings, Comparison, Edit, Facts, Golden, Hole, Passage, PassageKind, Pattern, Seen, compare};
use guest::Project;
use guest::{self, Guest, GuestName};
use trial::case::{self, Capture, Case, MissingGolden};
use trial::{RunDir, TrialPlan, TrialRecord, Verdict, default_jobs, run_all, run_trial};

/// One change of one line.
struct Mutant {
    what: &'static str,
    lines: Vec<Vec<u8>>,
}

/// Every change of the line `at`.
fn mutants(lines: &[Vec<u8>], at: usize, format: Format) -> Vec<Mutant> {
    let mut all = Vec::new();
    let mut add = |what, change: &dyn Fn(&mut Vec<Vec<u8>>)| {
        let mut changed = lines.to_vec();
        change(&mut changed);
        if changed != lines {
            all.push(Mutant { what, lines: changed });
        }
    };
    add("deleted", &|lines| drop(lines.remove(at)));
    add("doubled", &|lines| lines.insert(at, lines[at].clone()));
    if at + 1 < lines.len() {
        add("swapped with the next", &|lines| lines.swap(at, at + 1));
    }
    add("made longer", &|lines| lines[at].push(b'x'));
    // The last byte that is not part of a value.
    let tokens = format.tokens(&lines[at]);
    let outside = |place: &usize| !tokens.iter().any(|t| (t.start..t.end).contains(place));
    if let Some(place) = (0..lines[at].len()).rev().find(outside) {
        add("edited", &|lines| lines[at][place] ^= 1);
    }
    all
}

/// The lines of a capture that may differ because the golden allows it: taken by an `optional`
/// or a `{{..}}`, or ignored by an `any`. Those that a `repeat` takes may change places with each other.
struct Loose {
    free: BTreeSet<usize>,
    repeated: BTreeSet<usize>,
}

fn loose(golden: &Golden, edits: &[Edit]) -> Loose {
    let mut loose = Loose { free: BTreeSet::new(), repeated: BTreeSet::new() };
    let (mut optional, mut repeated) = (BTreeSet::new(), BTreeSet::new());
    fn collect(passages: &[Passage], optional: &mut BTreeSet<usize>, repeated: &mut BTreeSet<usize>) {
        for passage in passages {
            match &passage.kind {
                PassageKind::Optional { .. } => {
                    optional.insert(passage.end);
                }
                PassageKind::Repeat { .. } => repeated.extend(passage.line..=passage.end),
                PassageKind::If { then, otherwise, .. } => {
                    collect(then, optional, repeated);
                    collect(otherwise.as_deref().unwrap_or_default(), optional, repeated);
                }
                _ => {}
            }
        }
    }
    collect(&golden.passages, &mut optional, &mut repeated);
    // `{{..}}` lets everything through; tests/lint.rs has the reason.
    let is_open = |pattern: &Pattern| pattern.holes().any(|hole| *hole == Hole::Rest);
    optional
        .extend(golden.patterns().into_iter().filter(|(_, pattern)| is_open(pattern)).map(|(line, _)| line));
    for edit in edits {
        match *edit {
            Edit::Ignored { capture } => {
                loose.free.insert(capture - 1);
            }
            Edit::Same { golden, capture } if optional.contains(&golden) => {
                loose.free.insert(capture - 1);
            }
            Edit::Same { golden, capture } if repeated.contains(&golden) => {
                loose.repeated.insert(capture - 1);
            }
            _ => {}
        }
    }
    loose
}

/// The captures of a trial, as lines.
fn captures(case: &Case, guest: &Guest, run: &RunDir) -> Vec<Vec<Vec<u8>>> {
    let dir = run.trial_dir(&case.id, &guest.name);
    let captures = case.steps.iter().filter_map(|step| step.capture.as_ref());
    captures
        .map(|capture| {
            let bytes = fs::read(dir.capture(&capture.name)).expect("a capture");
            let mut lines: Vec<Vec<u8>> = bytes.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
            assert_eq!(lines.pop(), Some(Vec::new()), "a capture ends with a newline");
            lines
        })
        .collect()
}

fn text_of(lines: &[Vec<u8>]) -> Vec<u8> {
    lines.iter().flat_map(|line| line.iter().copied().chain([b'\n'])).collect()
}

/// What is seen of a golden's known bugs in a capture that it fits; `None` when it does not.
fn seen(found: &Comparison) -> Option<Vec<Seen>> {
    found.passes().then(|| found.known_bugs.iter().map(|bug| bug.seen).collect())
}

/// What is seen of the known bugs of all goldens of a trial; `None` when a capture does not fit.
fn seen_of_all(case: &Case, facts: &Facts, captures: &[Vec<Vec<u8>>]) -> Option<Vec<Vec<Seen>>> {
    let mut bindings = Bindings::new();
    let goldens = case.steps.iter().filter_map(|step| step.capture.as_ref());
    let mut compare = |(capture, lines): (&Capture, &Vec<Vec<u8>>)| {
        seen(&compare(&capture.golden, &text_of(lines), capture.format, facts, &mut bindings))
    };
    goldens.zip(captures).map(&mut compare).collect()
}

/// The last run when it has every trial of these cases as they are, none failed; else a new one.
fn run_of(project: &Project, plan: &TrialPlan<'_>) -> RunDir {
    let is_good = |run: &RunDir| {
        plan.trials.iter().all(|trial| {
            let record = TrialRecord::read(&run.trial_dir(&trial.case.id, &trial.guest.name));
            record.ok().flatten().is_some_and(|record| {
                record.case_digest == trial.case.digest
                    && matches!(record.verdict, Verdict::Pass | Verdict::Xfail | Verdict::Skip)
                    && match prepared().kernel(trial.guest) {
                        Ok(kernel) => record.ran_on.is_none_or(|on| on.release == kernel.kernel.release),
                        Err(error) => panic!("{trial}: {error}"),
                    }
            })
        })
    };
    if let Some(run) = RunDir::last(project).filter(is_good) {
        return run;
    }
    let run = RunDir::create(project).expect("a directory");
    let order: Vec<usize> = (0..plan.trials.len()).collect();
    let jobs = default_jobs(&plan.guests().into_iter().cloned().collect::<Vec<_>>());
    run_all(&plan.trials, &order, jobs, |trial| run_trial(trial, prepared(), &run), &());
    run
}

#[test]
fn every_change_of_a_line_is_noticed() {
    let project = Project::at(crate::support::real_root()).expect("a project");
    let guests = guest::load_all(&project).expect("valid guests");
    let names: Vec<GuestName> = guests.iter().map(|guest| guest.name.clone()).collect();
    let cases = case::load_all(&project, &names, MissingGolden::IsAnError).expect("valid cases");
    let plan = TrialPlan::make(&cases, &guests.iter().collect::<Vec<_>>(), &[]).expect("a plan");
    let run = run_of(&project, &plan);
    let (mut tried, mut free, mut reordered, mut others) = (0, 0, 0, 0);
    let mut unnoticed = Vec::new();
    for trial in &plan.trials {
        let case = trial.case;
        // After an expected splat not every capture was made.
        let record = TrialRecord::read(&run.trial_dir(&case.id, &trial.guest.name)).expect("readable");
        let record = record.expect("a record");
        let verdict = record.verdict;
        let is_whole =
            verdict == Verdict::Pass || (verdict == Verdict::Xfail && case.expected_splats.is_empty());
        if !is_whole {
            others += 1;
            continue;
        }
        let facts = record.ran_on.expect("a guest").facts;
        let real = captures(case, trial.guest, &run);
        let as_it_is = seen_of_all(case, &facts, &real);
        assert!(as_it_is.is_some(), "{trial} does not pass as it is");
        let goldens = case.steps.iter().filter_map(|step| step.capture.as_ref());
        for (at, capture) in goldens.enumerate() {
            let bytes = text_of(&real[at]);
            let found = compare(&capture.golden, &bytes, capture.format, &facts, &mut Bindings::new());
            let loose = loose(&capture.golden, &found.edits);
            for line in 0..real[at].len() {
                for mutant in mutants(&real[at], line, capture.format) {
                    tried += 1;
                    // What is noticed in the capture itself needs no look at the others.
                    let bytes = text_of(&mutant.lines);
                    let format = capture.format;
                    let alone = compare(&capture.golden, &bytes, format, &facts, &mut Bindings::new());
                    if seen(&alone).is_none() {
                        continue;
                    }
                    let mut captures = real.clone();
                    captures[at] = mutant.lines;
                    if seen_of_all(case, &facts, &captures) != as_it_is {
                        continue;
                    }
                    let rows = mutant.what == "swapped with the next"
                        && loose.repeated.contains(&line)
                        && loose.repeated.contains(&(line + 1));
                    if loose.free.contains(&line) {
                        free += 1;
                    } else if rows {
                        reordered += 1;
                    } else {
                        let text = String::from_utf8_lossy(&real[at][line]).into_owned();
                        unnoticed.push(format!(
                            "{trial} {}:{} {}: {text}",
                            capture.name,
                            line + 1,
                            mutant.what
                        ));
                    }
                }
            }
        }
    }
    println!(
        "{tried} changes of real captures: {} unnoticed, {free} in lines that a golden leaves open with a reason, \
         {reordered} swaps of rows with equal hitcounts; {others} trials were skipped or have an expected splat",
        unnoticed.len()
    );
    assert!(tried > 1000, "only {tried} changes were tried");
    assert!(unnoticed.is_empty(), "unnoticed:\n{}", unnoticed.join("\n"));
}
