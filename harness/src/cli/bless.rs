//! `goldtrace bless`.

use clap::Args;

use super::ci::in_ci;
use super::error::CommandError;
use super::options::{Images, Inputs, ProjectOption};
use super::status::Status;
use crate::report::Output;
use guest::Project;
use trial::case::{Case, MissingGolden};
use trial::{Blessing, bless_case};

/// Write goldens from the artefacts of the last run, without booting a guest
///
/// Changes only lines that no longer match: placeholders, names and conditions that still do are kept.
#[derive(Debug, Args)]
pub(super) struct Bless {
    /// Bless only cases whose name contains one of these [default: all cases]
    #[arg(value_name = "FILTER")]
    filters: Vec<String>,
}

impl Bless {
    pub(super) fn run(&self, option: &ProjectOption) -> Result<Status, CommandError> {
        check_allowed()?;
        let project = option.project()?;
        let inputs = Inputs::load(&project, MissingGolden::ExpectsNothing)?;
        let chosen = |case: &&Case| {
            self.filters.is_empty()
                || self.filters.iter().any(|filter| case.id.as_str().contains(filter.as_str()))
        };
        let cases: Vec<&Case> = inputs.cases.iter().filter(chosen).collect();
        if cases.is_empty() {
            return Err(CommandError::NoCaseMatches { filters: self.filters.clone() });
        }
        bless(&project, &cases)
    }
}

/// Whether goldens may be written from a run of these. It is asked before anything is built or booted.
pub(super) fn check_blessable(images: &Images) -> Result<(), CommandError> {
    check_allowed()?;
    match images.changes() {
        changes if changes.is_empty() => Ok(()),
        changes => Err(CommandError::BlessOtherKernel { changes }),
    }
}

fn check_allowed() -> Result<(), CommandError> {
    if in_ci() { Err(CommandError::BlessInCi) } else { Ok(()) }
}

/// Bless cases and print the result of each.
pub(super) fn bless(project: &Project, cases: &[&Case]) -> Result<Status, CommandError> {
    let (mut refused, out) = (false, Output::default());
    for case in cases {
        match bless_case(project, case)? {
            Blessing::Unchanged => out.print(&line!("{}: unchanged", case.id)),
            Blessing::Written(files) => {
                for file in files {
                    out.print(&line!("{}: wrote {file}", case.id));
                }
            }
            Blessing::Refused(why) => {
                refused = true;
                out.print(&line!("{}: refused: {why}", case.id));
            }
        }
    }
    out.finish()?;
    Ok(if refused { Status::Failed } else { Status::Success })
}
