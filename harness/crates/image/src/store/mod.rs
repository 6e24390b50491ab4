//! The content-addressed cache of everything that is expensive to make.
//!
//! A [`Recipe`] names every input of a product; the product's directory is named by the digest of all
//! of them. A product appears whole or not at all: it is made in a work directory and renamed when its
//! manifest, with the SHA-256 of each file, is written. Each use hashes the files again.
//!
//! Layout below the root: `products/` finished, `work/` being made, `locks/`, `logs/`, `damaged/`
//! (products whose files no longer match, kept for inspection).

mod build_dir;
mod product;
mod recipe;
mod work;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::sync::Mutex;
use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};

use xshell::Shell;

use crate::error::ImageError;
use crate::progress::ProgressSink;
pub(crate) use build_dir::BuildDir;
pub use product::Product;
use product::{MANIFEST, ProductManifest, damage, inventory};
pub use recipe::Recipe;

/// The cache.
#[derive(Debug)]
pub struct Store {
    root: Utf8PathBuf,
    /// Products that this process has already verified, by directory.
    verified: Mutex<BTreeMap<String, Product>>,
}

impl Store {
    /// The cache in `$GOLDTRACE_CACHE`, `$XDG_CACHE_HOME/goldtrace` or `~/.cache/goldtrace`.
    ///
    /// # Errors
    /// When none of the three is set, or the directory cannot be made.
    pub fn open_default() -> Result<Store, ImageError> {
        Store::open(&Store::default_root()?)
    }

    /// The directory of the user's cache, which may not exist yet.
    ///
    /// # Errors
    /// When no environment variable says where it is.
    pub fn default_root() -> Result<Utf8PathBuf, ImageError> {
        let from = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        from("GOLDTRACE_CACHE")
            .map(Utf8PathBuf::from)
            .or_else(|| from("XDG_CACHE_HOME").map(|dir| Utf8PathBuf::from(dir).join("goldtrace")))
            .or_else(|| from("HOME").map(|dir| Utf8PathBuf::from(dir).join(".cache/goldtrace")))
            .ok_or(ImageError::NoCacheDirectory)
    }

    /// The cache in `root`, which is made when missing.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn open(root: &Utf8Path) -> Result<Store, ImageError> {
        for dir in ["products", "work", "locks", "logs"] {
            make_dir(&root.join(dir))?;
        }
        let root = root.canonicalize_utf8().map_err(|e| ImageError::file("resolve", root, e))?;
        Ok(Store { root, verified: Mutex::default() })
    }

    /// The cache's directory.
    pub fn root(&self) -> &Utf8Path {
        &self.root
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
        let product = match self.stored(recipe, progress)? {
            Some(product) => product,
            None => {
                let _lock = self.lock(&directory, &recipe.label(), progress)?;
                // Another process may have made it while this one waited for the lock.
                match self.stored(recipe, progress)? {
                    Some(product) => product,
                    None => self.make(recipe, progress, make)?,
                }
            }
        };
        self.verified.lock().expect("no panic while held").insert(directory, product.clone());
        Ok(product)
    }

    fn product_dir(&self, recipe: &Recipe) -> Utf8PathBuf {
        self.root.join("products").join(recipe.directory())
    }

    /// The product when it is there and whole. A damaged one is put aside.
    fn stored(&self, recipe: &Recipe, progress: &dyn ProgressSink) -> Result<Option<Product>, ImageError> {
        let dir = self.product_dir(recipe);
        let text = match fs::read_to_string(dir.join(MANIFEST)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(ImageError::file("read", dir.join(MANIFEST), error)),
        };
        let damage = match serde_json::from_str::<ProductManifest>(&text) {
            Ok(manifest) if manifest.recipe == *recipe => match damage(&dir, &manifest)? {
                None => return Ok(Some(Product { dir, files: manifest.files })),
                Some(damage) => damage,
            },
            Ok(_) => "its manifest is that of another recipe".to_owned(),
            Err(error) => format!("its manifest cannot be read: {error}"),
        };
        let aside = self.put_aside(&dir)?;
        progress.notice(&format!(
            "warning: the cached {} is damaged and will be made again: {damage}; it was moved to {aside}",
            recipe.label()
        ));
        Ok(None)
    }

    fn put_aside(&self, dir: &Utf8Path) -> Result<Utf8PathBuf, ImageError> {
        let parent = self.root.join("damaged");
        make_dir(&parent)?;
        let name = dir.file_name().expect("a product's directory has a name");
        for n in 1.. {
            let aside = parent.join(format!("{name}.{n}"));
            if !aside.exists() {
                match fs::rename(dir, &aside) {
                    // Another process has put it aside already.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    other => other.map_err(|e| ImageError::file("move aside", dir, e))?,
                }
                return Ok(aside);
            }
        }
        unreachable!("some number is free")
    }

    fn make(
        &self,
        recipe: &Recipe,
        progress: &dyn ProgressSink,
        make: impl FnOnce(&BuildDir<'_>) -> Result<(), ImageError>,
    ) -> Result<Product, ImageError> {
        let directory = recipe.directory();
        let label = recipe.label();
        let work = self.work_dir(&directory, progress)?;
        let build_dir = BuildDir {
            out: work.dir.join("out"),
            scratch: work.dir.join("scratch"),
            log: self.root.join("logs").join(format!("{directory}.log")),
            label: label.clone(),
            progress,
            sh: Shell::new().map_err(|e| ImageError::Host(e.to_string()))?,
        };
        make_dir(&build_dir.out)?;
        make_dir(&build_dir.scratch)?;
        // A build may look at where it was started ($(PWD) in a makefile).
        build_dir.sh.change_dir(&build_dir.scratch);
        remove_file(&build_dir.log)?;
        let start = Instant::now();
        progress.begin(&label);
        let outcome = make(&build_dir).and_then(|()| {
            let files = inventory(&build_dir.out)?;
            let manifest = ProductManifest { recipe: recipe.clone(), files };
            let text = serde_json::to_string_pretty(&manifest).expect("a manifest has a JSON form");
            let path = build_dir.out.join(MANIFEST);
            write_synced(&path, text.as_bytes())?;
            let dir = self.product_dir(recipe);
            fs::rename(&build_dir.out, &dir).map_err(|e| ImageError::file("put in place", &dir, e))?;
            Ok(Product { dir, files: manifest.files })
        });
        progress.end(&label, outcome.is_ok(), start.elapsed());
        outcome.map_err(|error| self.with_free_space(&label, error))
    }

    /// Say how much room is left, when that may be the cause of a failed build.
    fn with_free_space(&self, label: &str, error: ImageError) -> ImageError {
        let free = rustix::fs::statvfs(self.root.as_std_path()).map_or(u64::MAX, |s| s.f_bavail * s.f_frsize);
        if error.is_interrupt() || free > 256 << 20 {
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

pub(super) fn make_dir(path: &Utf8Path) -> Result<(), ImageError> {
    fs::create_dir_all(path).map_err(|e| ImageError::file("create", path, e))
}

fn remove_dir(path: &Utf8Path) -> Result<(), ImageError> {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(ImageError::file("remove", path, e)),
        _ => Ok(()),
    }
}

fn remove_file(path: &Utf8Path) -> Result<(), ImageError> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(ImageError::file("remove", path, e)),
        _ => Ok(()),
    }
}

fn write_synced(path: &Utf8Path, bytes: &[u8]) -> Result<(), ImageError> {
    let write = || {
        let mut file = File::create(path)?;
        io::Write::write_all(&mut file, bytes)?;
        file.sync_all()
    };
    write().map_err(|e| ImageError::file("write", path, e))
}

/// Write a file so that a reader, even one without a lock, gets all of the old or all of the new text.
pub(crate) fn write_whole(path: &Utf8Path, text: &str) -> Result<(), ImageError> {
    let fail = |e| ImageError::file("write", path, e);
    let directory = path.parent().expect("a file stands in a directory");
    make_dir(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory).map_err(fail)?;
    io::Write::write_all(&mut file, text.as_bytes()).map_err(fail)?;
    file.persist(path).map_err(|e| fail(e.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use std::time::Duration;

    use super::*;
    use crate::progress::Silent;

    fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Store::open(Utf8Path::from_path(dir.path()).expect("UTF-8")).expect("opens");
        (dir, store)
    }

    fn recipe() -> Recipe {
        Recipe::new("thing", "one").with("text", "a")
    }

    fn write(build_dir: &BuildDir<'_>, text: &str) -> Result<(), ImageError> {
        fs::write(build_dir.out.join("file"), text).map_err(|e| ImageError::file("write", &build_dir.out, e))
    }

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
        let other = store.product(&recipe().with("flag", "b"), &Silent, make).expect("made");
        assert_ne!(first.dir, other.dir);
        assert_eq!(made.load(Ordering::SeqCst), 2);
        assert!(directory_is_empty(&store, "work"));
    }

    #[test]
    fn damaged_product_is_made_again_and_kept_aside() {
        let (_dir, store) = store();
        let product = store.product(&recipe(), &Silent, |w| write(w, "right")).expect("made");
        fs::write(product.dir.join("file"), "rightx").expect("written");
        let fresh = Store::open(store.root()).expect("opens");
        let product = fresh.product(&recipe(), &Silent, |w| write(w, "right")).expect("made again");
        assert_eq!(fs::read_to_string(product.dir.join("file")).expect("there"), "right");
        assert!(!directory_is_empty(&store, "damaged"));
    }

    #[test]
    fn failed_maker_leaves_no_product() {
        let (_dir, store) = store();
        let result = store.product(&recipe(), &Silent, |build_dir| {
            write(build_dir, "half")?;
            Err(ImageError::Host("on purpose".to_owned()))
        });
        assert!(result.is_err());
        assert!(directory_is_empty(&store, "work") && directory_is_empty(&store, "products"));
    }

    #[test]
    fn abandoned_work_is_swept_and_held_work_is_kept() {
        let (_dir, store) = store();
        let left = store.root().join("work/left");
        make_dir(&left.join("deep")).expect("made");
        let held = store.work_dir("held", &Silent).expect("made");
        store.product(&recipe(), &Silent, |w| write(w, "x")).expect("made");
        assert!(!left.exists());
        assert!(held.dir.exists());
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
