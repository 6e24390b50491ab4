//! Starting QEMU: its descriptors, its process and the threads that watch it.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::process::Command;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use super::argv::arguments;
use super::boot::{Boot, Mode, Origin};
use super::confine::{Host, confinement};
use super::console::ConsoleLog;
use super::control::GuestControl;
use super::descriptors::{Descriptors, INITRAMFS, KERNEL};
use super::event::MachineEvent;
use super::host_tsc;
use super::log::{LogFile, MachineLogs};
use super::machine::{EVENTS_MAX, ExitState, Machine};
use super::monitor::Monitor;
use super::port::AgentPort;
use super::program;
use super::restore::Restore;
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
    pub fn start(boot: &Boot<'_>, logs: MachineLogs) -> Result<Machine, StartError> {
        let host = Host::look();
        let mut tsc_khz = None;
        let words = command_words(boot, host, || {
            tsc_khz = host_tsc::khz();
            tsc_khz
        });
        let command = shown(&words, boot);
        let fail = |error| StartError { error, command: command.clone() };

        let known = KnownMessages::new(&boot.guest.known_messages);
        let known =
            known.map_err(|error| fail(io::Error::new(io::ErrorKind::InvalidInput, error.to_string())))?;
        program::find(boot.guest).map_err(fail)?;
        let descriptors = Descriptors::open(boot, host).map_err(fail)?;
        let port = AgentPort::new(descriptors.agent).map_err(fail)?;
        let monitor = descriptors.monitor.map(Monitor::new).transpose().map_err(fail)?;
        let monitor = monitor.map(|monitor| Arc::new(Mutex::new(monitor)));
        let control =
            descriptors.ram.zip(monitor.clone()).map(|(ram, monitor)| GuestControl::new(ram, monitor));
        let (console_pipe, stdout) = pipe().map_err(fail)?;
        let (stderr_pipe, stderr) = pipe().map_err(fail)?;
        let mut process = Command::new(&words[0]);
        process.args(&words[1..]);
        let started = Instant::now();
        let streams = Streams {
            stdout: Some(stdout),
            stderr: Some(stderr),
            inherited: descriptors.inherited,
            ..Streams::default()
        };
        let group = Arc::new(ProcessGroup::start(&process, streams).map_err(fail)?);

        let (sender, events) = sync_channel(EVENTS_MAX);
        let MachineLogs { console, stderr } = logs;
        let console = ConsoleLog::new(console, known);
        let mut threads = vec![
            watch_exit(&group, &sender),
            watch_stderr(&stderr, stderr_pipe, &group, &sender),
            watch_port(&port, boot.mode, &sender),
        ];
        let mut earlier = Vec::new();
        if let (Origin::Snapshot(snapshot), Some(monitor), Some(state)) =
            (&boot.origin, monitor, descriptors.state)
        {
            let (snapshot, port) = (snapshot.clone(), port.clone());
            earlier.clone_from(&snapshot.console);
            threads.push(Restore { snapshot, monitor, port, state }.spawn(&sender));
        }
        let earlier_console = earlier.len() as u64;
        threads.push(watch_console(&console, earlier, console_pipe, &group, &sender));
        Ok(Machine {
            group,
            events: Some(events),
            seen: ExitState::default(),
            port,
            console,
            earlier_console,
            threads,
            started,
            command,
            stderr,
            control,
            is_restored: matches!(boot.origin, Origin::Snapshot(_)),
            tsc_khz,
        })
    }
}

impl Boot<'_> {
    /// The full command line by which this starts the guest, quoted for a shell.
    pub fn command(&self) -> String {
        shown(&command_words(self, Host::look(), host_tsc::khz), self)
    }
}

fn command_words(boot: &Boot<'_>, host: Host, tsc_khz: impl FnOnce() -> Option<u64>) -> Vec<String> {
    let mut words = confinement(host, boot.accel);
    words.push(boot.guest.qemu.binary.clone());
    words.extend(arguments(boot, tsc_khz));
    words
}

/// The command line for a shell, which opens the kernel and the initramfs as we have. The sockets, and what a snapshot
/// holds, are ours.
fn shown(words: &[String], boot: &Boot<'_>) -> String {
    let Origin::Kernel { kernel, initramfs } = &boot.origin else { return shell_line(words) };
    let files = [(KERNEL, kernel), (INITRAMFS, initramfs)];
    let files = files.map(|(number, path)| format!(" {number}<{}", shell_line([path])));
    shell_line(words) + &files.concat()
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

/// What a guest that is restored printed before it was saved comes first.
fn watch_console(
    console: &ConsoleLog,
    earlier: Vec<u8>,
    pipe: File,
    group: &Arc<ProcessGroup>,
    events: &SyncSender<MachineEvent>,
) -> JoinHandle<()> {
    let (console, group, events) = (console.clone(), group.clone(), events.clone());
    std::thread::spawn(move || console.watch(Cursor::new(earlier).chain(pipe), || group.kill(), &events))
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
