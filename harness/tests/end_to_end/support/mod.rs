//! A project of a test's own, with the real guests and images and other cases.

pub mod waiting;

use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, LazyLock};

use camino::{Utf8Path, Utf8PathBuf};
use goldtrace::report::{Colour, RerunHint, describe, headline};
use guest::Project;
use guest::{self, Guest, GuestName};
use image::{BuildOptions, Builder, RootfsSpec, Silent, SourcesFile, Store};
use trial::case::{self, Case, MissingGolden};
use trial::{
    Isolation, Outcome, PreparedGuest, PreparedGuests, RunDir, Trial, TrialPlan, TrialResult, run_one,
    run_prepared, run_trial,
};
use vm::qemu::WantedAccel;

pub fn real_root() -> &'static Utf8Path {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace")
}

/// The real guests, under TCG. What each boots is made when it is wanted; what every trial needs is there.
pub fn prepared() -> &'static PreparedGuests {
    static PREPARED: LazyLock<PreparedGuests> = LazyLock::new(|| {
        let project = Project::at(real_root()).expect("a project");
        let sources = SourcesFile::load(&project).expect("valid sources");
        let store = Store::open_default().expect("a cache");
        let options = BuildOptions::default();
        let builder = Builder::new(store, &project, guests(), &sources, options, Arc::new(Silent));
        let prepared = PreparedGuests::new(builder, guests(), WantedAccel::Tcg, Isolation::Snapshot);
        for guest in guests() {
            prepared.guest(guest, &RootfsSpec::default()).expect("an image");
        }
        prepared
    });
    &PREPARED
}

/// The real guests.
pub fn guests() -> &'static [Guest] {
    static GUESTS: LazyLock<Vec<Guest>> = LazyLock::new(|| {
        let project = Project::at(real_root()).expect("a project");
        guest::load_all(&project).expect("valid guests")
    });
    &GUESTS
}

pub struct TestProject {
    _dir: tempfile::TempDir,
    pub root: Utf8PathBuf,
}

impl TestProject {
    /// A project with one case, `t`, and its goldens (without their first line).
    pub fn new(case: &str, goldens: &[(&str, &str)]) -> TestProject {
        let project = TestProject::without_cases();
        project.write("cases/t/case.yaml", case.as_bytes());
        for (name, body) in goldens {
            project.write(&format!("cases/t/{name}.golden"), format!("#@ golden v1\n{body}").as_bytes());
        }
        project
    }

    pub fn without_cases() -> TestProject {
        let dir = tempfile::tempdir().expect("a directory");
        let root = Utf8Path::from_path(dir.path()).expect("UTF-8").to_owned();
        for directory in ["guests", "images"] {
            std::os::unix::fs::symlink(real_root().join(directory), root.join(directory)).expect("linked");
        }
        fs::create_dir(root.join("cases")).expect("made");
        TestProject { _dir: dir, root }
    }

    pub fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(path, bytes).expect("written");
    }

    /// The project's cases, for the real guests.
    pub fn cases(&self) -> Vec<Case> {
        let project = Project::at(&self.root).expect("a project");
        let names: Vec<GuestName> = guests().iter().map(|guest| guest.name.clone()).collect();
        case::load_all(&project, &names, MissingGolden::IsAnError).expect("valid cases")
    }

    /// Run the case on a guest.
    pub fn run(&self, guest: &str) -> TrialResult {
        self.run_with(guest, |trial, dir| run_trial(trial, prepared(), dir))
    }

    /// Run the case on a guest that is changed after it was prepared, and boots.
    pub fn run_changed(&self, guest: &str, change: impl FnOnce(&mut PreparedGuest)) -> TrialResult {
        self.run_with(guest, |trial, dir| {
            let mut changed = prepared().trial(trial).expect("prepared").booting();
            change(&mut changed);
            run_prepared(trial, &changed, dir)
        })
    }

    fn run_with(&self, guest: &str, run: impl FnOnce(&Trial<'_>, &RunDir) -> Outcome) -> TrialResult {
        let project = Project::at(&self.root).expect("a project");
        let cases = self.cases();
        let guest = guests().iter().find(|known| known.name.as_str() == guest).expect("a guest");
        let plan = TrialPlan::make(&cases, &[guest], &[]).expect("a plan");
        let dir = RunDir::create(&project).expect("a directory");
        run_one(&plan.trials[0], || run(&plan.trials[0], &dir))
    }

    /// The file of a capture in the last run.
    pub fn capture(&self, guest: &str, name: &str) -> Vec<u8> {
        fs::read(self.root.join(format!("target/goldtrace/last/t@{guest}/captures/{name}")))
            .expect("a capture")
    }
}

/// Everything that a person would see of the trial.
pub fn shown(finished: &TrialResult) -> String {
    let hint = RerunHint { run: "again", bless: None };
    format!("{}\n{}", headline(finished), describe(finished, &hint, Colour::No).unwrap_or_default())
}

/// The command, to be run in the project.
pub fn goldtrace(project: &TestProject, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_goldtrace"));
    command.args(arguments).current_dir(&project.root);
    // A test says itself what holds in CI.
    command.env_remove("CI");
    command
}

/// A shell in a guest, with pipes for its standard input and its standard output.
pub fn shell_in_pipes(project: &TestProject, guest: &str, arguments: &[&str]) -> Child {
    let mut command = goldtrace(project, &[&["shell", "--guest", guest], arguments].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts")
}

/// Run it to its end: its exit status, and what it printed on both streams.
pub fn output(project: &TestProject, arguments: &[&str]) -> (i32, String) {
    let Output { status, stdout, stderr } = goldtrace(project, arguments).output().expect("runs");
    let text = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    (status.code().expect("a status"), text)
}
