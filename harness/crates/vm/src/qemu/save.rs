//! Saving a guest as a [`Snapshot`](super::Snapshot).

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::time::Duration;

use camino::Utf8Path;

use super::control::GuestControl;
use super::log::MachineLogError;
use super::machine::Machine;
use super::snapshot::{CONSOLE, DESCRIPTION, Description, MEMORY, STATE};
use crate::END_OF_REQUEST;
use crate::process::pipe;

/// The most bytes that the state of a machine without its memory may have; there are 3 MiB at most.
const STATE_MAX: u64 = 64 << 20;
/// How long the console may take to show a line of the kernel's log.
const MARK_TIMEOUT: Duration = Duration::from_secs(30);

/// The agent's mark in the kernel's log before the first request.
const GREETING_MARK: &str = "goldtrace: end of request 0000000000000000";

/// Why a guest was not saved.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// Its kernel has printed a splat, which belongs to one boot and not to others.
    #[error("its kernel printed a splat: {0}")]
    Splat(String),
    /// What it printed was not kept.
    #[error(transparent)]
    Log(MachineLogError),
    /// Its console is not known.
    #[error("its console did not show the end of the last request within {} s", MARK_TIMEOUT.as_secs())]
    Console,
    /// QEMU did not save it, or a file cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Machine {
    /// Keep the guest as it is now in `directory`, which is empty, and end it. Its agent waits for a request, the last
    /// having been `last`; `shares_memory` was asked for when it was started.
    ///
    /// # Errors
    /// See [`SaveError`].
    pub fn save(mut self, last: u64, directory: &Utf8Path) -> Result<(), SaveError> {
        if !self.console.wait_for(last, MARK_TIMEOUT) {
            return Err(SaveError::Console);
        }
        if let Some(splat) = self.splats().first() {
            return Err(SaveError::Splat(splat.line.clone()));
        }
        // What is kept of the console becomes that of every trial.
        if let Some(error) = self.log_error() {
            return Err(SaveError::Log(error));
        }
        let control = self.take_control();
        let mut control = control.ok_or_else(|| io::Error::other("its memory is not shared"))?;
        let (qemu, state) = save_state(&mut control, || self.kill())?;
        let mut memory = BufWriter::new(create(directory, MEMORY)?);
        control.ram().pack(&mut memory)?;
        memory.flush()?;
        create(directory, STATE)?.write_all(&state)?;
        create(directory, CONSOLE)?.write_all(without_requests(&self.console()?).as_bytes())?;
        let description = Description { qemu, memory: control.ram().size(), tsc_khz: self.tsc_khz };
        let text = serde_json::to_string_pretty(&description).map_err(io::Error::from)?;
        Ok(fs::write(directory.join(DESCRIPTION), text + "\n")?)
    }
}

/// QEMU's version and the state of its machine, whose processors stand still from then on. A QEMU that does not save it
/// is killed by `kill`.
fn save_state(control: &mut GuestControl, kill: impl FnOnce()) -> io::Result<(String, Vec<u8>)> {
    let (from, to) = pipe()?;
    // QEMU waits while nobody reads.
    let reader = std::thread::spawn(move || {
        let mut state = Vec::new();
        from.take(STATE_MAX + 1).read_to_end(&mut state).map(|_| state)
    });
    let saved = control.with_monitor(|monitor| {
        let version = monitor.greet()?;
        monitor.save_state(to.into()).map(|()| version)
    });
    // It has closed its end when it has saved; otherwise it may never do so.
    if saved.is_err() {
        kill();
    }
    let state = reader.join().expect("no panic")?;
    if state.len() as u64 > STATE_MAX {
        return Err(io::Error::other(format!("the machine's state has more than {STATE_MAX} bytes")));
    }
    Ok((saved?, state))
}

/// The console without the marks of the requests that came before the guest was saved: they are those of no trial.
fn without_requests(console: &str) -> String {
    let is_of_request = |line: &&str| line.contains(END_OF_REQUEST) && !line.contains(GREETING_MARK);
    console.split_inclusive('\n').filter(|line| !is_of_request(line)).collect()
}

fn create(directory: &Utf8Path, name: &str) -> io::Result<File> {
    let path = directory.join(name);
    File::create_new(&path)
        .map_err(|error| io::Error::new(error.kind(), format!("failed to create `{path}`: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_requests_are_left_out() {
        let request = "<12>[    1.2] goldtrace: end of request 00000000000000ab\n";
        let rest = format!("<4>[    1.0] x\r\n<12>[    1.1] {GREETING_MARK}\n<4>[    1.3] y\n");
        assert_eq!(
            without_requests(&rest.replacen("<4>[    1.3]", &format!("{request}<4>[    1.3]"), 1)),
            rest
        );
    }
}
