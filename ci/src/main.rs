//! What the continuous integration of goldtrace runs: the checks of a change, then what the README
//! tells a user to run. Prints what was executed and fails when a trial of a guest was not.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use xshell::{Cmd, Shell, cmd};

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

    let mut by_guest: BTreeMap<&str, usize> = BTreeMap::new();
    for trial in &expected {
        let line = format!("test {trial} ");
        let found = text.lines().find(|shown| shown.starts_with(&line));
        match found.and_then(|shown| shown.rsplit(' ').next()) {
            Some("ok") => {}
            Some(other) => bail!("trial {trial} came to `{other}`: no trial may be skipped here"),
            None => bail!("trial {trial} was not run by `cargo test`"),
        }
        let guest = trial.rsplit('@').next().context("a trial's name ends with its guest")?;
        *by_guest.entry(guest).or_default() += 1;
    }
    for (guest, count) in &by_guest {
        println!("guest {guest}: {count} trials executed, none skipped");
    }
    println!("{} passed, 0 failed", expected.len());
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
