//! Starting QEMU: its files, its sockets, its process and the threads that watch it.

use std::fs::File;
use std::io;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;

use camino::Utf8Path;
use guest::Guest;

use super::argv::{Boot, Mode, Shared, arguments};
use super::console::{Console, ConsoleLog};
use super::control::GuestControl;
use super::event::MachineEvent;
use super::machine::{EVENTS_MAX, ExitState, Machine};
use super::port::{AgentPort, private_dir};
use crate::memory::Ram;
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
    /// Start the guest that `boot` describes; `boot.socket` is replaced by one in a new private directory.
    /// `console.log` and `qemu-stderr.log` are written to `logs`.
    ///
    /// With `shares_memory`, the guest's memory is reached through [`Machine::take_control`], and `boot.shared` is
    /// replaced too.
    ///
    /// # Errors
    /// When a file or socket cannot be made, QEMU is missing, or its guard cannot be started. A QEMU that refuses its
    /// arguments is seen as [`StopReason::Exited`](super::StopReason::Exited).
    pub fn start(
        boot: &Boot<'_>,
        shares_memory: bool,
        logs: &Utf8Path,
        console: Console,
    ) -> Result<Machine, StartError> {
        let early = |error| StartError { error, command: boot.guest.qemu.binary.clone() };
        let (private, dir) = private_dir().map_err(early)?;
        let (socket, monitor) = (dir.join("agent"), dir.join("monitor"));
        let ram = shares_memory.then(|| Ram::new(boot.guest.memory_mib << 20)).transpose().map_err(early)?;
        let ram_path = ram.as_ref().map(Ram::path);
        let shared = ram_path.as_ref().map(|ram| Shared { ram, monitor: &monitor });
        let words = arguments(&Boot { socket: &socket, shared, ..*boot });
        let command = shell_line(std::iter::once(&boot.guest.qemu.binary).chain(&words));
        let fail = |error| StartError { error, command: command.clone() };

        find_program(boot.guest).map_err(fail)?;
        let listener = UnixListener::bind(&socket).map_err(fail)?;
        let control = ram.map(|ram| Ok(GuestControl::new(ram, UnixListener::bind(&monitor)?)));
        let control = control.transpose().map_err(fail)?;
        let stderr_log = logs.join("qemu-stderr.log");
        let (streams, to_watch) = Streams::of_qemu(console, logs, &stderr_log).map_err(fail)?;
        let mut process = Command::new(&boot.guest.qemu.binary);
        process.args(&words);
        let started = Instant::now();
        let group = Arc::new(ProcessGroup::start(&process, streams).map_err(fail)?);

        let (sender, events) = sync_channel(EVENTS_MAX);
        let console = ConsoleLog::new(logs.join("console.log"));
        let port = AgentPort::new(socket);
        let mut threads = vec![watch_exit(&group, &sender), watch_port(&port, listener, boot.mode, &sender)];
        threads.extend(to_watch.map(|pipe| watch_console(&console, pipe, &sender)));
        Ok(Machine {
            group,
            events: Some(events),
            seen: ExitState::default(),
            port,
            console,
            threads,
            started,
            command,
            stderr_log,
            control,
            _private: private,
        })
    }
}

/// The console on its way from QEMU to its file.
struct ConsolePipe {
    from: File,
    log: File,
}

impl Streams {
    fn of_qemu(
        console: Console,
        logs: &Utf8Path,
        stderr: &Utf8Path,
    ) -> io::Result<(Streams, Option<ConsolePipe>)> {
        let stderr = Some(File::create(stderr)?);
        let log = File::create(logs.join("console.log"))?;
        Ok(match console {
            Console::Watched => {
                let (from, to) = pipe()?;
                (Streams { stdin: None, stdout: Some(to), stderr }, Some(ConsolePipe { from, log }))
            }
            Console::Piped { input, output } => {
                (Streams { stdin: Some(input), stdout: Some(output), stderr }, None)
            }
        })
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

fn watch_port(
    port: &AgentPort,
    listener: UnixListener,
    mode: Mode,
    events: &SyncSender<MachineEvent>,
) -> JoinHandle<()> {
    let (port, events) = (port.clone(), events.clone());
    std::thread::spawn(move || port.watch(&listener, mode, &events))
}

fn watch_console(
    console: &ConsoleLog,
    ConsolePipe { from, log }: ConsolePipe,
    events: &SyncSender<MachineEvent>,
) -> JoinHandle<()> {
    let (console, events) = (console.clone(), events.clone());
    std::thread::spawn(move || console.watch(from, log, &events))
}
