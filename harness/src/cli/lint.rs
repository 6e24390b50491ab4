//! `goldtrace lint`.

use clap::Args;

use super::error::CommandError;
use super::options::{Inputs, ProjectOption};
use super::status::Status;
use crate::report::{Colour, note, render_diagnostics};
use trial::case::MissingGolden;
use trial::lint;

/// Find stale goldens, unreachable branches, over-broad placeholders and unused known messages
#[derive(Debug, Args)]
pub(super) struct Lint {}

impl Lint {
    #[expect(clippy::unused_self, reason = "every command is run alike")]
    pub(super) fn run(&self, option: &ProjectOption) -> Result<Status, CommandError> {
        let project = option.project()?;
        let inputs = Inputs::load(&project, MissingGolden::IsAnError)?;
        let mut findings = lint::lint(&inputs.cases, &inputs.guests);
        findings.errors.extend(lint::unused_messages(&project, &inputs.cases, &inputs.guests)?);
        for (place, hole) in &findings.wide_holes {
            print_line!("{}:{}: {hole}", place.file, place.span.line)?;
        }
        print_line!("{} placeholders {{{{re:...}}}} or {{{{..}}}}", findings.wide_holes.len())?;
        if findings.errors.is_empty() {
            print_line!("{} cases, no problems found", inputs.cases.len())?;
            return Ok(Status::Success);
        }
        note(&render_diagnostics(&findings.errors, Colour::of(&std::io::stderr())));
        Ok(Status::Failed)
    }
}
