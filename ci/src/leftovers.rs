//! Processes that the tests started and did not end.
//!
//! They are known by a variable in their environment, which every descendant of the tests inherits, so that nothing that
//! somebody else runs on the machine counts.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::{Context, Result};

/// The variable in the environment of the tests.
pub(crate) const VARIABLE: &str = "GOLDTRACE_CI_RUN";

/// A value of the variable for this run alone.
pub(crate) struct Marker {
    value: String,
}

impl Marker {
    pub(crate) fn new() -> Marker {
        Marker { value: std::process::id().to_string() }
    }

    pub(crate) fn value(&self) -> &str {
        &self.value
    }

    /// The command lines of the processes that carry the marker, each with its id.
    pub(crate) fn processes(&self) -> Result<Vec<String>> {
        let wanted = format!("{VARIABLE}={}", self.value);
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").context("failed to read directory `/proc`")? {
            let entry = entry.context("failed to read directory `/proc`")?;
            if entry.file_name().as_bytes().iter().all(u8::is_ascii_digit) && carries(&entry.path(), &wanted)
            {
                found.push(shown(&entry.path(), &entry.file_name()));
            }
        }
        Ok(found)
    }
}

/// Whether a process has a word in its environment. One that has ended in the meantime, or that belongs to another
/// user, has not.
fn carries(process: &Path, wanted: &str) -> bool {
    let environment = fs::read(process.join("environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|word| word == wanted.as_bytes())
}

fn shown(process: &Path, id: &OsStr) -> String {
    let command = fs::read(process.join("cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    format!("{}: {}", id.to_string_lossy(), command.trim_end())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn marked_process_is_found_and_other_is_not() {
        let marker = Marker { value: format!("test {}", std::process::id()) };
        let mut other = Command::new("sleep").arg("98").spawn().expect("starts");
        let mut marked =
            Command::new("sleep").arg("99").env(VARIABLE, marker.value()).spawn().expect("starts");
        // Between fork and exec a process has its parent's environment.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        let mut found = Vec::new();
        while found.is_empty() && std::time::Instant::now() < deadline {
            found = marker.processes().expect("readable");
        }
        marked.kill().and_then(|()| marked.wait()).expect("ended");
        other.kill().and_then(|()| other.wait()).expect("ended");
        assert_eq!(found, [format!("{}: sleep 99", marked.id())]);
        assert_eq!(marker.processes().expect("readable"), [""; 0]);
    }
}
