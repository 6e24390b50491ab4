//! `goldtrace run`.

use clap::Args;

use super::bless::{bless, check_blessable};
use super::error::CommandError;
use super::options::{Guests, Images, Inputs, IsolateOption, ProjectOption};
use super::status::{HELP, Status};
use crate::report::{
    Colour, Live, Output, ReportText, RerunHint, Summary, common_splats, describe_group, draw_timelines,
    flaky_lines, groups, headline,
};
use guest::Guest;
use image::Refresh;
use trial::case::{Case, CaseId, MissingGolden};
use trial::{
    Outcome, PrepareError, PreparedGuests, RunDir, Trial, TrialPlan, TrialResult, default_jobs, flaky,
    longest_first, run_all, run_trial,
};
use vm::process::shell_line;

/// Boot the guests, run the cases, compare their output with the goldens
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct Run {
    /// Run only trials whose name (CASE@GUEST) contains one of these [default: all]
    #[arg(value_name = "FILTER")]
    filters: Vec<String>,
    #[command(flatten)]
    guests: Guests,
    #[command(flatten)]
    images: Images,
    /// Run this many guests at once [default: three for each CPU, where memory allows]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
    /// Run each trial this many times; different outcomes of one trial are a failure (FLAKY)
    #[arg(long, value_name = "N", conflicts_with = "bless", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repeat: Option<u32>,
    /// How each trial gets a guest that no other trial has touched
    #[arg(long, value_enum, default_value = "snapshot")]
    isolate: IsolateOption,
    /// Print which trials would run, and run none
    #[arg(long)]
    dry_run: bool,
    /// Write the goldens of the cases afterwards, as `goldtrace bless` does
    #[arg(long)]
    bless: bool,
    /// Fail when a trial is skipped
    #[arg(long)]
    deny_skips: bool,
    /// What `--deny-skips` was called before
    #[arg(long, hide = true)]
    no_skip: bool,
    /// Only the trials of this case.
    #[arg(skip)]
    only: Option<CaseId>,
}

impl Run {
    /// A run of one case whose captures become its goldens.
    pub(super) fn blessing(case: &str, guests: Guests, images: Images) -> Run {
        let only = Some(CaseId::new(case));
        Run {
            filters: Vec::new(),
            guests,
            images,
            jobs: None,
            repeat: None,
            isolate: IsolateOption::Snapshot,
            dry_run: false,
            bless: true,
            deny_skips: false,
            no_skip: false,
            only,
        }
    }

    pub(super) fn run(&self, option: &ProjectOption) -> Result<Status, CommandError> {
        if self.no_skip {
            return Err(CommandError::RenamedOption { old: "--no-skip", new: "--deny-skips" });
        }
        if self.bless {
            check_blessable(&self.images)?;
        }
        let project = option.project()?;
        let inputs = {
            let missing = if self.bless { MissingGolden::ExpectsNothing } else { MissingGolden::IsAnError };
            Inputs::load(&project, missing)?
        };
        let guests = self.guests.choose(&inputs.guests)?;
        let mut plan = TrialPlan::make(&inputs.cases, &guests, &self.filters)?;
        if let Some(only) = &self.only {
            plan.trials.retain(|trial| trial.case.id == *only);
        }
        if let Some(times) = self.repeat {
            plan = plan.repeat(times);
        }
        if self.dry_run {
            for trial in &plan.trials {
                print_line!("{trial}")?;
            }
            return Ok(Status::Success);
        }
        let prepared = self.images.guests(&project, &inputs, Refresh::WhenOld, self.isolate.into())?;
        // Builds come before the first boot, which shows their progress undisturbed.
        check_prepared(&prepared.prepare_all(&plan.trials), plan.trials.len())?;
        prepared.check_patches()?;
        let out = Output::default();
        introduce(&prepared, &plan.guests(), &out);
        let (earlier, dir) = (RunDir::earlier(&project), RunDir::create(&project)?);
        let jobs = self.jobs.map_or_else(|| default_jobs(&inputs.guests), usize::from);
        let order = longest_first(&plan.trials, &earlier);
        let start = std::time::Instant::now();
        let run = |trial: &Trial<'_>| {
            let outcome = run_trial(trial, &prepared, &dir);
            draw_timelines(trial, &dir);
            outcome
        };
        let live = Live::new(&plan.trials, &out);
        let finished = run_all(&plan.trials, &order, jobs, run, &live);
        live.finish();
        let colour = Colour::of(&std::io::stdout());
        // A new case has no goldens yet that could differ.
        let is_new = |trial: &TrialResult| self.only.is_some() && trial.outcome.only_captures_differ();
        for group in groups(finished.iter().filter(|trial| !is_new(trial))) {
            let mut rerun = vec!["goldtrace".to_owned(), "run".to_owned()];
            rerun.extend(self.images.words());
            if self.isolate == IsolateOption::Boot {
                rerun.push("--isolate=boot".to_owned());
            }
            let mut names: Vec<String> = group.iter().map(|trial| trial.name.clone()).collect();
            names.dedup();
            rerun.extend(names);
            let case = group[0].name.split('@').next().unwrap_or_default();
            let bless = self.repeat.is_none().then(|| shell_line(["goldtrace", "bless", case]));
            let hint = RerunHint { run: &shell_line(rerun), bless };
            if let Some(text) = describe_group(&group, &hint, colour) {
                let mut shown = ReportText::default();
                for trial in &group {
                    shown.end_line();
                    shown.append(&headline(trial));
                }
                shown.end_line();
                shown.append(&text);
                shown.end_line();
                out.print(&shown);
            }
        }
        let common = common_splats(&finished);
        if !common.is_empty() {
            out.print(&line!("\n{}", common.trim_end()));
        }
        let flaky = flaky(&finished);
        out.print(&flaky_lines(&flaky));
        let summary = Summary::of(&finished);
        let flaky_count = if flaky.is_empty() { String::new() } else { format!(", {} flaky", flaky.len()) };
        let elapsed = start.elapsed().as_secs_f64();
        out.print(&line!("\n{summary}{flaky_count} in {elapsed:.1} s; kept in {}", dir.path()));
        out.finish()?;
        let outcomes: Vec<&Outcome> = finished.iter().map(|trial| &trial.outcome).collect();
        let status = match self.status(&outcomes) {
            Status::Interrupted => Status::Interrupted,
            _ if !flaky.is_empty() => Status::Failed,
            status => status,
        };
        if self.bless && status != Status::Interrupted {
            let mut cases: Vec<&Case> = plan.trials.iter().map(|trial| trial.case).collect();
            cases.dedup_by_key(|case| &case.id);
            return bless(&project, &cases);
        }
        Ok(status)
    }

    fn status(&self, outcomes: &[&Outcome]) -> Status {
        let any = |test: fn(&Outcome) -> bool| outcomes.iter().any(|outcome| test(outcome));
        if any(|o| matches!(o, Outcome::Interrupted)) {
            Status::Interrupted
        } else if any(|o| matches!(o, Outcome::Fail(_) | Outcome::Xpass { .. })) {
            Status::Failed
        } else if any(|o| matches!(o, Outcome::Error(_))) {
            Status::Infrastructure
        } else if any(|o| matches!(o, Outcome::Skip(_))) && self.deny_skips {
            Status::Failed
        } else {
            Status::Success
        }
    }
}

/// A run goes on without the trials whose products cannot be made, but for errors in files, which come before anything
/// runs, and unless nothing is left to run.
fn check_prepared(failed: &[(&Trial<'_>, PrepareError)], trials: usize) -> Result<(), CommandError> {
    let ends_run = |error: &PrepareError| error.is_interrupt() || error.is_wrong_input();
    let error = failed.iter().map(|(_, error)| error).find(|error| failed.len() == trials || ends_run(error));
    error.map_or(Ok(()), |error| Err(error.clone().into()))
}

/// Print what is about to run, one line a guest.
fn introduce(prepared: &PreparedGuests, guests: &[&Guest], out: &Output) {
    for guest in guests {
        // What could not be made is reported with the trials that need it.
        if let (Ok(kernel), Ok(accel)) = (prepared.kernel(guest), prepared.accel(guest)) {
            out.print(&line!(
                "guest {}: Linux {}, {} ({})",
                guest.name,
                kernel.kernel.release,
                accel.accel.name(),
                accel.why
            ));
        }
    }
}
