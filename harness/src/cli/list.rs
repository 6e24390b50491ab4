//! `goldtrace list`.

use std::collections::BTreeMap;

use clap::Args;

use super::error::CommandError;
use super::options::{Guests, Inputs, ProjectOption};
use super::status::Status;
use trial::TrialPlan;
use trial::case::MissingGolden;

/// Print cases and guests, and what a trial is skipped without
#[derive(Debug, Args)]
pub(super) struct List {
    /// List only trials whose name (CASE@GUEST) contains one of these [default: all]
    #[arg(value_name = "FILTER")]
    filters: Vec<String>,
    #[command(flatten)]
    guests: Guests,
}

impl List {
    pub(super) fn run(&self, option: &ProjectOption) -> Result<Status, CommandError> {
        let project = option.project()?;
        let inputs = Inputs::load(&project, MissingGolden::IsAnError)?;
        let guests = self.guests.choose(&inputs.guests)?;
        print_line!("guests:")?;
        for guest in &guests {
            print_line!(
                "  {:10} {}, {} CPUs, {} MiB, {} -machine {}",
                guest.name,
                guest.arch.name,
                guest.cpus,
                guest.memory_mib,
                guest.qemu.binary,
                guest.qemu.machine
            )?;
        }
        let plan = TrialPlan::make(&inputs.cases, &guests, &self.filters)?;
        let mut by_case: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for trial in &plan.trials {
            by_case.entry(trial.case.id.as_str()).or_default().push(trial.guest.name.as_str());
        }
        print_line!("cases:")?;
        for case in inputs.cases.iter().filter(|case| by_case.contains_key(case.id.as_str())) {
            print_line!("  {}: {}", case.id, case.title)?;
            let captures = case.steps.iter().filter(|step| step.capture.is_some()).count();
            let mut line = format!("    on {}; {captures} captures", by_case[case.id.as_str()].join(", "));
            if let Some(document) = &case.document {
                line.push_str(&format!("; {document}"));
            }
            if !case.modules.is_empty() {
                let modules: Vec<String> = case.modules.iter().map(ToString::to_string).collect();
                line.push_str(&format!("; brings modules of {}", modules.join(", ")));
            }
            let requires = case.requires.words();
            if !requires.is_empty() {
                line.push_str(&format!("; skipped without {}", requires.join(", ")));
            }
            print_line!("{line}")?;
        }
        print_line!("{} trials", plan.trials.len())?;
        Ok(Status::Success)
    }
}
