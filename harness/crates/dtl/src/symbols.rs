//! Where things are in a kernel's memory.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};

/// Kernel addresses by symbol. With no KASLR they are those of the running kernel.
#[derive(Debug, Clone)]
pub struct Symbols {
    file: Utf8PathBuf,
    by_name: BTreeMap<String, u64>,
}

/// A symbol that a kernel does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the kernel has no symbol `{name}` (in {file})")]
pub struct NoSymbol {
    name: String,
    file: Utf8PathBuf,
}

impl Symbols {
    /// The symbols of a `System.map`: lines of address, type and name. Lines of another form hold
    /// no symbol. `file` is its name, for messages.
    pub fn parse(file: &Utf8Path, text: &str) -> Symbols {
        let mut symbols = Symbols { file: file.to_owned(), by_name: BTreeMap::new() };
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let (address, name) = (words.next(), words.nth(1));
            let address = address.and_then(|address| u64::from_str_radix(address, 16).ok());
            let (Some(address), Some(name)) = (address, name) else { continue };
            symbols.by_name.entry(name.to_owned()).or_insert(address);
        }
        symbols
    }

    /// The address of a symbol.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn address(&self, name: &str) -> Result<u64, NoSymbol> {
        let missing = || NoSymbol { name: name.to_owned(), file: self.file.clone() };
        self.by_name.get(name).copied().ok_or_else(missing)
    }

    /// All names, for a suggestion.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbol_has_an_address() {
        let text = "c000000000000000 T _stext\nc0000000000fcd10 t plpar\nc000000002000000 D data\nbad\n";
        let symbols = Symbols::parse(Utf8Path::new("System.map"), text);
        assert_eq!(symbols.address("plpar"), Ok(0xc000_0000_000f_cd10));
        assert_eq!(symbols.address("data"), Ok(0xc000_0000_0200_0000));
        let error = symbols.address("nothing").expect_err("missing").to_string();
        assert_eq!(error, "the kernel has no symbol `nothing` (in System.map)");
    }
}
