//! `goldtrace run`.

use clap::Args;

use super::bless::bless;
use super::options::{Guests, Images, Inputs, ProjectOption};
use super::status::{CommandError, Status};
use crate::report::{Colour, RerunHint, Summary, describe, draw_timelines, headline};
use image::Refresh;
use trial::case::{Case, CaseId, MissingGolden};
use trial::{Needs, Outcome, PreparedGuests, RunDir, TrialPlan, TrialResult, default_jobs, run_all};
use vm::process::shell_line;

/// Boot the guests, run the cases and compare what they print with the goldens.
#[derive(Debug, Args)]
pub(super) struct Run {
    /// Only trials whose name (CASE@GUEST) contains one of these [default: all]
    #[arg(value_name = "FILTER")]
    filters: Vec<String>,
    #[command(flatten)]
    guests: Guests,
    #[command(flatten)]
    images: Images,
    /// How many guests run at once [default: half as many again as there are CPUs]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
    /// Show which trials would be run, and run none
    #[arg(long)]
    dry_run: bool,
    /// Afterwards write the goldens of the cases that were run, as `goldtrace bless` does
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
            dry_run: false,
            bless: true,
            deny_skips: false,
            no_skip: false,
            only,
        }
    }

    pub(super) fn run(&self, option: &ProjectOption) -> Result<Status, CommandError> {
        if self.no_skip {
            return Err(CommandError::Usage("`--no-skip` is now called `--deny-skips`".to_owned()));
        }
        let project = option.project()?;
        let inputs = {
            let missing = if self.bless { MissingGolden::ExpectsNothing } else { MissingGolden::IsAnError };
            Inputs::load(&project, missing)?
        };
        let guests = self.guests.choose(&inputs.guests)?;
        let mut plan = TrialPlan::make(&inputs.cases, &guests, &self.filters)
            .map_err(|e| CommandError::Usage(e.to_string()))?;
        if let Some(only) = &self.only {
            plan.trials.retain(|trial| trial.case.id == *only);
        }
        if self.dry_run {
            for trial in &plan.trials {
                anstream::println!("{trial}");
            }
            return Ok(Status::Success);
        }
        let prepared = self.images.prepare(
            &project,
            &inputs,
            &plan.guests(),
            Refresh::WhenOld,
            Needs::of(&plan.trials),
        )?;
        introduce(&prepared);
        let dir = RunDir::create(&project)?;
        let jobs = self.jobs.map_or_else(default_jobs, usize::from);
        let start = std::time::Instant::now();
        let finished = run_all(&plan, &prepared, &dir, jobs, |trial, finished| {
            draw_timelines(trial, &dir);
            anstream::println!("{}", headline(finished));
        });
        let colour = Colour::of(&std::io::stdout());
        // A new case has no goldens yet that could differ.
        let is_new = |trial: &TrialResult| self.only.is_some() && trial.outcome.only_captures_differ();
        for trial in finished.iter().filter(|trial| !is_new(trial)) {
            let mut again = vec!["goldtrace".to_owned(), "run".to_owned()];
            again.extend(self.images.words());
            again.push(trial.name.clone());
            let case = trial.name.split('@').next().unwrap_or_default();
            let bless = Some(shell_line(["goldtrace", "bless", case]));
            let hint = RerunHint { run: &shell_line(again), bless };
            if let Some(text) = describe(trial, &hint, colour) {
                anstream::println!("\n{}\n{text}", headline(trial));
            }
        }
        let summary = Summary::of(&finished);
        anstream::println!("\n{summary} in {:.1} s; kept in {}", start.elapsed().as_secs_f64(), dir.path());
        let status = self.status(&finished.iter().map(|trial| &trial.outcome).collect::<Vec<_>>());
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

/// Say what is about to run, one line a guest.
fn introduce(prepared: &PreparedGuests) {
    for ready in prepared.guests() {
        let accel = &ready.accel;
        anstream::println!(
            "guest {}: Linux {}, {} ({})",
            ready.guest.name,
            ready.image.kernel.release,
            accel.accel.name(),
            accel.why
        );
    }
}
