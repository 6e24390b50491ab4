//! Every case on every guest, as a test of its own: `cargo test --test cases alias@ppc64le`.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock};

use camino::Utf8Path;
use diagnostic::Diagnostic;
use goldtrace::report::{Colour, Progress, RerunHint, describe, render_diagnostics};
use guest::Project;
use guest::{self, Guest, GuestName};
use image::{BuildOptions, Builder, RootfsSpec, SourcesFile, Store};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use trial::case::{self, Case, MissingGolden};
use trial::{self, Needs, Outcome, PreparedGuests, RunDir, run_one};
use vm::process::interrupt;
use vm::qemu::WantedAccel;

/// What the trials share. A guest's image is made when its first trial wants it.
struct Shared {
    project: Project,
    guests: Vec<Guest>,
    sources: SourcesFile,
    cases: Vec<Case>,
    /// By guest and by what is in it: perf and modules are made when the first trial that needs them
    /// comes.
    prepared: BTreeMap<(GuestName, RootfsSpec), OnceLock<Result<PreparedGuests, String>>>,
    dir: OnceLock<Result<RunDir, String>>,
    progress: Arc<Progress>,
    /// Images are made one after the other: each make uses all CPUs.
    building: Mutex<()>,
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = arguments.test_threads.or(Some(trial::default_jobs()));
    if let Err(error) = interrupt::watch() {
        eprintln!("error: failed to watch for interrupts: {error}");
        return ExitCode::from(3);
    }
    let shared = match Shared::load() {
        Ok(shared) => Arc::new(shared),
        Err(faults) => {
            eprint!("{}", render_diagnostics(&faults, Colour::of(&std::io::stderr())));
            return ExitCode::from(2);
        }
    };
    let mut trials = Vec::new();
    for (case_at, case) in shared.cases.iter().enumerate() {
        for (guest_at, guest) in shared.guests.iter().enumerate() {
            if case.runs_on(&guest.name) {
                let name = trial::Trial { case, guest }.to_string();
                let shared = shared.clone();
                trials.push(Trial::ignorable_test(name, move || shared.run(case_at, guest_at)));
            }
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

impl Shared {
    fn load() -> Result<Shared, Vec<Diagnostic>> {
        let root = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let project = Project::at(root).map_err(|e| vec![Diagnostic::whole_file(root, e.to_string())])?;
        let guests = guest::load_all(&project)?;
        let names: Vec<GuestName> = guests.iter().map(|guest| guest.name.clone()).collect();
        let sources = SourcesFile::load(&project)?;
        let cases = case::load_all(&project, &names, MissingGolden::IsAnError)?;
        let specs = |name: GuestName| cases.iter().map(move |case| (name.clone(), trial::rootfs_spec(case)));
        let prepared = names.into_iter().flat_map(specs).map(|key| (key, OnceLock::new())).collect();
        Ok(Shared {
            project,
            guests,
            sources,
            cases,
            prepared,
            dir: OnceLock::new(),
            progress: Arc::new(Progress::to_stderr()),
            building: Mutex::new(()),
        })
    }

    fn run(&self, case: usize, guest: usize) -> Result<Completion, Failed> {
        let trial = trial::Trial { case: &self.cases[case], guest: &self.guests[guest] };
        let key = (trial.guest.name.clone(), trial::rootfs_spec(trial.case));
        let prepared = self.prepared[&key].get_or_init(|| self.prepare(trial.guest, &key.1)).as_ref()?;
        let dir =
            self.dir.get_or_init(|| RunDir::create(&self.project).map_err(|e| e.to_string())).as_ref()?;
        let finished = run_one(&trial, prepared, dir);
        match &finished.outcome {
            Outcome::Pass | Outcome::Xfail(_) => Ok(Completion::Completed),
            Outcome::Skip(why) => Ok(Completion::ignored_with(why)),
            Outcome::Interrupted => Err("interrupted".into()),
            Outcome::Fail(_) | Outcome::Xpass { .. } | Outcome::Error(_) => {
                let again = format!("cargo test --test cases {}", finished.name);
                let bless = Some(format!("cargo run --release -- bless {}", trial.case.id));
                let hint = RerunHint { run: &again, bless };
                // libtest-mimic prints the text as it is, wherever that goes.
                Err(describe(&finished, &hint, Colour::No).unwrap_or_default().into())
            }
        }
    }

    /// What is booted for the guest's trials that need this rootfs.
    fn prepare(&self, guest: &Guest, spec: &RootfsSpec) -> Result<PreparedGuests, String> {
        let _one = self.building.lock().map_err(|_| "an earlier build panicked")?;
        let store = Store::open_default().map_err(|e| e.to_string())?;
        let options = BuildOptions::default();
        let builder =
            Builder::new(store, &self.project, &self.guests, &self.sources, options, self.progress.clone());
        let cases = self.cases.iter().filter(|case| case.runs_on(&guest.name));
        let trials: Vec<trial::Trial<'_>> = cases
            .filter(|case| trial::rootfs_spec(case) == *spec)
            .map(|case| trial::Trial { case, guest })
            .collect();
        let needs = Needs::of(&trials);
        let prepared = PreparedGuests::prepare(&Arc::new(builder), &[guest], WantedAccel::Auto, needs);
        prepared.map_err(|error| format!("guest {} cannot be made: {error}", guest.name))
    }
}
