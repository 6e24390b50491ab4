//! What decides what a product is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::{Digest, text_digest};

/// Everything that decides what a product is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    /// What is made, such as `kernel`; a word.
    pub kind: String,
    /// Which one, for people: it is part of the directory's name. A word.
    pub name: String,
    /// Each input by name: texts, versions, digests of files, command lines.
    pub inputs: BTreeMap<String, String>,
}

impl Recipe {
    /// A recipe without inputs yet.
    pub fn new(kind: &str, name: &str) -> Recipe {
        Recipe { kind: kind.to_owned(), name: name.to_owned(), inputs: BTreeMap::new() }
    }

    /// Add an input.
    #[must_use]
    pub fn with(mut self, input: &str, value: impl Into<String>) -> Recipe {
        let before = self.inputs.insert(input.to_owned(), value.into());
        assert!(before.is_none(), "input `{input}` given twice");
        self
    }

    /// The digest of kind and inputs. The name is for people only, but products of one digest must
    /// not differ, so it counts too.
    pub fn digest(&self) -> Digest {
        text_digest(&serde_json::to_string(self).expect("a map of strings has a JSON form"))
    }

    /// The name of the product's directory.
    pub(super) fn directory(&self) -> String {
        format!("{}-{}-{}", self.kind, self.name, self.digest().short())
    }

    /// The label under which progress is shown.
    pub fn label(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }
}
