//! What a module's file says of trace events, looked at on the host.

use std::fs;

use super::abort::Abort;
use image::{BuiltModule, plain_name};
use kmod::{self, Module};

/// A module that a step has looked at.
#[derive(Debug, Clone)]
pub struct Inspected {
    /// What its file says.
    pub module: Module,
    /// What its preprocessed source does not define, or defines and the file does not hold.
    pub undefined: Vec<String>,
}

/// Look at the module of this name.
///
/// # Errors
/// When there is none, or its files cannot be read.
pub(super) fn inspect(name: &str, modules: &[BuiltModule]) -> Result<Inspected, Abort> {
    let found = modules.iter().find(|module| module.name == plain_name(name));
    let found = found.ok_or_else(|| Abort::Machine(format!("the guest has no module {name}")))?;
    let fail = |path: &camino::Utf8Path, error: &dyn std::fmt::Display| {
        Abort::Machine(format!("failed to inspect module `{path}`: {error}"))
    };
    let bytes = fs::read(&found.file).map_err(|e| fail(&found.file, &e))?;
    let module = Module::parse(&bytes).map_err(|e| fail(&found.file, &e))?;
    let undefined = match &found.preprocessed {
        Some(path) => {
            let text = fs::read(path).map_err(|e| fail(path, &e))?;
            kmod::missing_definitions(&text, &module)
        }
        None => Vec::new(),
    };
    Ok(Inspected { module, undefined })
}
