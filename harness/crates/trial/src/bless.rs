//! Goldens of a case out of the last run's artefacts. Boots nothing.

use std::fs;
use std::io::Write;

use camino::Utf8PathBuf;

use crate::artefacts::RunDir;
use crate::case::{Case, GOLDEN_EXTENSION};
use crate::record::{TrialRecord, Verdict};
use golden::bless::{GuestNames, Namer, Observed, bless, with_header};
use golden::{Facts, Header};
use guest::Project;

/// What came of blessing a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blessing {
    /// These goldens were written.
    Written(Vec<Utf8PathBuf>),
    /// Every golden says already what was captured.
    Unchanged,
    /// Nothing was written, and why.
    Refused(String),
}

/// Write the goldens of `case` from the last run.
///
/// Either all goldens of the case that have to change are written, each whole or not at all, or
/// none is.
///
/// # Errors
/// When files cannot be read or written.
pub fn bless_case(project: &Project, case: &Case) -> std::io::Result<Blessing> {
    let refused = |why: String| Ok(Blessing::Refused(why));
    let Some(run) = RunDir::last(project) else {
        return refused("there is no last run: run it first".to_owned());
    };
    let mut records = Vec::new();
    let mut guests = Vec::new();
    let mut skipped = None;
    for guest in &case.guests {
        let dir = run.trial_dir(&case.id, guest);
        match TrialRecord::read(&dir)? {
            None => {
                return refused(format!(
                    "the last run has no trial of it on {guest}: what is written must fit all its guests"
                ));
            }
            // What the case requires is not there: no capture of it can come from that guest.
            Some(TrialRecord { verdict: Verdict::Skip, unusable, .. }) => skipped = unusable,
            Some(TrialRecord { unusable: Some(why), .. }) => return refused(format!("on {guest}, {why}")),
            Some(record) if record.case_digest != case.digest => {
                return refused("the case has changed since the last run: run it again".to_owned());
            }
            Some(record) => {
                records.push((dir, record));
                guests.push(guest.as_str());
            }
        }
    }
    if let (true, Some(why)) = (records.is_empty(), skipped) {
        return refused(format!("on each of its guests {why}"));
    }
    let kernels: Vec<String> = records.iter().map(|(_, record)| version(&record.facts)).collect();
    if kernels.iter().any(|kernel| *kernel != kernels[0]) {
        return refused(format!("its guests ran different kernels: {}", kernels.join(", ")));
    }
    let blessed = format!("{}/{}", guests.join(","), kernels.first().map_or("", String::as_str));

    let captures: Vec<_> =
        case.steps.iter().enumerate().filter_map(|(at, step)| Some((at, step.capture.as_ref()?))).collect();
    let mut namer = Namer::new(captures.iter().map(|(_, capture)| &capture.golden));
    let mut names: Vec<GuestNames> = records.iter().map(|_| GuestNames::default()).collect();
    let mut changed = Vec::new();
    for (at, capture) in captures {
        let mut bytes: Vec<Vec<u8>> = Vec::new();
        for ((dir, _), guest) in records.iter().zip(&guests) {
            match fs::read(dir.capture(&capture.name)) {
                Ok(read) => bytes.push(read),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    return refused(format!(
                        "on {guest}, the trial ended before `{}` was captured",
                        capture.name
                    ));
                }
                Err(error) => return Err(error),
            }
        }
        let observed: Vec<Observed<'_>> = records
            .iter()
            .zip(&bytes)
            .map(|((_, record), capture)| Observed { facts: &record.facts, capture })
            .collect();
        let golden = match bless(&capture.golden, capture.format, &observed, &mut namer, &mut names) {
            Ok(golden) => golden,
            Err(why) => return refused(format!("{}: {why}; edit it by hand", capture.golden.file)),
        };
        let old = &capture.golden.header;
        let head = Header {
            case: Some(case.id.as_str().to_owned()),
            capture: Some(capture.name.clone()),
            steps: Some(case.steps_digest(at)),
            // A golden that still fits was blessed when it was written, not now.
            blessed: if golden.is_some() {
                Some(blessed.clone())
            } else {
                old.blessed.clone().or(Some(blessed.clone()))
            },
        };
        if golden.is_some() || head != *old {
            changed.push((
                project.path(&capture.golden.file),
                with_header(golden.as_ref().unwrap_or(&capture.golden), head),
            ));
        }
    }
    let mut written = Vec::new();
    for (path, golden) in changed {
        let folder = path.parent().expect("a golden stands in a folder");
        let mut file =
            tempfile::Builder::new().suffix(&format!(".{GOLDEN_EXTENSION}")).tempfile_in(folder)?;
        file.write_all(golden.text.as_str().as_bytes())?;
        // A temporary file is for its owner's eyes only; a golden is a source file.
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        file.as_file().set_permissions(mode)?;
        file.persist(&path).map_err(|e| e.error)?;
        written.push(project.shown(&path).to_owned());
    }
    Ok(if written.is_empty() { Blessing::Unchanged } else { Blessing::Written(written) })
}

fn version(facts: &Facts) -> String {
    facts.kernel.iter().map(ToString::to_string).collect::<Vec<_>>().join(".")
}
