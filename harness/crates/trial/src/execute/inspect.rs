//! What a module's file says of trace events, looked at on the host.

use std::fs;

use super::abort::HarnessError;
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
pub(super) fn inspect(name: &str, modules: &[BuiltModule]) -> Result<Inspected, HarnessError> {
    let found = modules.iter().find(|module| module.name == plain_name(name));
    let found = found.ok_or_else(|| HarnessError::NoModule(name.to_owned()))?;
    let path = &found.file;
    let bytes = fs::read(path).map_err(|error| HarnessError::file("read module", path, error))?;
    let module = Module::parse(&bytes).map_err(|error| HarnessError::Module { path: path.clone(), error })?;
    let undefined = match &found.preprocessed {
        Some(path) => {
            let text = fs::read(path).map_err(|error| HarnessError::file("read source", path, error))?;
            kmod::missing_definitions(&text, &module)
        }
        None => Vec::new(),
    };
    Ok(Inspected { module, undefined })
}
