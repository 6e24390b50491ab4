//! Where the cache is.

use camino::{Utf8Path, Utf8PathBuf};

use super::Store;
use crate::error::ImageError;

impl Store {
    /// The cache in `$GOLDTRACE_CACHE`, `$XDG_CACHE_HOME/goldtrace` or `~/.cache/goldtrace`.
    ///
    /// # Errors
    /// When none of the three is set, the directory cannot be made, or builds cannot work below a path of its name.
    pub fn open_default() -> Result<Store, ImageError> {
        Store::open(&Store::default_root()?)
    }

    /// The directory of the user's cache, which may not exist yet.
    ///
    /// # Errors
    /// When no environment variable says where it is, or builds cannot work below a path of its name.
    pub fn default_root() -> Result<Utf8PathBuf, ImageError> {
        let root = root_of(|name| std::env::var(name).ok())?;
        check(&root)?;
        Ok(root)
    }
}

fn root_of(variable: impl Fn(&str) -> Option<String>) -> Result<Utf8PathBuf, ImageError> {
    let from = |name: &str| variable(name).filter(|value| !value.is_empty());
    from("GOLDTRACE_CACHE")
        .map(Utf8PathBuf::from)
        .or_else(|| from("XDG_CACHE_HOME").map(|dir| Utf8PathBuf::from(dir).join("goldtrace")))
        .or_else(|| from("HOME").map(|dir| Utf8PathBuf::from(dir).join(".cache/goldtrace")))
        .ok_or(ImageError::NoCacheDirectory)
}

/// Whether make and its shells take a path below `root` for one word. The kernel's Makefile refuses white space and
/// colons (Makefile:207, Linux 7.2), after the source was downloaded and unpacked; the other characters would break
/// builds midway.
///
/// # Errors
/// [`ImageError::CachePath`].
pub(super) fn check(root: &Utf8Path) -> Result<(), ImageError> {
    let special =
        |c: &char| c.is_whitespace() || c.is_control() || r##":"'`\$#%&;|<>()[]{}*?!"##.contains(*c);
    match root.as_str().chars().find(special) {
        None => Ok(()),
        Some(character) => Err(ImageError::CachePath { root: root.to_owned(), character }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn first_variable_that_is_set_says_where_the_cache_is() {
        let root = |set: &[(&str, &str)]| {
            root_of(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
        };
        let all = [("HOME", "/h"), ("XDG_CACHE_HOME", "/x"), ("GOLDTRACE_CACHE", "/g")];
        assert_eq!(root(&all).expect("set"), "/g");
        assert_eq!(root(&all[..2]).expect("set"), "/x/goldtrace");
        assert_eq!(root(&all[..1]).expect("set"), "/h/.cache/goldtrace");
        let error = root(&[("HOME", "")]).expect_err("none");
        assert_eq!(error.kind(), ErrorKind::Io);
        assert_eq!(
            error.to_string(),
            "failed to choose a cache directory: none of GOLDTRACE_CACHE, XDG_CACHE_HOME and HOME is set"
        );
    }

    #[test]
    fn path_that_the_kernels_make_refuses_is_refused_before_anything_is_made() {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = Utf8Path::from_path(dir.path()).expect("UTF-8");
        for (name, shown) in [("my cache", "' '"), ("a:b", "':'"), ("a\tb", "'\\t'"), ("a$b", "'$'")] {
            let error = Store::open(&dir.join(name)).expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::Host);
            assert!(error.to_string().contains(&format!("/{name}`: {shown}")), "{error}");
            assert!(error.to_string().contains("help: set GOLDTRACE_CACHE to "), "{error}");
        }
        assert!(dir.read_dir_utf8().expect("there").next().is_none());
        for name in ["caché", "a-b_c.d+e,f@g=h~"] {
            Store::open(&dir.join(name)).expect("opens");
        }
    }

    #[test]
    fn link_to_such_a_path_is_refused_too() {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = Utf8Path::from_path(dir.path()).expect("UTF-8");
        std::fs::create_dir(dir.join("my cache")).expect("made");
        std::os::unix::fs::symlink("my cache", dir.join("link")).expect("made");
        let error = Store::open(&dir.join("link")).expect_err("refused");
        assert!(matches!(error, ImageError::CachePath { character: ' ', .. }), "{error}");
    }
}
