//! What the continuous integration of goldtrace runs: the checks of a change, then all tests.
//!
//! Every step is a command that a person can run, and is printed before it runs. The last line is `N passed, 0 failed`,
//! N trials on guests, and it comes only when no trial was left out.

mod leftovers;
mod trials;

use anyhow::{Result, ensure};
use xshell::{Shell, cmd};

/// Warnings are errors here, and the list of dependencies is the one in Cargo.lock.
fn main() -> Result<()> {
    let sh = Shell::new()?;
    cmd!(sh, "cargo fmt --all --check").run()?;
    cmd!(sh, "cargo clippy --workspace --all-targets --locked -- -D warnings").run()?;
    cmd!(sh, "ci/minimum-rust").run()?;
    cmd!(sh, "cargo check --manifest-path harness/fuzz/Cargo.toml --locked").run()?;
    cmd!(sh, "cargo run --quiet --locked -- lint").run()?;
    let marker = leftovers::Marker::new();
    let executed = {
        let _env = sh.push_env(leftovers::VARIABLE, marker.value());
        let executed = trials::run(&sh)?;
        // The tests restore guests from snapshots: what passes there passes in a guest that has booted.
        cmd!(sh, "cargo run --quiet --locked -- run --isolate boot --deny-skips").run()?;
        executed
    };
    let left = marker.processes()?;
    ensure!(left.is_empty(), "the tests left processes running:\n  {}", left.join("\n  "));
    println!("{executed} passed, 0 failed");
    Ok(())
}
