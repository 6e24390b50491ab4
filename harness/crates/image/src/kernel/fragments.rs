//! Kernel config fragments, and whether a final `.config` has what they ask for.

use std::collections::BTreeMap;

use crate::error::ImageError;

/// What fragments ask for: symbols without `CONFIG_`, each with its value; `n` for a symbol that is
/// not to be set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fragments {
    symbols: BTreeMap<String, String>,
}

impl Fragments {
    /// Add a fragment; where it names a symbol again, it wins.
    ///
    /// # Errors
    /// [`ImageError::InvalidFragment`]: the first line that is neither a setting nor a comment.
    pub(super) fn add(&mut self, file: &str, fragment: &str) -> Result<(), ImageError> {
        for (at, line) in fragment.lines().enumerate() {
            if let Some((symbol, value)) = setting(line) {
                self.symbols.insert(symbol.to_owned(), value.to_owned());
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

    /// The text to give to `KCONFIG_ALLCONFIG`.
    pub(super) fn to_text(&self) -> String {
        self.symbols.iter().map(|(symbol, value)| format!("CONFIG_{symbol}={value}\n")).collect()
    }

    /// Each symbol whose value in `config` is not the wanted one, in a sentence.
    pub(super) fn missing_from(&self, config: &str) -> Vec<String> {
        let found: BTreeMap<&str, &str> = config.lines().filter_map(setting).collect();
        self.symbols
            .iter()
            .filter_map(|(symbol, wanted)| match found.get(symbol.as_str()) {
                Some(value) if value == wanted => None,
                None if wanted == "n" => None,
                Some(value) => Some(format!("CONFIG_{symbol}={wanted} was asked for, and it is {value}")),
                None => Some(format!(
                    "CONFIG_{symbol}={wanted} was asked for, and it is not there: \
                     it is unknown to this kernel, or something that it depends on is off"
                )),
            })
            .collect()
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
        let names: Vec<&str> = missing.iter().map(|m| m.split('=').next().expect("one part")).collect();
        assert_eq!(names, ["CONFIG_A", "CONFIG_B", "CONFIG_OFF", "CONFIG_SMP"]);
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
}
