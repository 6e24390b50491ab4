//! All tests, and whether every case ran on every guest that it is for.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use xshell::{Cmd, Shell, cmd};

/// Run all tests; how many trials were executed. A trial that was skipped is an error: a guest of the project has what
/// the project's cases require, or the case names its guests.
pub(crate) fn run(sh: &Shell) -> Result<usize> {
    let listed = cmd!(sh, "cargo run --quiet --locked -- run --dry-run").read()?;
    let expected: Vec<&str> = listed.lines().collect();
    ensure!(!expected.is_empty(), "`goldtrace run --dry-run` lists no trial");
    let output = shown_output(cmd!(sh, "cargo test --workspace --locked"))?;
    for (guest, count) in executed(&expected, &output)? {
        println!("guest {guest}: {count} trials executed");
    }
    Ok(expected.len())
}

/// How many of the expected trials passed on each guest, by what libtest printed.
fn executed<'t>(expected: &[&'t str], output: &str) -> Result<BTreeMap<&'t str, usize>> {
    let mut by_guest = BTreeMap::new();
    for trial in expected {
        let line = format!("test {trial} ");
        let found = output.lines().find(|shown| shown.starts_with(&line));
        let found = found.with_context(|| format!("trial {trial} was not run by `cargo test`"))?;
        let outcome = found.split_once("... ").map_or("", |(_, outcome)| outcome);
        if outcome != "ok" {
            bail!("expected trial {trial} to pass, found `{outcome}`");
        }
        let (_, guest) = trial.rsplit_once('@').context("a trial's name ends with its guest")?;
        *by_guest.entry(guest).or_default() += 1;
    }
    Ok(by_guest)
}

/// Run a command to its end and show its standard output line by line; the output.
fn shown_output(command: Cmd<'_>) -> Result<String> {
    println!("$ {command}");
    let shown = command.to_string();
    let mut child = Command::from(command).stdout(Stdio::piped()).spawn()?;
    let mut text = String::new();
    for line in BufReader::new(child.stdout.take().context("the output is piped")?).lines() {
        let line = line?;
        println!("{line}");
        text.push_str(&line);
        text.push('\n');
    }
    let status = child.wait()?;
    ensure!(status.success(), "`{shown}` failed: {status}");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "running 3 tests\ntest a@x    ... ok\ntest a@y    ... ok\ntest b@x    ... ok\n";

    #[test]
    fn passed_trials_are_counted_by_guest() {
        let counts = executed(&["a@x", "a@y", "b@x"], OUTPUT).expect("all passed");
        assert_eq!(counts, BTreeMap::from([("x", 2), ("y", 1)]));
    }

    #[test]
    fn missing_and_skipped_trials_are_errors() {
        let error =
            |expected: &[&str], output: &str| executed(expected, output).expect_err("an error").to_string();
        assert_eq!(error(&["b@y"], OUTPUT), "trial b@y was not run by `cargo test`");
        let skipped = OUTPUT.replace("b@x    ... ok", "b@x    ... ignored, no perf");
        assert_eq!(error(&["b@x"], &skipped), "expected trial b@x to pass, found `ignored, no perf`");
    }
}
