//! Kernel config fragments, the project's and the user's, and whether a final `.config` has what they ask for.

use std::collections::BTreeMap;
use std::fs;

use camino::{Utf8Path, Utf8PathBuf};

use crate::error::ImageError;

/// A config fragment of the user's, which is added to those of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFragment {
    path: Utf8PathBuf,
    text: String,
}

impl ConfigFragment {
    /// Read a fragment.
    ///
    /// # Errors
    /// When the file cannot be read, a line is neither a setting nor a comment, or no line sets anything.
    pub fn load(path: &Utf8Path) -> Result<ConfigFragment, ImageError> {
        let text = fs::read_to_string(path).map_err(|e| ImageError::file("read config fragment", path, e))?;
        let mut symbols = Fragments::default();
        symbols.add(path.as_str(), &text)?;
        if symbols.symbols.is_empty() {
            return Err(ImageError::EmptyFragment { file: path.to_owned() });
        }
        Ok(ConfigFragment { path: path.to_owned(), text })
    }

    /// The file that it was read from.
    pub(crate) fn path(&self) -> &Utf8Path {
        &self.path
    }
}

/// What fragments ask for: symbols without `CONFIG_`, each with its value; `n` for a symbol that is
/// not to be set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fragments {
    symbols: BTreeMap<String, Wanted>,
}

/// A symbol's value, and the file that asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    value: String,
    file: String,
}

impl Fragments {
    /// Add a fragment; where it names a symbol again, it wins.
    ///
    /// # Errors
    /// [`ImageError::InvalidFragment`]: the first line that is neither a setting nor a comment.
    pub(crate) fn add(&mut self, file: &str, fragment: &str) -> Result<(), ImageError> {
        for (at, line) in fragment.lines().enumerate() {
            if let Some((symbol, value)) = setting(line) {
                let wanted = Wanted { value: value.to_owned(), file: file.to_owned() };
                self.symbols.insert(symbol.to_owned(), wanted);
            } else if !line.trim().is_empty() && !line.starts_with('#') {
                return Err(ImageError::InvalidFragment {
                    file: file.to_owned(),
                    line: at + 1,
                    text: line.to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Add a fragment of the user's; where it names a symbol again, it wins.
    ///
    /// # Errors
    /// As [`Fragments::add`].
    pub(crate) fn add_users(&mut self, fragment: &ConfigFragment) -> Result<(), ImageError> {
        self.add(fragment.path.as_str(), &fragment.text)
    }

    /// The text to give to `KCONFIG_ALLCONFIG`.
    pub(crate) fn to_text(&self) -> String {
        self.symbols.iter().map(|(symbol, wanted)| format!("CONFIG_{symbol}={}\n", wanted.value)).collect()
    }

    /// Each symbol whose value in `config` is not the wanted one, in a sentence.
    pub(crate) fn missing_from(&self, config: &str) -> Vec<String> {
        let found: BTreeMap<&str, &str> = config.lines().filter_map(setting).collect();
        let sentence = |(symbol, Wanted { value, file }): (&String, &Wanted)| {
            let asked = format!("{file} asks for CONFIG_{symbol}={value}");
            match found.get(symbol.as_str()) {
                Some(found) if found == value => None,
                None if value == "n" => None,
                Some(found) => Some(format!("{asked}, and it is {found}")),
                None => Some(format!(
                    "{asked}, and it is not there: it is unknown to this kernel, or something that it depends on is off"
                )),
            }
        };
        self.symbols.iter().filter_map(sentence).collect()
    }
}

/// `CONFIG_X=y` and `# CONFIG_X is not set` as symbol and value.
fn setting(line: &str) -> Option<(&str, &str)> {
    if let Some(rest) = line.strip_prefix("CONFIG_") {
        return rest.split_once('=').map(|(symbol, value)| (symbol, value.trim_end()));
    }
    let symbol = line.strip_prefix("# CONFIG_")?.strip_suffix(" is not set")?;
    Some((symbol, "n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(fragments: &[&str]) -> Fragments {
        let mut wanted = Fragments::default();
        for fragment in fragments {
            wanted.add("f.config", fragment).expect("valid");
        }
        wanted
    }

    #[test]
    fn symbol_with_another_value_is_named() {
        let wanted = wanted(&[
            "CONFIG_SMP=y\nCONFIG_A=m\n# CONFIG_OFF is not set\n",
            "CONFIG_GONE=n\nCONFIG_B=\"x\"\n",
        ]);
        assert_eq!(wanted.missing_from("CONFIG_SMP=y\nCONFIG_A=m\nCONFIG_B=\"x\"\n"), Vec::<String>::new());
        let missing = wanted.missing_from("CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_OFF=y\n");
        let off =
            ", and it is not there: it is unknown to this kernel, or something that it depends on is off";
        assert_eq!(
            missing,
            [
                "f.config asks for CONFIG_A=m, and it is y".to_owned(),
                "f.config asks for CONFIG_B=\"x\", and it is n".to_owned(),
                "f.config asks for CONFIG_OFF=n, and it is y".to_owned(),
                format!("f.config asks for CONFIG_SMP=y{off}"),
            ]
        );
    }

    #[test]
    fn later_fragment_wins() {
        let wanted = wanted(&["CONFIG_A=y\n", "CONFIG_A=n\n"]);
        assert_eq!(wanted.to_text(), "CONFIG_A=n\n");
    }

    #[test]
    fn line_that_sets_nothing_is_refused_with_its_place() {
        assert!(
            Fragments::default()
                .add("images/kernel/f.config", "# why\n\nCONFG_A=y\n")
                .expect_err("refused")
                .to_string()
                == "images/kernel/f.config:3: neither CONFIG_NAME=value nor a comment: `CONFG_A=y`"
        );
    }

    #[test]
    fn fragment_of_the_user_wins_and_is_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = Utf8Path::from_path(dir.path()).expect("UTF-8").join("my.config");
        let load = |text: &str| {
            fs::write(&path, text).expect("written");
            ConfigFragment::load(&path)
        };
        let mut wanted = wanted(&["CONFIG_A=y\nCONFIG_B=y\n"]);
        wanted.add_users(&load("# CONFIG_A is not set\n").expect("valid")).expect("valid");
        assert_eq!(wanted.to_text(), "CONFIG_A=n\nCONFIG_B=y\n");
        assert_eq!(
            wanted.missing_from("CONFIG_A=y\nCONFIG_B=y\n"),
            [format!("{path} asks for CONFIG_A=n, and it is y")]
        );
        let text = load("CONFIG_A=y\nA=y\n").expect_err("refused").to_string();
        assert_eq!(text, format!("{path}:2: neither CONFIG_NAME=value nor a comment: `A=y`"));
        let error = load("# nothing\n").expect_err("refused");
        assert!(matches!(error, ImageError::EmptyFragment { .. }), "{error}");
    }
}
