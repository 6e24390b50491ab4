//! Starting QEMU: its descriptors, its process and the threads that watch it.

use std::fs::File;
use std::io;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;

use guest::Guest;

use super::argv::arguments;
use super::boot::{Boot, Mode};
use super::confine::{Host, confinement};
use super::console::{Console, ConsoleLog};
use super::control::GuestControl;
use super::descriptors::{Descriptors, INITRAMFS, KERNEL};
use super::event::MachineEvent;
use super::host_tsc;
use super::log::{LogFile, MachineLogs};
use super::machine::{EVENTS_MAX, ExitState, Machine};
use super::port::AgentPort;
use crate::KnownMessages;
use crate::process::{ProcessGroup, Streams, pipe, shell_line};

/// QEMU could not be started.
#[derive(Debug, thiserror::Error)]
#[error("failed to start QEMU: {error}\nthe command was: {command}")]
pub struct StartError {
    /// What happened.
    #[source]
    pub error: io::Error,
    /// The full command line.
    pub command: String,
}

impl Machine {
    /// Start the guest that `boot` describes. What it and QEMU print is kept in `logs`.
    ///
    /// # Errors
    /// When a file or socket cannot be made, QEMU is missing, or its guard cannot be started. A QEMU that refuses its
    /// arguments is seen as [`StopReason::Exited`](super::StopReason::Exited).
    pub fn start(boot: &Boot<'_>, logs: MachineLogs, console: Console) -> Result<Machine, StartError> {
        let host = Host::look();
        let mut words = confinement(host, boot.accel);
        words.push(boot.guest.qemu.binary.clone());
        words.extend(arguments(boot, host_tsc::khz));
        let command = shown(&words, boot);
        let fail = |error| StartError { error, command: command.clone() };

        let known = KnownMessages::new(&boot.guest.known_messages);
        let known =
            known.map_err(|error| fail(io::Error::new(io::ErrorKind::InvalidInput, error.to_string())))?;
        find_program(boot.guest).map_err(fail)?;
        let descriptors = Descriptors::open(boot, host).map_err(fail)?;
        let port = AgentPort::new(descriptors.agent).map_err(fail)?;
        let control = descriptors.shared.map(|(ram, monitor)| GuestControl::new(ram, monitor));
        let control = control.transpose().map_err(fail)?;
        let pipes = Pipes::new(console).map_err(fail)?;
        let mut process = Command::new(&words[0]);
        process.args(&words[1..]);
        let started = Instant::now();
        let streams = Streams { inherited: descriptors.inherited, ..pipes.streams };
        let group = Arc::new(ProcessGroup::start(&process, streams).map_err(fail)?);

        let (sender, events) = sync_channel(EVENTS_MAX);
        let MachineLogs { console, stderr } = logs;
        let console = ConsoleLog::new(console, known);
        let seen = ExitState { console_closed: pipes.console.is_none(), ..ExitState::default() };
        let mut threads =
            vec![watch_exit(&group, &sender), watch_stderr(&stderr, pipes.stderr, &group, &sender)];
        if boot.mode != Mode::Shell {
            threads.push(watch_port(&port, boot.mode, &sender));
        }
        threads.extend(pipes.console.map(|pipe| watch_console(&console, pipe, &group, &sender)));
        Ok(Machine {
            group,
            events: Some(events),
            seen,
            port,
            console,
            threads,
            started,
            command,
            stderr,
            control,
        })
    }
}

/// The command line for a shell, which opens the kernel and the initramfs as we have. The sockets are ours.
fn shown(words: &[String], boot: &Boot<'_>) -> String {
    let files = [(KERNEL, boot.kernel), (INITRAMFS, boot.initramfs)];
    let files = files.map(|(number, path)| format!(" {number}<{}", shell_line([path])));
    shell_line(words) + &files.concat()
}

/// QEMU's standard streams, and our ends of them.
struct Pipes {
    streams: Streams,
    /// `None` for a console that somebody else reads.
    console: Option<File>,
    stderr: File,
}

impl Pipes {
    fn new(console: Console) -> io::Result<Pipes> {
        let (stderr, to_stderr) = pipe()?;
        let (console, stdin, stdout) = match console {
            Console::Watched => {
                let (console, to_console) = pipe()?;
                (Some(console), None, to_console)
            }
            Console::Piped { input, output } => (None, Some(input), output),
        };
        let streams = Streams { stdin, stdout: Some(stdout), stderr: Some(to_stderr), ..Streams::default() };
        Ok(Pipes { streams, console, stderr })
    }
}

fn find_program(guest: &Guest) -> io::Result<()> {
    let (binary, package) = (&guest.qemu.binary, &guest.qemu.package);
    match which::which(binary) {
        Ok(_) => Ok(()),
        Err(_) => Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("program {binary} not found: install the package {package} (`ci/bootstrap` does)"),
        )),
    }
}

fn watch_exit(group: &Arc<ProcessGroup>, events: &SyncSender<MachineEvent>) -> JoinHandle<()> {
    let (group, events) = (group.clone(), events.clone());
    std::thread::spawn(move || {
        if let Ok(status) = group.wait() {
            let _ = events.send(MachineEvent::Exited(status));
        }
    })
}

fn watch_port(port: &AgentPort, mode: Mode, events: &SyncSender<MachineEvent>) -> JoinHandle<()> {
    let (port, events) = (port.clone(), events.clone());
    std::thread::spawn(move || port.watch(mode, &events))
}

fn watch_console(
    console: &ConsoleLog,
    pipe: File,
    group: &Arc<ProcessGroup>,
    events: &SyncSender<MachineEvent>,
) -> JoinHandle<()> {
    let (console, group, events) = (console.clone(), group.clone(), events.clone());
    std::thread::spawn(move || console.watch(pipe, || group.kill(), &events))
}

fn watch_stderr(
    stderr: &LogFile,
    pipe: File,
    group: &Arc<ProcessGroup>,
    events: &SyncSender<MachineEvent>,
) -> JoinHandle<()> {
    let (stderr, group, events) = (stderr.clone(), group.clone(), events.clone());
    std::thread::spawn(move || {
        stderr.keep(pipe, |_| (), || group.kill());
        let _ = events.send(MachineEvent::StderrClosed);
    })
}
