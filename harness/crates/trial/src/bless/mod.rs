//! Goldens of a case out of the last run's artefacts. Boots nothing.
//!
//! Nothing is written from a trial that was no clean observation of the kernel: an error, a splat, captures that the
//! harness found to contradict what it knows, other steps than the case has now. All goldens of a case are written or none.

mod refusal;
#[cfg(test)]
mod tests;
mod write;

use std::fs;
use std::io;

use camino::Utf8PathBuf;
use golden::bless::{GuestNames, Namer, Observed, bless, with_header};
use golden::{Facts, Golden, Header};
use guest::Project;

use crate::artefacts::{RunDir, TrialDir};
use crate::case::{Capture, Case};
use crate::record::{RanOn, TrialRecord, Verdict};
pub use refusal::Refusal;
use write::write_all;

/// What came of blessing a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blessing {
    /// These goldens were written.
    Written(Vec<Utf8PathBuf>),
    /// Every golden is already as was captured.
    Unchanged,
    /// Nothing was written, and why.
    Refused(Refusal),
}

/// Write the goldens of `case` from the last run.
///
/// Either all goldens of the case that have to change are written, each whole or not at all, or
/// none is.
///
/// # Errors
/// When files cannot be read or written.
pub fn bless_case(project: &Project, case: &Case) -> io::Result<Blessing> {
    let Some(run) = RunDir::last(project) else { return Ok(Blessing::Refused(Refusal::NoRun)) };
    let changed = match propose(case, &run)? {
        Ok(changed) => changed,
        Err(refusal) => return Ok(Blessing::Refused(refusal)),
    };
    if changed.is_empty() {
        return Ok(Blessing::Unchanged);
    }
    let written = changed.iter().map(|golden| golden.file.clone()).collect();
    let files = changed.iter().map(|golden| (project.path(&golden.file), golden.text.as_str().as_bytes()));
    write_all(files)?;
    Ok(Blessing::Written(written))
}

/// A trial that captures are taken from.
struct Source {
    guest: String,
    dir: TrialDir,
    ran_on: RanOn,
}

/// The goldens of the case that have to change, with what they change to.
fn propose(case: &Case, run: &RunDir) -> io::Result<Result<Vec<Golden>, Refusal>> {
    let sources = match sources(case, run)? {
        Ok(sources) => sources,
        Err(refusal) => return Ok(Err(refusal)),
    };
    if let Some(source) = sources.iter().find(|source| !source.ran_on.changes.is_empty()) {
        return Ok(Err(Refusal::ChangedKernel(source.ran_on.changes.clone())));
    }
    let kernels: Vec<String> = sources.iter().map(|source| version(&source.ran_on.facts)).collect();
    if kernels.iter().any(|kernel| *kernel != kernels[0]) {
        return Ok(Err(Refusal::DifferentKernels(kernels)));
    }
    let guests: Vec<&str> = sources.iter().map(|source| source.guest.as_str()).collect();
    let blessed = format!("{}/{}", guests.join(","), kernels.first().map_or("", String::as_str));

    let captures: Vec<_> =
        case.steps.iter().enumerate().filter_map(|(at, step)| Some((at, step.capture.as_ref()?))).collect();
    let mut namer = Namer::new(captures.iter().map(|(_, capture)| &capture.golden));
    let mut names: Vec<GuestNames> = sources.iter().map(|_| GuestNames::default()).collect();
    let mut changed = Vec::new();
    for (at, capture) in captures {
        let bytes = match read_captures(&sources, capture)? {
            Ok(bytes) => bytes,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let seen = sources.iter().zip(&bytes);
        let observed: Vec<Observed<'_>> =
            seen.map(|(source, capture)| Observed { facts: &source.ran_on.facts, capture }).collect();
        let golden = match bless(&capture.golden, capture.format, &observed, &mut namer, &mut names) {
            Ok(golden) => golden,
            Err(why) => {
                let golden = capture.golden.file.clone();
                return Ok(Err(Refusal::ByHand { golden, why }));
            }
        };
        let old = &capture.golden.header;
        let header = Header {
            case: Some(case.id.as_str().to_owned()),
            capture: Some(capture.name.clone()),
            steps: Some(case.steps_digest(at)),
            // A golden that still fits was blessed when it was written, not now.
            blessed: old.blessed.clone().filter(|_| golden.is_none()).or(Some(blessed.clone())),
        };
        if golden.is_some() || header != *old {
            changed.push(with_header(golden.as_ref().unwrap_or(&capture.golden), header));
        }
    }
    Ok(Ok(changed))
}

/// The trials of the last run that the captures are taken from, one for each guest of the case.
fn sources(case: &Case, run: &RunDir) -> io::Result<Result<Vec<Source>, Refusal>> {
    let mut sources = Vec::new();
    let mut skipped = None;
    for guest in &case.guests {
        let dir = run.trial_dir(&case.id, guest);
        let guest = guest.as_str().to_owned();
        let Some(record) = TrialRecord::read(&dir)? else { return Ok(Err(Refusal::NoTrial { guest })) };
        match record {
            // What the case requires is not there: no capture of it can come from that guest.
            TrialRecord { verdict: Verdict::Skip, unusable, .. } => skipped = unusable,
            TrialRecord { unusable: Some(why), .. } => return Ok(Err(Refusal::Unusable { guest, why })),
            TrialRecord { case_digest, .. } if case_digest != case.digest => {
                return Ok(Err(Refusal::CaseChanged));
            }
            TrialRecord { ran_on: Some(ran_on), .. } => sources.push(Source { guest, dir, ran_on }),
            TrialRecord { ran_on: None, .. } => return Ok(Err(Refusal::NoTrial { guest })),
        }
    }
    match (sources.is_empty(), skipped) {
        (true, Some(why)) => Ok(Err(Refusal::Skipped(why))),
        _ => Ok(Ok(sources)),
    }
}

/// What each source has of a capture.
fn read_captures(sources: &[Source], capture: &Capture) -> io::Result<Result<Vec<Vec<u8>>, Refusal>> {
    let mut captures = Vec::new();
    for source in sources {
        match fs::read(source.dir.capture(&capture.name)) {
            Ok(read) => captures.push(read),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (guest, capture) = (source.guest.clone(), capture.name.clone());
                return Ok(Err(Refusal::NotCaptured { guest, capture }));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Ok(captures))
}

fn version(facts: &Facts) -> String {
    facts.kernel.iter().map(ToString::to_string).collect::<Vec<_>>().join(".")
}
