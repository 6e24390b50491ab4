//! The content-addressed cache of everything that is expensive to make.
//!
//! A [`Recipe`] names every input of a product; the product's directory is named by the digest of all
//! of them. A product appears whole or not at all: it is made in a work directory and renamed when its
//! manifest, with the SHA-256 of each file, is written. Each use hashes the files again.
//!
//! Layout below the root: `products/` finished, `building/` being made, `trees/` in which kernels were built, `locks/`,
//! `logs/`, `damaged/` (products whose files no longer match, kept for inspection). All of it, or any part, may be removed at any time.

mod build_dir;
mod files;
mod lock;
mod product;
mod recipe;
mod root;
mod sweep;
#[cfg(test)]
pub(crate) mod testing;
mod work;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::sync::Mutex;
use std::time::{Instant, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use xshell::Shell;

use crate::error::ImageError;
use crate::progress::ProgressSink;
pub(crate) use build_dir::BuildDir;
use files::write_synced;
pub(crate) use files::{make_dir, remove_file, write_whole};
pub use product::Product;
use product::{Found, MANIFEST, ProductManifest, inventory};
pub use recipe::Recipe;
pub(crate) use sweep::remove_older;

/// With less free space, in bytes, a failure of a build is one of space.
const FREE_MIN: u64 = 256 << 20;

/// The cache.
#[derive(Debug)]
pub struct Store {
    root: Utf8PathBuf,
    /// Products that this process has already verified, by directory.
    verified: Mutex<BTreeMap<String, Product>>,
    /// [`FREE_MIN`], but for tests.
    free_min: u64,
}

impl Store {
    /// The cache in `root`, which is made when missing.
    ///
    /// # Errors
    /// When the directory cannot be made, or builds cannot work below a path of its name.
    pub fn open(root: &Utf8Path) -> Result<Store, ImageError> {
        root::check(root)?;
        for dir in ["products", "building", "locks", "logs"] {
            make_dir(&root.join(dir))?;
        }
        let root = root.canonicalize_utf8().map_err(|e| ImageError::file("resolve", root, e))?;
        root::check(&root)?;
        Ok(Store { root, verified: Mutex::default(), free_min: FREE_MIN })
    }

    /// The cache's directory.
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// Where kernels' trees are kept.
    pub(crate) fn trees(&self) -> Utf8PathBuf {
        self.root.join("trees")
    }

    /// The product of `recipe`: from the cache when it is there and undamaged, else made by `make`.
    ///
    /// # Errors
    /// Those of `make`, and failures of the file system. A failed or interrupted `make` leaves
    /// nothing after but its log.
    pub fn product(
        &self,
        recipe: &Recipe,
        progress: &dyn ProgressSink,
        make: impl FnOnce(&BuildDir<'_>) -> Result<(), ImageError>,
    ) -> Result<Product, ImageError> {
        let directory = recipe.directory();
        if let Some(product) = self.verified.lock().expect("no panic while held").get(&directory) {
            return Ok(product.clone());
        }
        let product = match self.find(recipe)? {
            Found::Whole(product) => product,
            Found::Missing | Found::Damaged(_) => {
                let _lock = self.lock(&directory, &recipe.label(), progress)?;
                // Another process may have made it, or made it again, while this one waited for the lock.
                match self.find(recipe)? {
                    Found::Whole(product) => product,
                    Found::Missing => self.make(recipe, progress, make)?,
                    Found::Damaged(damage) => {
                        self.put_aside(recipe, &damage, progress)?;
                        self.make(recipe, progress, make)?
                    }
                }
            }
        };
        self.verified.lock().expect("no panic while held").insert(directory, product.clone());
        Ok(product)
    }

    /// Remove a product that is whole and cannot be used all the same: who wants it next makes it again. What was read of
    /// it before stays as it was.
    ///
    /// # Errors
    /// When it cannot be moved away.
    pub fn discard(&self, product: &Product) -> Result<(), ImageError> {
        self.verified.lock().expect("no panic while held").remove(product.id());
        let work = self.work_dir(product.id())?;
        match fs::rename(&product.dir, work.dir.join("discarded")) {
            // Another process has done so.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            moved => moved.map_err(|e| ImageError::file("move away", &product.dir, e)),
        }
    }

    fn product_dir(&self, recipe: &Recipe) -> Utf8PathBuf {
        self.root.join("products").join(recipe.directory())
    }

    fn find(&self, recipe: &Recipe) -> Result<Found, ImageError> {
        Product::find(&self.product_dir(recipe), recipe)
    }

    /// Keep a damaged product for inspection. The product's lock is held.
    fn put_aside(
        &self,
        recipe: &Recipe,
        damage: &str,
        progress: &dyn ProgressSink,
    ) -> Result<(), ImageError> {
        let dir = self.product_dir(recipe);
        let parent = self.root.join("damaged");
        make_dir(&parent)?;
        let name = recipe.directory();
        let aside = (1..).map(|n| parent.join(format!("{name}.{n}"))).find(|aside| !aside.exists());
        let aside = aside.expect("some number is free");
        fs::rename(&dir, &aside).map_err(|e| ImageError::file("move aside", &dir, e))?;
        progress.notice(&format!(
            "warning: the cached {} is damaged and will be made again: {damage}; it was moved to {aside}",
            recipe.label()
        ));
        Ok(())
    }

    fn make(
        &self,
        recipe: &Recipe,
        progress: &dyn ProgressSink,
        make: impl FnOnce(&BuildDir<'_>) -> Result<(), ImageError>,
    ) -> Result<Product, ImageError> {
        let label = recipe.label();
        if let Err(error) = self.sweep(SystemTime::now()) {
            progress.notice(&format!("warning: failed to remove old parts of the cache: {error}"));
        }
        let start = Instant::now();
        progress.begin(&label);
        let outcome = self.make_below(recipe, progress, make);
        progress.end(&label, outcome.is_ok(), start.elapsed());
        let free = rustix::fs::statvfs(self.root.as_std_path()).map_or(u64::MAX, |s| s.f_bavail * s.f_frsize);
        outcome.map_err(|error| self.with_free_space(&label, error, free))
    }

    fn make_below(
        &self,
        recipe: &Recipe,
        progress: &dyn ProgressSink,
        make: impl FnOnce(&BuildDir<'_>) -> Result<(), ImageError>,
    ) -> Result<Product, ImageError> {
        let directory = recipe.directory();
        let work = self.work_dir(&directory)?;
        let build_dir = BuildDir {
            out: work.dir.join("out"),
            scratch: work.dir.join("scratch"),
            log: self.root.join("logs").join(format!("{directory}.log")),
            label: recipe.label(),
            progress,
            sh: Shell::new().map_err(|e| ImageError::Host(e.to_string()))?,
        };
        for dir in [&build_dir.out, &build_dir.scratch, &self.root.join("logs"), &self.root.join("products")]
        {
            make_dir(dir)?;
        }
        remove_file(&build_dir.log)?;
        // A build may look at where it was started ($(PWD) in a makefile).
        build_dir.sh.change_dir(&build_dir.scratch);
        make(&build_dir)?;
        let manifest = ProductManifest { recipe: recipe.clone(), files: inventory(&build_dir.out)? };
        let text = serde_json::to_string_pretty(&manifest).expect("a manifest has a JSON form");
        write_synced(&build_dir.out.join(MANIFEST), text.as_bytes())?;
        let dir = self.product_dir(recipe);
        let placed = fs::rename(&build_dir.out, &dir);
        // Two processes make one product when the file of its lock was removed. Either's will do.
        let exists = |e: &io::Error| {
            matches!(e.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists)
        };
        match placed {
            Err(error) if !exists(&error) => return Err(ImageError::file("put in place", dir, error)),
            _ => {}
        }
        match self.find(recipe)? {
            Found::Whole(product) => Ok(product),
            Found::Missing | Found::Damaged(_) => Err(ImageError::Host(format!(
                "failed to keep {}: another process removed or changed `{dir}`\nhelp: run the command again",
                recipe.label()
            ))),
        }
    }

    /// Say how much room is left, in bytes, when that may be the cause of a failed build.
    fn with_free_space(&self, label: &str, error: ImageError, free: u64) -> ImageError {
        if error.is_interrupt() || free >= self.free_min {
            return error;
        }
        ImageError::NoSpace {
            label: label.to_owned(),
            free_mib: free >> 20,
            root: self.root.clone(),
            source: Box::new(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::testing::{Notices, recipe, store, write};
    use super::*;
    use crate::error::ErrorKind;
    use crate::progress::Silent;

    fn directory_is_empty(store: &Store, directory: &str) -> bool {
        store.root().join(directory).read_dir_utf8().expect("a directory").next().is_none()
    }

    #[test]
    fn product_is_made_once_and_every_input_counts() {
        let (_dir, store) = store();
        let made = AtomicUsize::new(0);
        let make = |build_dir: &BuildDir<'_>| {
            made.fetch_add(1, Ordering::SeqCst);
            write(build_dir, "x")
        };
        let first = store.product(&recipe(), &Silent, make).expect("made");
        let again =
            Store::open(store.root()).expect("opens").product(&recipe(), &Silent, make).expect("found");
        assert_eq!(first.dir, again.dir);
        assert_eq!(made.load(Ordering::SeqCst), 1);
        let other = store.product(&recipe().with("other", "b"), &Silent, make).expect("made");
        assert_ne!(first.dir, other.dir);
        assert_eq!(made.load(Ordering::SeqCst), 2);
        assert!(directory_is_empty(&store, "building"));
    }

    #[test]
    fn damaged_product_is_made_again_and_kept_aside() {
        let (_dir, store) = store();
        let product = store.product(&recipe(), &Silent, |w| write(w, "right")).expect("made");
        for damage in ["rightx", "missing", "no manifest"] {
            match damage {
                "missing" => fs::remove_file(product.dir.join("file")).expect("removed"),
                "no manifest" => fs::remove_file(product.dir.join(MANIFEST)).expect("removed"),
                _ => fs::write(product.dir.join("file"), damage).expect("written"),
            }
            let notices = Notices::default();
            let fresh = Store::open(store.root()).expect("opens");
            let product = fresh.product(&recipe(), &notices, |w| write(w, "right")).expect("made again");
            assert_eq!(fs::read_to_string(product.dir.join("file")).expect("there"), "right");
            let text = notices.text();
            assert!(text.starts_with("warning: the cached thing one is damaged and will be made"), "{text}");
        }
        assert_eq!(store.root().join("damaged").read_dir_utf8().expect("there").count(), 3);
    }

    #[test]
    fn product_made_again_by_another_process_is_not_put_aside() {
        let (_dir, store) = store();
        let product = store.product(&recipe(), &Silent, |w| write(w, "right")).expect("made");
        fs::write(product.dir.join("file"), "wrong").expect("written");
        let lock = store.lock(&recipe().directory(), "thing", &Silent).expect("free");
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let other = Store::open(store.root()).expect("opens");
                other.product(&recipe(), &Silent, |_| panic!("made twice")).expect("found").dir.clone()
            });
            // It has seen the damage, and waits for the lock.
            std::thread::sleep(Duration::from_millis(200));
            fs::write(product.dir.join("file"), "right").expect("written");
            drop(lock);
            assert_eq!(other.join().expect("no panic"), product.dir);
        });
        assert!(!store.root().join("damaged").exists());
    }

    #[test]
    fn failed_maker_leaves_no_product() {
        let (_dir, store) = store();
        let result = store.product(&recipe(), &Silent, |build_dir| {
            write(build_dir, "half")?;
            Err(ImageError::Host("on purpose".to_owned()))
        });
        assert!(result.is_err());
        assert!(directory_is_empty(&store, "building") && directory_is_empty(&store, "products"));
    }

    #[test]
    fn failure_with_little_free_space_is_one_of_space() {
        let (_dir, mut store) = store();
        let fail = |_: &BuildDir<'_>| -> Result<(), ImageError> {
            Err(ImageError::file("write", "/x", io::Error::from(io::ErrorKind::StorageFull)))
        };
        let error = store.product(&recipe(), &Silent, fail).map(drop).expect_err("fails");
        assert!(!matches!(error, ImageError::NoSpace { .. }), "{error}");
        store.free_min = u64::MAX;
        let error = store.product(&recipe(), &Silent, fail).map(drop).expect_err("fails");
        assert!(matches!(error, ImageError::NoSpace { .. }), "{error}");
        assert_eq!(error.kind(), ErrorKind::Io);
        let text = error.to_string();
        assert!(text.starts_with("no space to make thing one: "), "{text}");
        assert!(text.contains(&format!(" MiB are free in {}\nhelp: free some", store.root())), "{text}");
        assert!(text.ends_with("failed to write `/x`: no storage space"), "{text}");
        // An interrupt is one, however little there is.
        let interrupt = ImageError::Io(io::Error::from(io::ErrorKind::Interrupted));
        assert!(store.with_free_space("thing", interrupt, 0).is_interrupt());
    }

    #[test]
    fn removal_of_all_locks_and_work_during_a_build_leaves_a_whole_product() {
        let (_dir, store) = store();
        let half = |w: &BuildDir<'_>| fs::write(w.out.join("file"), "half").expect("written");
        let first = store
            .product(&recipe(), &Silent, |build_dir| {
                half(build_dir);
                fs::remove_dir_all(store.root().join("locks")).expect("removed");
                // Another process begins, and ends first.
                let other = Store::open(store.root()).expect("opens");
                let text = |w: &BuildDir<'_>| {
                    assert_ne!(w.out, build_dir.out);
                    write(w, "whole")
                };
                other.product(&recipe(), &Silent, text).expect("made");
                write(build_dir, "whole")
            })
            .expect("made");
        assert_eq!(fs::read_to_string(first.dir.join("file")).expect("there"), "whole");
        assert!(directory_is_empty(&store, "building"));
    }

    #[test]
    fn product_that_is_discarded_is_made_again() {
        let (_dir, store) = store();
        let make = |text: &'static str| {
            store.product(&recipe(), &Silent, move |build_dir| write(build_dir, text)).expect("made or found")
        };
        let first = make("first");
        store.discard(&first).expect("moved");
        store.discard(&first).expect("gone already");
        assert_eq!(fs::read_to_string(make("second").dir.join("file")).expect("there"), "second");
        assert!(directory_is_empty(&store, "building"));
    }

    #[test]
    fn concurrent_builders_make_a_product_once() {
        let (_dir, store) = store();
        let made = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    // A store of its own has no memory of what the others verified.
                    let store = Store::open(store.root()).expect("opens");
                    store
                        .product(&recipe(), &Silent, |build_dir| {
                            made.fetch_add(1, Ordering::SeqCst);
                            std::thread::sleep(Duration::from_millis(200));
                            write(build_dir, "x")
                        })
                        .expect("made or found");
                });
            }
        });
        assert_eq!(made.load(Ordering::SeqCst), 1);
    }
}
