//! Every case on every guest, as a test of its own: `cargo test --test cases alias@ppc64le`.

use std::process::ExitCode;
use std::sync::{Arc, LazyLock};

use camino::Utf8Path;
use diagnostic::Diagnostic;
use goldtrace::report::{
    Colour, Progress, ReportText, RerunHint, describe, draw_timelines, note, render_diagnostics,
};
use guest::{self, Guest, GuestName, Project};
use image::{BuildOptions, Builder, SourcesFile, Store};
use libtest_mimic::{Arguments, Completion, Failed};
use trial::case::{self, Case, MissingGolden};
use trial::{
    Isolation, Outcome, PreparedGuests, RunDir, Trial, TrialPlan, default_jobs, longest_first, run_one,
    run_trial,
};
use vm::process::interrupt;
use vm::qemu::WantedAccel;

/// What the project's files say, all of it valid. It lives as long as the process: so do the tests.
struct Inputs {
    project: Project,
    guests: Vec<Guest>,
    sources: SourcesFile,
    cases: Vec<Case>,
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    if let Err(error) = interrupt::watch() {
        note(&ReportText::of(format_args!("error: failed to watch for interrupts: {error}\n")));
        return ExitCode::from(3);
    }
    let inputs: &'static Inputs = match load() {
        Ok(inputs) => Box::leak(Box::new(inputs)),
        Err(errors) => {
            note(&render_diagnostics(&errors, Colour::of(&std::io::stderr())));
            return ExitCode::from(2);
        }
    };
    arguments.test_threads = arguments.test_threads.or_else(|| Some(default_jobs(&inputs.guests)));
    let context: &'static Context = Box::leak(Box::new(Context {
        prepared: LazyLock::new(Box::new(move || prepare(inputs))),
        dir: LazyLock::new(Box::new(move || RunDir::create(&inputs.project).map_err(|e| e.to_string()))),
    }));
    let guests: Vec<&Guest> = inputs.guests.iter().collect();
    let plan = match TrialPlan::make(&inputs.cases, &guests, &[]) {
        Ok(plan) => plan,
        Err(error) => {
            note(&ReportText::of(format_args!("error: {error}\n")));
            return ExitCode::from(2);
        }
    };
    let order = longest_first(&plan.trials, &RunDir::earlier(&inputs.project));
    let tests = order
        .into_iter()
        .map(|place| plan.trials[place])
        .map(|trial| libtest_mimic::Trial::ignorable_test(trial.to_string(), move || context.run(&trial)));
    libtest_mimic::run(&arguments, tests.collect()).exit_code()
}

fn load() -> Result<Inputs, Vec<Diagnostic>> {
    // Cargo sets the variable, and so does nextest to where it unpacked or remapped an archive.
    let package =
        std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    let root = Utf8Path::new(&package).parent().unwrap_or(Utf8Path::new("."));
    let project = Project::at(root).map_err(|e| vec![Diagnostic::whole_file(root, e.to_string())])?;
    let guests = guest::load_all(&project)?;
    let names: Vec<GuestName> = guests.iter().map(|guest| guest.name.clone()).collect();
    let sources = SourcesFile::load(&project)?;
    let cases = case::load_all(&project, &names, MissingGolden::IsAnError)?;
    Ok(Inputs { project, guests, sources, cases })
}

/// What boots. It is made when the first trial wants it: none does where the arguments select none.
fn prepare(inputs: &'static Inputs) -> Result<PreparedGuests, String> {
    let store = Store::open_default().map_err(|e| e.to_string())?;
    let Inputs { project, guests, sources, .. } = inputs;
    let progress = Arc::new(Progress::to_stderr());
    let builder = Builder::new(store, project, guests, sources, BuildOptions::default(), progress);
    Ok(PreparedGuests::new(builder, guests, WantedAccel::Auto, Isolation::Snapshot))
}

type Lazy<T> = LazyLock<Result<T, String>, Box<dyn FnOnce() -> Result<T, String> + Send>>;

/// What the trials share.
struct Context {
    prepared: Lazy<PreparedGuests>,
    dir: Lazy<RunDir>,
}

impl Context {
    fn run(&self, trial: &Trial<'_>) -> Result<Completion, Failed> {
        let prepared = self.prepared.as_ref()?;
        let dir = self.dir.as_ref()?;
        let result = run_one(trial, || {
            let outcome = run_trial(trial, prepared, dir);
            draw_timelines(trial, dir);
            outcome
        });
        match &result.outcome {
            Outcome::Pass | Outcome::Xfail(_) => Ok(Completion::Completed),
            Outcome::Skip(why) => Ok(Completion::ignored_with(why)),
            Outcome::Interrupted => Err("interrupted".into()),
            Outcome::Fail(_) | Outcome::Xpass { .. } | Outcome::Error(_) => {
                let run = format!("cargo test --test cases {}", result.name);
                let bless = Some(format!("cargo run --release -- bless {}", trial.case.id));
                let hint = RerunHint { run: &run, bless };
                // libtest-mimic prints the text as it is, wherever that goes.
                Err(describe(&result, &hint, Colour::No).unwrap_or_default().as_str().into())
            }
        }
    }
}
