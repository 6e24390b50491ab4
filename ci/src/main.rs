//! What the continuous integration of goldtrace runs: the checks of a change, then what the README
//! tells a user to run. Prints what was executed and fails when a trial of a guest was not.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use xshell::{Cmd, Shell, cmd};

/// Trials that are skipped by right: what the case's name begins with, the guest, and what the guest's
/// kernel cannot have. No other trial may be skipped, and these may not run either.
const SKIPPED: [(&str, &str, &str); 1] = [("vpa-dtl/", "x86_64", "has no CONFIG_HV_PERF_CTRS")];

fn main() -> Result<()> {
    let sh = Shell::new()?;
    cmd!(sh, "cargo fmt --all --check").run()?;
    cmd!(sh, "cargo clippy --workspace --all-targets --locked -- -D warnings").run()?;
    let before = qemus(&sh)?;
    tests(&sh)?;
    let after = qemus(&sh)?;
    let left: Vec<&String> = after.iter().filter(|line| !before.contains(line)).collect();
    ensure!(left.is_empty(), "the tests left QEMU running: {left:?}");
    Ok(())
}

/// Run all tests, and check from their own words that every case ran on every guest.
fn tests(sh: &Shell) -> Result<()> {
    let listed = cmd!(sh, "cargo run --quiet --locked -- run --dry-run").read()?;
    let expected: Vec<&str> = listed.lines().collect();
    ensure!(!expected.is_empty(), "`goldtrace run --dry-run` lists no trial");

    let text = shown_output(cmd!(sh, "cargo test --locked"))?;

    let mut by_guest: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for trial in &expected {
        let line = format!("test {trial} ");
        let found = text.lines().find(|shown| shown.starts_with(&line));
        let found = found.with_context(|| format!("trial {trial} was not run by `cargo test`"))?;
        let outcome = found.split_once("... ").map_or("", |(_, outcome)| outcome);
        let (case, guest) = trial.rsplit_once('@').context("a trial's name ends with its guest")?;
        let by_right = SKIPPED.iter().find(|(cases, on, _)| case.starts_with(cases) && *on == guest);
        let (executed, skipped) = by_guest.entry(guest).or_default();
        match by_right {
            None if outcome == "ok" => *executed += 1,
            Some((_, _, why)) if outcome.starts_with("ignored") && outcome.contains(why) => *skipped += 1,
            None => bail!("trial {trial} came to `{outcome}`: it may not be skipped here"),
            Some((_, _, why)) => {
                bail!("trial {trial} came to `{outcome}`: it was to be skipped, as the guest {why}")
            }
        }
    }
    let all = by_guest.values().map(|(executed, _)| executed).sum::<usize>();
    for (guest, (executed, skipped)) in &by_guest {
        ensure!(*executed > 0, "no trial was executed on guest {guest}");
        println!(
            "guest {guest}: {executed} trials executed, {skipped} skipped that its architecture cannot have"
        );
    }
    println!("{all} passed, 0 failed");
    Ok(())
}

/// Run a command to its end, showing its standard output line by line; the output.
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
    ensure!(status.success(), "`{shown}` ended with {status}");
    Ok(text)
}

/// The command lines of all QEMUs on this machine.
fn qemus(sh: &Shell) -> Result<Vec<String>> {
    let all = cmd!(sh, "ps -e -o args=").read()?;
    Ok(all.lines().filter(|line| line.starts_with("qemu-system-")).map(str::to_owned).collect())
}
