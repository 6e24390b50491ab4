//! What the recipes of tests are made with: the real project's guests and files, copied, and packages that exist in name only.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use guest::{Guest, Project};

use crate::config::ConfigFragment;
use crate::context::{BuildContext, UserPatches};
use crate::debian::Sources;
use crate::progress::Silent;
use crate::source::Patch;
use crate::store::{Recipe, Store};

/// All that a [`BuildContext`] refers to. A test changes a part of it.
pub(crate) struct Fixture {
    _dir: tempfile::TempDir,
    pub(crate) root: Utf8PathBuf,
    pub(crate) store: Store,
    pub(crate) sources: Sources,
    pub(crate) patches: UserPatches,
    pub(crate) configs: Vec<ConfigFragment>,
    pub(crate) guest: Guest,
    project: Project,
    archs: Vec<String>,
}

impl Fixture {
    /// For the ppc64le guest.
    pub(crate) fn new() -> Fixture {
        let dir = tempfile::tempdir().expect("a directory");
        let root = Utf8Path::from_path(dir.path()).expect("UTF-8").to_owned();
        let real = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        for directory in ["guests", "guests/agent", "images", "images/kernel", "cases"] {
            fs::create_dir_all(root.join(directory)).expect("made");
            for entry in real.join(directory).read_dir_utf8().expect("there") {
                let entry = entry.expect("readable");
                if entry.path().is_file() {
                    fs::copy(entry.path(), root.join(directory).join(entry.file_name())).expect("copied");
                }
            }
        }
        let project = Project::at(&root).expect("a project");
        let guests = guest::load_all(&project).expect("valid guests");
        let guest = guests.into_iter().find(|guest| guest.arch.name == "ppc64le").expect("there");
        let store = Store::open(&root.join("cache")).expect("opens");
        let (patches, configs) = (UserPatches::default(), Vec::new());
        let (sources, archs) = (Sources::named(), vec!["amd64".to_owned(), "ppc64el".to_owned()]);
        Fixture { _dir: dir, root, store, sources, patches, configs, guest, project, archs }
    }

    /// With a change.
    pub(crate) fn with(change: impl FnOnce(&mut Fixture)) -> Fixture {
        let mut fixture = Fixture::new();
        change(&mut fixture);
        fixture
    }

    pub(crate) fn context(&self) -> BuildContext<'_> {
        BuildContext {
            store: &self.store,
            project: &self.project,
            sources: &self.sources,
            archs: &self.archs,
            patches: &self.patches,
            configs: &self.configs,
            progress: &Silent,
        }
    }

    /// Give a patch to a file of the kernel's source.
    pub(crate) fn patch(&mut self, file: &str) {
        let path = self.root.join("a.patch");
        let text = format!("--- a/{file}\n+++ b/{file}\n@@ -1 +1 @@\n-a\n+b\n");
        fs::write(&path, text).expect("written");
        self.patches = UserPatches::new(vec![Patch::load(&path).expect("a patch")]);
    }
}

/// Check that each input of a recipe counts: of each there is a recipe in `changed` in which it, among others at most, has
/// another value and which so makes another product. Only what is the same in every build, `constant`, has none.
#[track_caller]
pub(crate) fn assert_inputs_count(base: &Recipe, constant: &[&str], changed: &[(&str, Recipe)]) {
    for (input, recipe) in changed {
        assert_ne!(recipe.inputs.get(*input), base.inputs.get(*input), "`{input}` has not changed");
        assert_ne!(recipe.digest(), base.digest(), "`{input}` does not count");
    }
    let mut tested: Vec<&str> =
        changed.iter().map(|(input, _)| *input).chain(constant.iter().copied()).collect();
    tested.sort_unstable();
    let inputs: Vec<&str> = base.inputs.keys().map(String::as_str).collect();
    assert_eq!(inputs, tested, "the inputs of the recipe, and those with a test");
}
