//! Cases, transcripts and runs for this crate's tests, made without a guest.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use formats::Format;
use golden::{Facts, Golden};
use guest::{Guest, GuestName, Project};
use vm::KernelState;

use crate::artefacts::{RunDir, TrialDir};
use crate::case::{Action, Capture, CapturePart, Case, CaseId, Requires, Stderr, Step};
use crate::execute::{StepOutput, StepRecord, Transcript};
use crate::record::{ConsoleRecord, RanOn, TrialRecord, Verdict};

/// A golden with this body.
pub(crate) fn golden(file: &str, body: &str) -> Golden {
    Golden::parse(Utf8Path::new(file), format!("#@ golden v1\n{body}").as_bytes()).expect("a valid golden")
}

/// A step in this line that captures `name`, which is to be `body`.
pub(crate) fn step(line: usize, name: &str, body: &str) -> Step {
    let capture = Capture {
        name: name.to_owned(),
        format: Format::Plain,
        part: CapturePart::All,
        defined_by: None,
        golden: golden(&format!("cases/a/b/{name}.golden"), body),
    };
    Step {
        line,
        action: Action::Run { script: format!("cat {name}"), exit_status: 0, log: None },
        timeout: Duration::from_secs(1),
        output_limit: 1 << 20,
        stderr: Stderr::Empty,
        capture: Some(capture),
    }
}

/// The case `a/b` with these steps, for two guests.
pub(crate) fn case(steps: Vec<Step>) -> Case {
    Case {
        id: CaseId::new("a/b"),
        title: "T".to_owned(),
        document: None,
        file: Utf8PathBuf::from("cases/a/b/case.yaml"),
        digest: "digest".to_owned(),
        guests: ["ppc64le", "x86_64"].map(GuestName::new).to_vec(),
        requires: Requires::default(),
        modules: Vec::new(),
        cwd: "/".to_owned(),
        expected_splats: Vec::new(),
        steps,
    }
}

/// The cases `c0`, `c1` and so on.
pub(crate) fn numbered_cases(count: usize) -> Vec<Case> {
    let numbered = |number| Case { id: CaseId::new(&format!("c{number}")), ..case(Vec::new()) };
    (0..count).map(numbered).collect()
}

/// One of the workspace's guests.
pub(crate) fn real_guest(name: &str) -> Guest {
    let root = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).expect("the workspace");
    let guests = guest::load_all(&Project::at(root).expect("a project")).expect("valid guests");
    guests.into_iter().find(|guest| guest.name.as_str() == name).expect("the guest")
}

/// A trial that got to its end, whose steps printed this. The nonces of their requests are 1, 2 and so on.
pub(crate) fn transcript(outputs: &[&str]) -> Transcript {
    let record = |(at, stdout): (usize, &&str)| StepRecord {
        requests: vec![at as u64 + 1],
        kernel: Some(KernelState { tainted: 0, console_level: 5, message_level: 4 }),
        ..StepRecord::new(StepOutput { stdout: stdout.as_bytes().to_vec(), stderr: Vec::new() })
    };
    Transcript {
        boot_time: Some(Duration::from_secs(1)),
        steps: outputs.iter().enumerate().map(record).collect(),
        ..Transcript::default()
    }
}

/// What a guest with this kernel can be asked.
pub(crate) fn facts(arch: &str, kernel: &[u32]) -> Facts {
    Facts { arch: arch.to_owned(), kernel: kernel.to_vec(), ..Facts::default() }
}

/// A project in a temporary directory, with a last run.
pub(crate) struct TestRun {
    _temporary: tempfile::TempDir,
    pub(crate) project: Project,
    pub(crate) run: RunDir,
}

impl TestRun {
    pub(crate) fn new() -> TestRun {
        let temporary = tempfile::tempdir().expect("a directory");
        let root = Utf8Path::from_path(temporary.path()).expect("UTF-8");
        for dir in ["cases/a/b", "guests", "images"] {
            std::fs::create_dir_all(root.join(dir)).expect("made");
        }
        let project = Project::at(root).expect("a project");
        let run = RunDir::create(&project).expect("a run");
        TestRun { _temporary: temporary, project, run }
    }

    /// The directory of a case's trial on a guest, made when it is not there.
    pub(crate) fn trial(&self, case: &Case, guest: &str) -> TrialDir {
        let dir = self.run.trial_dir(&case.id, &GuestName::new(guest));
        std::fs::create_dir_all(dir.dir.join("captures")).expect("made");
        dir
    }

    /// A trial of the last run with these captures, by name.
    pub(crate) fn ran(&self, case: &Case, guest: &str, kernel: &[u32], captures: &[(&str, &str)]) {
        let record = TrialRecord {
            case_digest: case.digest.clone(),
            ran_on: Some(RanOn {
                release: "7.2.13-x".to_owned(),
                facts: facts(guest, kernel),
                changes: Vec::new(),
            }),
            verdict: Verdict::Fail,
            elapsed: None,
            console: ConsoleRecord::default(),
            unusable: None,
        };
        self.recorded(case, guest, &record, captures);
    }

    /// A trial of the last run with this record.
    pub(crate) fn recorded(&self, case: &Case, guest: &str, record: &TrialRecord, captures: &[(&str, &str)]) {
        let dir = self.trial(case, guest);
        record.write(&dir).expect("written");
        for (name, text) in captures {
            std::fs::write(dir.capture(name), text).expect("written");
        }
    }
}
