//! A kernel's source with the objects that were built from it, kept for the next build that differs in the user's patches
//! alone.
//!
//! Such a build compiles what the patches touch, where one that begins with the package unpacks 90,000 files and asks the
//! compiler's cache for each object. What make has to do again it knows by the files' times, so that these must be true:
//! a file gets a new time whenever its content becomes another, and a tree is given up whose time is in the future, which
//! was left in the middle of a change, or in which make was killed.
//!
//! A tree's directory holds `linux`, the source; `pristine`, those of its files that patches have touched, as the package
//! has them; and `state.json`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use crate::context::PatchSet;
use crate::debian::Package;
use crate::digest::Digest;
use crate::error::ImageError;
use crate::store::{BuildDir, Store, make_dir, remove_file, write_whole};

/// The source of a kept tree.
const LINUX: &str = "linux";
const PRISTINE: &str = "pristine";
const STATE: &str = "state.json";
/// How many trees are kept: each takes 2 to 3 GB.
const KEPT_MAX: usize = 4;

/// What is known of a tree.
#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    /// Nothing was left half done.
    whole: bool,
    /// The files that patches have touched, below the source's root.
    touched: BTreeSet<Utf8PathBuf>,
}

/// A kept tree, which nobody else uses.
pub(crate) struct KeptTree {
    dir: Utf8PathBuf,
    state: State,
    /// The next build must not have it: a patch touches a link, of which no copy is kept.
    is_spent: bool,
    _lock: File,
}

impl KeptTree {
    /// The tree for builds of this identity, everything of it but the patches; `unpack` gives the package's source when
    /// there is none yet, in a directory of the same file system, from which it is moved.
    ///
    /// # Errors
    /// Those of `unpack`, and of the file system.
    pub(crate) fn open(
        store: &Store,
        identity: &Digest,
        build_dir: &BuildDir<'_>,
        unpack: impl FnOnce() -> Result<Utf8PathBuf, ImageError>,
    ) -> Result<KeptTree, ImageError> {
        let name = format!("tree-{}", identity.short());
        let lock = store.lock(&name, &format!("the kept tree of {}", build_dir.label), build_dir.progress)?;
        let dir = store.trees().join(&name);
        if let Some(state) = usable(&dir) {
            return Ok(KeptTree { dir, state, is_spent: false, _lock: lock });
        }
        remove(&dir)?;
        store.sweep_trees(KEPT_MAX - 1, SystemTime::now())?;
        let source = unpack()?;
        make_dir(&dir)?;
        fs::rename(&source, dir.join(LINUX)).map_err(|e| ImageError::file("move", &source, e))?;
        let state = State { whole: true, ..State::default() };
        let tree = KeptTree { dir, state, is_spent: false, _lock: lock };
        tree.write_state()?;
        Ok(tree)
    }

    /// The source's root.
    pub(crate) fn linux(&self) -> Utf8PathBuf {
        self.dir.join(LINUX)
    }

    /// Make its source that of the package with these patches.
    ///
    /// # Errors
    /// The first patch that does not apply; what cannot be read or written.
    pub(crate) fn patch(
        &mut self,
        build_dir: &BuildDir<'_>,
        package: &Package<'_>,
        patches: &PatchSet,
    ) -> Result<(), ImageError> {
        let before = self.contents()?;
        self.change(|tree| tree.restore())?;
        let touched = patches.touched();
        self.is_spent = touched.iter().any(|name| self.linux().join(name).is_symlink());
        self.change(|tree| {
            for path in &touched {
                tree.keep_pristine(path)?;
            }
            tree.state.touched = touched.clone();
            Ok(())
        })?;
        self.change(|tree| match patches.apply(build_dir, package, &tree.linux()) {
            Err(error @ ImageError::PatchDoesNotApply { .. }) => {
                tree.restore()?;
                Ok(Err(error))
            }
            other => other.map(Ok),
        })??;
        // What is as it was before has been compiled already.
        for (path, (content, time)) in before {
            let path = self.linux().join(path);
            if fs::read(&path).is_ok_and(|now| now == content) {
                let set = File::options().write(true).open(&path).and_then(|file| file.set_modified(time));
                set.map_err(|e| ImageError::file("set the time of", &path, e))?;
            }
        }
        Ok(())
    }

    /// Run make in it. The tree is given up when make is killed meanwhile, and not when it fails.
    ///
    /// # Errors
    /// Those of `make`.
    pub(crate) fn build<T>(&mut self, make: impl FnOnce() -> Result<T, ImageError>) -> Result<T, ImageError> {
        self.change(|_| match make() {
            // An error of make's own: what it had begun to write, it has removed.
            Err(error @ (ImageError::DoesNotCompile { .. } | ImageError::ConfigNotHonoured { .. })) => {
                Ok(Err(error))
            }
            other => other.map(Ok),
        })?
    }

    /// Change it; it is known to be whole before and after, and not in between.
    fn change<T>(
        &mut self,
        change: impl FnOnce(&mut KeptTree) -> Result<T, ImageError>,
    ) -> Result<T, ImageError> {
        self.state.whole = false;
        self.write_state()?;
        let done = change(self)?;
        self.state.whole = !self.is_spent;
        self.write_state()?;
        Ok(done)
    }

    /// The content of each file that patches have touched, and its time.
    fn contents(&self) -> Result<BTreeMap<Utf8PathBuf, (Vec<u8>, SystemTime)>, ImageError> {
        let mut contents = BTreeMap::new();
        for name in &self.state.touched {
            let path = self.linux().join(name);
            match fs::read(&path).and_then(|content| Ok((content, path.metadata()?.modified()?))) {
                Ok(content) => drop(contents.insert(name.clone(), content)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(ImageError::file("read", &path, error)),
            }
        }
        Ok(contents)
    }

    /// Make its source that of the package.
    fn restore(&mut self) -> Result<(), ImageError> {
        for name in &self.state.touched {
            let (path, pristine) = (self.linux().join(name), self.dir.join(PRISTINE).join(name));
            // Removed first: a copy would keep a mode that the patch has changed.
            remove_file(&path)?;
            // What patch(1) keeps of a file some of whose hunks do not apply.
            remove_file(&Utf8PathBuf::from(format!("{path}.orig")))?;
            if pristine.exists() {
                fs::copy(&pristine, &path).map_err(|e| ImageError::file("restore", &path, e))?;
            }
        }
        self.state.touched.clear();
        remove(&self.dir.join(PRISTINE))
    }

    /// Keep a file as the package has it. The tree's source is that of the package.
    fn keep_pristine(&self, name: &Utf8Path) -> Result<(), ImageError> {
        let (path, pristine) = (self.linux().join(name), self.dir.join(PRISTINE).join(name));
        make_dir(pristine.parent().unwrap_or(&self.dir))?;
        match fs::copy(&path, &pristine) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.map(drop).map_err(|e| ImageError::file("copy", &path, e)),
        }
    }

    fn write_state(&self) -> Result<(), ImageError> {
        let text = serde_json::to_string(&self.state).expect("a state has a JSON form");
        write_whole(&self.dir.join(STATE), &text)
    }
}

/// The state of the tree in `dir`, when it can be used.
fn usable(dir: &Utf8Path) -> Option<State> {
    let path = dir.join(STATE);
    // Files that are written now would be older than objects of a time in the future.
    let time = path.metadata().and_then(|metadata| metadata.modified()).ok()?;
    let state: State = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
    (state.whole && time <= SystemTime::now() && dir.join(LINUX).is_dir()).then_some(state)
}

fn remove(dir: &Utf8Path) -> Result<(), ImageError> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ImageError::file("remove", dir, error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{BuildContext, UserPatches};
    use crate::digest::text_digest;
    use crate::error::ErrorKind;
    use crate::progress::Silent;
    use crate::source::Patch;
    use crate::store::Recipe;
    use crate::testing::Fixture;

    const EDIT: &str = "--- a/kernel/a.c\n+++ b/kernel/a.c\n@@ -1 +1 @@\n-int a;\n+int b;\n";
    const ADD: &str = "--- /dev/null\n+++ b/kernel/new.c\n@@ -0,0 +1 @@\n+int new;\n";
    const WRONG: &str = "--- a/kernel/b.c\n+++ b/kernel/b.c\n@@ -1 +1 @@\n-int z;\n+int y;\n";

    /// A package with two files, whose tree is kept.
    struct Trees {
        fixture: Fixture,
        unpacked: std::cell::Cell<u32>,
    }

    impl Trees {
        fn new() -> Trees {
            Trees { fixture: Fixture::new(), unpacked: std::cell::Cell::new(0) }
        }

        /// Use the tree in the making of some product.
        fn with<T>(
            &self,
            patches: &[&str],
            use_it: impl FnOnce(&mut KeptTree) -> Result<T, ImageError>,
        ) -> Result<T, ImageError> {
            let loaded = patches.iter().enumerate().map(|(n, text)| {
                let path = self.fixture.root.join(format!("{n}.patch"));
                fs::write(&path, text).expect("written");
                Patch::load(&path).expect("a patch")
            });
            let patches = UserPatches::new(loaded.collect());
            let context = BuildContext { patches: &patches, ..self.fixture.context() };
            let mut result = None;
            let store = &self.fixture.store;
            // Of a name that no other has, so that it is made.
            let recipe = Recipe::new("kernel", "x").with("use", format!("{:?}", SystemTime::now()));
            store.product(&recipe, &Silent, |build_dir| {
                let unpack = || {
                    self.unpacked.set(self.unpacked.get() + 1);
                    let tree = build_dir.scratch.join("linux");
                    make_dir(&tree.join("kernel"))?;
                    fs::write(tree.join("kernel/a.c"), "int a;\n")?;
                    fs::write(tree.join("kernel/b.c"), "int b;\n")?;
                    Ok(tree)
                };
                let mut tree = KeptTree::open(store, &text_digest("id"), build_dir, unpack)?;
                let all = context.patches_to(|_| true);
                result = Some(
                    tree.patch(build_dir, &context.kernel_source(), &all).and_then(|()| use_it(&mut tree)),
                );
                Ok(())
            })?;
            result.expect("used")
        }

        /// The names, contents and times of its files with these patches.
        fn files(&self, patches: &[&str]) -> BTreeMap<String, (String, SystemTime)> {
            let read = |tree: &mut KeptTree| {
                let directory = tree.linux().join("kernel").read_dir_utf8()?;
                let paths = directory.map(|entry| entry.map(camino::Utf8DirEntry::into_path));
                let file = |path: Utf8PathBuf| {
                    let name = path.file_name().unwrap_or_default().to_owned();
                    Ok((name, (fs::read_to_string(&path)?, path.metadata()?.modified()?)))
                };
                Ok(paths.map(|path| file(path?)).collect::<io::Result<_>>()?)
            };
            self.with(patches, read).expect("patched")
        }
    }

    fn texts(files: &BTreeMap<String, (String, SystemTime)>) -> Vec<(&str, &str)> {
        files.iter().map(|(name, (text, _))| (name.as_str(), text.as_str())).collect()
    }

    #[test]
    fn source_is_the_packages_with_the_patches_of_this_build() {
        let trees = Trees::new();
        let (a, b, new) = (("a.c", "int a;\n"), ("b.c", "int b;\n"), ("new.c", "int new;\n"));
        assert_eq!(texts(&trees.files(&[EDIT])), [("a.c", "int b;\n"), b]);
        assert_eq!(texts(&trees.files(&[ADD])), [a, b, new]);
        assert_eq!(texts(&trees.files(&[EDIT, ADD])), [("a.c", "int b;\n"), b, new]);
        assert_eq!(texts(&trees.files(&[])), [a, b]);
        assert_eq!(trees.unpacked.get(), 1);
    }

    #[test]
    fn file_has_a_new_time_when_its_content_changes_and_else_its_old_one() {
        let trees = Trees::new();
        let [first, same, without, again] = [&[EDIT][..], &[EDIT, ADD], &[], &[EDIT]].map(|p| trees.files(p));
        assert_eq!(first["a.c"], same["a.c"]);
        assert_eq!(first["b.c"].1, again["b.c"].1);
        assert!(without["a.c"].1 > same["a.c"].1 && again["a.c"].1 > without["a.c"].1);
    }

    #[test]
    fn patch_that_does_not_apply_leaves_the_packages_source() {
        let trees = Trees::new();
        let error = trees.with(&[EDIT, WRONG], |_| Ok(())).expect_err("does not apply");
        assert!(matches!(error, ImageError::PatchDoesNotApply { .. }), "{error}");
        assert_eq!(texts(&trees.files(&[])), [("a.c", "int a;\n"), ("b.c", "int b;\n")]);
        assert_eq!(trees.unpacked.get(), 1);
    }

    #[test]
    fn tree_is_unpacked_again_after_a_build_that_did_not_end_and_not_after_one_that_failed() {
        let trees = Trees::new();
        let ends =
            |error: ImageError| trees.with(&[EDIT], |tree| tree.build(|| Err::<(), _>(error))).map(drop);
        let error = ends(ImageError::ConfigNotHonoured { label: "k".to_owned(), symbols: Vec::new() });
        assert!(error.is_err_and(|error| error.kind() != ErrorKind::Io));
        trees.files(&[]);
        assert_eq!(trees.unpacked.get(), 1);
        ends(io::Error::from(io::ErrorKind::Interrupted).into()).expect_err("interrupted");
        trees.files(&[]);
        assert_eq!(trees.unpacked.get(), 2);
    }

    #[test]
    fn tree_of_a_time_in_the_future_or_with_a_patched_link_is_unpacked_again() {
        let trees = Trees::new();
        trees.files(&[]);
        let [tree] = fs::read_dir(trees.fixture.store.trees())
            .expect("there")
            .collect::<Vec<_>>()
            .try_into()
            .expect("one");
        let tree = tree.expect("readable").path();
        let later = SystemTime::now() + std::time::Duration::from_secs(3600);
        File::options().write(true).open(tree.join(STATE)).and_then(|f| f.set_modified(later)).expect("set");
        trees.files(&[]);
        assert_eq!(trees.unpacked.get(), 2);
        std::os::unix::fs::symlink("b.c", tree.join("linux/kernel/new.c")).expect("linked");
        let _ = trees.with(&[ADD], |_| Ok(()));
        trees.files(&[]);
        assert_eq!(trees.unpacked.get(), 3);
    }
}
