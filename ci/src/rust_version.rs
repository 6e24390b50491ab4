//! The oldest Rust that goldtrace builds with, `rust-version` in Cargo.toml.
//!
//! Without that toolchain two things can be checked: that no dependency asks for a newer one (here), and that our code
//! calls nothing of a newer standard library (clippy's lint `incompatible_msrv`, which the workspace denies).

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use xshell::{Shell, cmd};

/// Fail when a dependency asks for a newer Rust than we do.
pub(crate) fn check(sh: &Shell) -> Result<()> {
    let host = cmd!(sh, "rustc --version --verbose").read()?;
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
    let metadata = cmd!(sh, "cargo metadata --locked --format-version 1 --filter-platform {host}").read()?;
    let metadata: Value = serde_json::from_str(&metadata).context("failed to read cargo's metadata")?;
    let newer = newer_dependencies(&metadata)?;
    ensure!(newer.is_empty(), "dependencies need a newer Rust than rust-version:\n  {}", newer.join("\n  "));
    Ok(())
}

/// Packages whose `rust-version` is above that of the packages of the workspace.
fn newer_dependencies(metadata: &Value) -> Result<Vec<String>> {
    let packages = metadata["packages"].as_array().context("cargo's metadata have no packages")?;
    // What is in no registry is in the workspace.
    let (ours, others): (Vec<_>, Vec<_>) = packages.iter().partition(|package| package["source"].is_null());
    let ours = ours.iter().filter_map(|package| version(package)).min();
    let ours = ours.context("no package of the workspace has a rust-version")?;
    let newer = others.iter().filter(|package| version(package).is_some_and(|version| version > ours));
    Ok(newer.map(|package| format!("{} {}", package["name"], package["rust_version"])).collect())
}

/// A package's `rust-version` as numbers.
fn version(package: &Value) -> Option<Vec<u32>> {
    package["rust_version"].as_str()?.split('.').map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependency_that_needs_a_newer_rust_is_found() {
        let package = |name: &str, version: Option<&str>, source: Option<&str>| serde_json::json!({ "name": name, "rust_version": version, "source": source });
        let packages = |newest: &str| {
            serde_json::json!({ "packages": [
                package("ours", Some("1.85"), None),
                package("old", Some("1.9"), Some("registry")),
                package("any", None, Some("registry")),
                package("new", Some(newest), Some("registry")),
            ]})
        };
        assert_eq!(newer_dependencies(&packages("1.85")).expect("valid"), [""; 0]);
        assert_eq!(newer_dependencies(&packages("1.85.1")).expect("valid"), ["\"new\" \"1.85.1\""]);
    }
}
