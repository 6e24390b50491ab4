//! `goldtrace shell`.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};

use anyhow::Context;
use clap::Args;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use super::options::{Guests, Images, Inputs, Place};
use super::status::{ExitStatus, Stop};
use crate::image::{Refresh, Userland};
use crate::qemu::{Console, Machine, Mode};
use crate::run::Needs;

/// The key that ends the guest at once: Ctrl-].
const ESCAPE: u8 = 0x1d;

/// A shell in a guest, with the same image that trials boot; perf is in it.
///
/// `exit` or Ctrl-] ends it. Standard input need not be a terminal: commands can be piped in.
#[derive(Debug, Args)]
pub(super) struct Shell {
    #[command(flatten)]
    guests: Guests,
    #[command(flatten)]
    images: Images,
}

impl Shell {
    pub(super) fn run(&self, place: &Place) -> Result<ExitStatus, Stop> {
        let project = place.project()?;
        let inputs = Inputs::without_cases(&project)?;
        let guests = self.guests.choose(&inputs.guests)?;
        let [guest] = guests.as_slice() else {
            let names: Vec<&str> = guests.iter().map(|guest| guest.name.as_str()).collect();
            return Err(Stop::Usage(format!("which guest? give one with --guest: {}", names.join(", "))));
        };
        let lab = self.images.lab(&project, &inputs, &guests, Refresh::WhenOld, Needs::perf())?;
        let logs = tempfile::tempdir()?;
        let path =
            camino::Utf8Path::from_path(logs.path()).context("the temporary folder's name is not UTF-8");
        let path = path.map_err(Stop::Infrastructure)?;

        let (input, to_guest) = pipe()?;
        let (from_guest, output) = pipe()?;
        let console = Console::Passed { input, output };
        let machine = lab
            .bench(&guest.name)
            .start(&Userland { perf: true, modules: Vec::new() }, Mode::Shell, path, console)
            .map_err(|e| Stop::Infrastructure(e.into()))?;
        let terminal = io::stdin().is_terminal();
        if terminal {
            anstream::eprintln!("guest {}: `exit` or Ctrl-] ends it", guest.name);
        }
        let _raw = terminal.then(RawTerminal::enter).transpose()?;
        // The reader of our standard input cannot be ended while it waits; it ends with the process.
        let (escape, escaped) = std::sync::mpsc::channel();
        std::thread::spawn(move || pass_input(to_guest, terminal, &escape));
        let shown = std::thread::spawn(move || pass_output(from_guest));
        let status = wait(&machine, &escaped)?;
        drop(machine);
        let _ = shown.join();
        match status {
            Some(status) if !status.success() => {
                let error = std::fs::read_to_string(path.join("qemu-stderr.log")).unwrap_or_default();
                Err(Stop::Infrastructure(anyhow::anyhow!("QEMU ended with {status}\n{error}")))
            }
            _ => Ok(ExitStatus::Success),
        }
    }
}

/// Wait for QEMU's end, or for the key that ends it; `None` for the key.
fn wait(
    machine: &Machine,
    escaped: &std::sync::mpsc::Receiver<()>,
) -> io::Result<Option<std::process::ExitStatus>> {
    loop {
        if let Some(status) = machine.wait_timeout(std::time::Duration::from_millis(50))? {
            crate::process::interrupt::check()?;
            return Ok(Some(status));
        }
        if escaped.try_recv().is_ok() {
            return Ok(None);
        }
    }
}

fn pipe() -> io::Result<(File, File)> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    Ok((read.into(), write.into()))
}

fn pass_input(mut to_guest: File, terminal: bool, escape: &std::sync::mpsc::Sender<()>) {
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = io::stdin().read(&mut buffer) {
        if terminal && buffer[..n].contains(&ESCAPE) {
            let _ = escape.send(());
            return;
        }
        if to_guest.write_all(&buffer[..n]).is_err() {
            return;
        }
    }
    // The guest's terminal has no end of file to receive: its shell must be told.
    let _ = to_guest.write_all(b"\nexit\n");
    loop {
        std::thread::park();
    }
}

fn pass_output(mut from_guest: File) {
    let mut buffer = [0; 4096];
    let mut out = io::stdout();
    while let Ok(n @ 1..) = from_guest.read(&mut buffer) {
        if out.write_all(&buffer[..n]).and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

/// The terminal passes every key on, until this is dropped.
struct RawTerminal {
    before: Termios,
}

impl RawTerminal {
    fn enter() -> io::Result<RawTerminal> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        Ok(RawTerminal { before })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}
