//! `goldtrace shell`.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};

use clap::Args;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use super::error::CommandError;
use super::options::{CaseModules, Guests, Images, ProjectOption};
use super::status::Status;
use crate::report::PrintError;
use image::{Refresh, RootfsSpec};
use trial::Isolation;
use vm::qemu::{Console, Machine, MachineLogs, Mode};

/// The key that ends the guest at once: Ctrl-].
const ESCAPE: u8 = 0x1d;
/// What the guest prints when it reads its console (guests/agent/init.c).
const READY: &[u8] = b"goldtrace shell: ";

/// Open a shell in a guest, with the image that trials boot, and perf
///
/// `exit` or Ctrl-] ends it. Standard input need not be a terminal: commands can be piped in.
#[derive(Debug, Args)]
pub(super) struct Shell {
    #[command(flatten)]
    guests: Guests,
    #[command(flatten)]
    images: Images,
    #[command(flatten)]
    modules: CaseModules,
}

impl Shell {
    pub(super) fn run(&self, option: &ProjectOption) -> Result<Status, CommandError> {
        let project = option.project()?;
        let inputs = self.modules.inputs(&project)?;
        let spec = RootfsSpec { perf: true, modules: self.modules.choose(&inputs.cases)? };
        let guest = self.guests.choose_one(&inputs.guests)?;
        let guests = self.images.guests(&project, &inputs, Refresh::WhenOld, Isolation::Boot)?;
        let prepared = guests.guest(guest, &spec)?;
        guests.check_patches()?;
        let logs = MachineLogs::unnamed()?;
        let (input, to_guest) = pipe()?;
        let (from_guest, output) = pipe()?;
        let console = Console::Piped { input, output };
        let mut machine =
            prepared.start(Mode::Shell, logs, console).map_err(|e| CommandError::Guest(e.to_string()))?;
        let terminal = io::stdin().is_terminal();
        if terminal {
            note_line!("guest {}: `exit` or Ctrl-] ends it", guest.name);
        }
        let _raw = terminal.then(RawTerminal::enter).transpose()?;
        // The reader of our standard input cannot be ended while it waits; it ends with the process.
        let (escape, escaped) = std::sync::mpsc::channel();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let is_shown = escape.clone();
        std::thread::spawn(move || {
            // A serial port forgets what comes before the guest opens it. A person sees the prompt.
            if !terminal {
                let _ = is_ready.recv();
            }
            pass_input(to_guest, terminal, &escape);
        });
        let shown = std::thread::spawn(move || {
            let passed = pass_output(from_guest, &ready).map_err(PrintError::from);
            if passed.is_err() {
                // Nobody sees what the guest does: it ends as with the key.
                let _ = is_shown.send(());
            }
            passed
        });
        let status = wait(&machine, &escaped)?;
        let logs = machine.finish();
        let error = machine.stderr().unwrap_or_default();
        drop(machine);
        let printed = shown.join().expect("printing does not panic");
        logs.map_err(|error| CommandError::Guest(error.to_string()))?;
        match status {
            Some(status) if !status.success() => {
                Err(CommandError::Guest(format!("QEMU failed: {status}\n{error}")))
            }
            _ => Ok(printed.map(|()| Status::Success)?),
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
            vm::process::interrupt::check()?;
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
    // The guest's terminal has no end of file to receive: its shell needs a command.
    let _ = to_guest.write_all(b"\nexit\n");
    loop {
        std::thread::park();
    }
}

fn pass_output(mut from_guest: File, ready: &std::sync::mpsc::Sender<()>) -> io::Result<()> {
    let mut buffer = [0; 4096];
    let mut out = io::stdout();
    // The last bytes: the words may come in parts.
    let mut tail: Vec<u8> = Vec::new();
    while let Ok(n @ 1..) = from_guest.read(&mut buffer) {
        tail.extend(&buffer[..n]);
        if memchr::memmem::find(&tail, READY).is_some() {
            let _ = ready.send(());
        }
        tail.drain(..tail.len().saturating_sub(READY.len()));
        out.write_all(&buffer[..n]).and_then(|()| out.flush())?;
    }
    Ok(())
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
