//! Trials whose guests are restored from a snapshot: nothing is shared that must not be, and a snapshot that cannot be
//! used is noticed before a verdict.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::process::Command;
use std::time::SystemTime;

use crate::support::{TestProject, goldtrace, prepared};
use camino::{Utf8Path, Utf8PathBuf};
use image::Store;
use image::digest::bytes_digest;

const CASE: &str = "title: T\nguests: [x86_64]\nsteps:\n  - run: echo right\n    capture: out\n";

/// A cache with the products of the default one, but for snapshots.
struct Cache {
    _dir: tempfile::TempDir,
    root: Utf8PathBuf,
}

impl Cache {
    fn new() -> Cache {
        prepared();
        let default = Store::open_default().expect("a cache").root().to_owned();
        // On its file system, so that a link to a file will do for a copy.
        let dir = tempfile::tempdir_in(default.parent().expect("a directory")).expect("a directory");
        let root = Utf8Path::from_path(dir.path()).expect("UTF-8").to_owned();
        for part in ["apt", "sources", "products"] {
            fs::create_dir(root.join(part)).expect("made");
            for entry in default.join(part).read_dir_utf8().expect("a directory") {
                // Other tests may remove one meanwhile; what is missing is made again.
                let entry = entry.expect("an entry");
                let _ = Command::new("cp").arg("-al").args([entry.path(), &root.join(part)]).output();
            }
        }
        let cache = Cache { _dir: dir, root };
        for snapshot in cache.snapshots() {
            fs::remove_dir_all(snapshot).expect("removed");
        }
        cache
    }

    fn snapshots(&self) -> Vec<Utf8PathBuf> {
        let products = self.root.join("products").read_dir_utf8().expect("a directory");
        let paths = products.map(|entry| entry.expect("an entry").into_path());
        paths.filter(|path| path.file_name().is_some_and(|name| name.starts_with("snapshot-"))).collect()
    }

    /// The one snapshot.
    fn snapshot(&self) -> Utf8PathBuf {
        let [snapshot] = self.snapshots().try_into().expect("one snapshot");
        snapshot
    }

    /// Run a project's cases: what was printed, and how QEMU was started for the trial `t@x86_64`.
    #[track_caller]
    fn run(&self, project: &TestProject, arguments: &[&str]) -> (String, String) {
        let mut command = goldtrace(project, &[&["run"], arguments].concat());
        let output = command.env("GOLDTRACE_CACHE", &self.root).output().expect("runs");
        let text =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        assert!(output.status.success(), "{text}");
        let qemu = project.root.join("target/goldtrace/last/t@x86_64/qemu-command");
        (text, fs::read_to_string(qemu).expect("a command"))
    }

    /// Run a trial that passes: what was printed, and whether its guest was restored.
    #[track_caller]
    fn passes(&self) -> (String, bool) {
        let (text, qemu) = self.run(&TestProject::new(CASE, &[("out", "right\n")]), &[]);
        assert!(text.contains("PASS  t@x86_64"), "{text}");
        (text, qemu.contains("-incoming defer"))
    }
}

/// Change a file of a snapshot, and make its manifest say that it is to be so.
fn forge(snapshot: &Utf8Path, name: &str, change: impl FnOnce(Vec<u8>) -> Vec<u8>) {
    let path = snapshot.join(name);
    let before = fs::read(&path).expect("readable");
    let old = bytes_digest(&before);
    let after = change(before);
    let new = bytes_digest(&after);
    fs::write(&path, after).expect("written");
    let manifest = snapshot.join("manifest.json");
    let text = fs::read_to_string(&manifest).expect("text");
    assert!(text.contains(old.as_str()));
    fs::write(&manifest, text.replace(old.as_str(), new.as_str())).expect("written");
}

#[test]
fn trials_are_restored_unless_they_are_to_boot() {
    let cache = Cache::new();
    let project = TestProject::new(CASE, &[("out", "right\n")]);
    let (text, qemu) = cache.run(&project, &["--isolate", "boot"]);
    assert!(!qemu.contains("-incoming defer") && cache.snapshots().is_empty(), "{text}\n{qemu}");
    let (text, qemu) = cache.run(&project, &[]);
    assert!(text.contains("snapshot x86_64: done") && qemu.contains("-incoming defer"), "{text}\n{qemu}");
    let (text, qemu) = cache.run(&project, &[]);
    assert!(!text.contains("snapshot x86_64") && qemu.contains("-incoming defer"), "{text}\n{qemu}");
}

#[test]
fn damaged_snapshot_is_noticed_and_made_again() {
    let cache = Cache::new();
    cache.passes();
    let flip = |name: &str, at: u64| {
        let file = File::options().read(true).write(true).open(cache.snapshot().join(name)).expect("opens");
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).expect("readable");
        file.write_all_at(&[byte[0] ^ 0x10], at).expect("written");
    };
    let cut = |name: &str| {
        let file = File::options().write(true).open(cache.snapshot().join(name)).expect("opens");
        file.set_len(file.metadata().expect("a size").len() - 1).expect("cut");
    };
    for (name, damage) in [
        ("state", &(|| flip("state", 5000)) as &dyn Fn()),
        ("memory", &|| flip("memory", 9_000_000)),
        ("memory", &|| cut("memory")),
        ("state", &|| cut("state")),
    ] {
        damage();
        let (text, restored) = cache.passes();
        let noticed = format!(
            "the cached snapshot x86_64 is damaged and will be made again: the SHA-256 of {name} is "
        );
        assert!(restored && text.contains(&noticed), "{text}");
    }
    assert!(!cache.passes().0.contains("damaged"));
}

#[test]
fn snapshot_of_another_qemu_is_refused_and_made_again() {
    let cache = Cache::new();
    cache.passes();
    let rename = |text: Vec<u8>| {
        String::from_utf8(text).expect("text").replace("\"qemu\": \"", "\"qemu\": \"0.").into()
    };
    forge(&cache.snapshot(), "snapshot.json", rename);
    let (text, restored) = cache.passes();
    assert!(!restored, "{text}");
    for part in [
        "warning: the snapshot of guest x86_64 cannot be used, and its trials boot: ",
        "it was saved by QEMU 0.",
        "the next run makes it again",
    ] {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
    let (text, restored) = cache.passes();
    assert!(restored && text.contains("snapshot x86_64: done"), "{text}");
}

#[test]
fn state_that_qemu_refuses_does_not_count_as_the_kernels() {
    let cache = Cache::new();
    cache.passes();
    // The name of its first section.
    forge(&cache.snapshot(), "state", |mut state| {
        state[0] ^= 0xff;
        state
    });
    let (text, restored) = cache.passes();
    assert!(!restored && text.contains("the snapshot of guest x86_64 cannot be used"), "{text}");
}

#[test]
fn qemu_that_does_not_restore_what_it_saves_boots_and_is_tried_once() {
    let cache = Cache::new();
    let programs = tempfile::tempdir().expect("a directory");
    let qemu = programs.path().join("qemu-system-x86_64");
    let real = which::which("qemu-system-x86_64").expect("installed");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *incoming*) echo cannot restore >&2; exit 1;; esac\nexec {} \"$@\"\n",
        real.display()
    );
    fs::write(&qemu, script).expect("written");
    // Nobody, as which QEMU runs, has to find it.
    for path in [programs.path(), &qemu] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("set");
    }
    let project = TestProject::new(CASE, &[("out", "right\n")]);
    for made in [true, false] {
        let path = format!("{}:{}", programs.path().display(), std::env::var("PATH").expect("a path"));
        let mut command = goldtrace(&project, &["run"]);
        let output = command.env("GOLDTRACE_CACHE", &cache.root).env("PATH", path).output().expect("runs");
        let text =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        let why = "warning: each trial of guest x86_64 boots: qemu-system-x86_64 saves it and does not restore it: ";
        assert!(text.contains("PASS  t@x86_64") && text.contains(why), "{text}");
        assert_eq!(text.contains("snapshot x86_64: begun"), made, "{text}");
    }
}

#[test]
fn snapshot_of_a_host_with_another_clock_is_made_again() {
    let cache = Cache::new();
    cache.passes();
    let mut has_clock = false;
    forge(&cache.snapshot(), "snapshot.json", |text| {
        let mut value: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        has_clock = value["tsc_khz"].is_u64();
        value["tsc_khz"] = 1_000_000.into();
        value.to_string().into()
    });
    let (text, restored) = cache.passes();
    assert!(restored, "{text}");
    assert_eq!(text.contains("is made again: the host's time stamp counter runs at"), has_clock, "{text}");
}

#[test]
fn restored_guests_have_the_time_and_random_numbers_of_their_own() {
    let case = "title: T\nsteps:\n  - run: |\n      head -c 16 /dev/urandom | od -t x1 | head -n 1\n      date +%s\n      \
                for cpu in 1 2; do taskset $cpu usleep 1000; done\n    capture: out\n";
    let project = TestProject::new(case, &[("out", "{{..}}\n{{..}}\n")]);
    let (mut seen, trials) = (BTreeSet::new(), 3);
    for _ in 0..trials {
        for guest in ["x86_64", "ppc64le"] {
            let finished = project.run(guest);
            assert!(matches!(finished.outcome, trial::Outcome::Pass), "{}", crate::support::shown(&finished));
            let output = String::from_utf8(project.capture(guest, "out")).expect("text");
            let (random, date) = output.trim().split_once('\n').expect("two lines");
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs();
            let then: u64 = date.parse().expect("seconds");
            assert!(now.abs_diff(then) < 60, "{then} in guest {guest}, and {now} here");
            assert!(seen.insert(random.to_owned()), "{random} twice");
        }
    }
    assert_eq!(seen.len(), 2 * trials);
}
