//! A running QEMU.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use tempfile::TempDir;

use super::argv::{Boot, Mode, Shared, arguments};
use super::control::GuestControl;
use crate::Frame;
use crate::memory::Ram;
use crate::process::{ProcessGroup, Streams, interrupt, shell_line};
use crate::{Splat, SplatScanner};

/// What happens to a machine.
#[derive(Debug)]
pub enum MachineEvent {
    /// The agent sent a frame.
    Frame(Frame),
    /// QEMU's monitor sent its first byte ([`Mode::Stopped`] only).
    MonitorGreeted,
    /// The agent's port ended; with the reason when it was not an ordinary end.
    PortClosed(Option<String>),
    /// The kernel printed a splat.
    Splat(Splat),
    /// The console ended.
    ConsoleClosed,
    /// QEMU ended.
    Exited(ExitStatus),
}

/// Why a machine can no longer be talked to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// The kernel panicked: the first line that says so.
    Panicked(String),
    /// QEMU ended by itself.
    Exited(ExitStatus),
    /// Something did not happen in time.
    TimedOut {
        /// What was waited for.
        what: String,
        /// For how long.
        limit: Duration,
    },
    /// The agent's port is broken.
    Port(String),
    /// The user has interrupted.
    Interrupted,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StopReason::Panicked(line) => write!(f, "the kernel panicked: {line}"),
            StopReason::Exited(status) if status.success() => {
                write!(
                    f,
                    "the guest ended in the middle (QEMU ended with status 0, and the kernel reported no panic)"
                )
            }
            StopReason::Exited(status) => write!(f, "QEMU ended with {status}"),
            StopReason::TimedOut { what, limit } => {
                write!(f, "waited {:.1} s for {what}", limit.as_secs_f64())
            }
            StopReason::Port(why) => write!(f, "{why}"),
            StopReason::Interrupted => write!(f, "interrupted"),
        }
    }
}

/// QEMU could not be started.
#[derive(Debug, thiserror::Error)]
#[error("failed to start QEMU: {error}\nthe command was: {command}")]
pub struct StartError {
    /// What happened.
    pub error: io::Error,
    /// The full command line.
    pub command: String,
}

/// How the machine's console is connected.
#[derive(Debug)]
pub enum Console {
    /// Streams is kept and watched; there is no input.
    Watched,
    /// Streams goes to one file and input comes from another, for a person.
    Piped {
        /// Where the guest's input comes from.
        input: File,
        /// Where the guest's output goes.
        output: File,
    },
}

/// How long what QEMU left in its pipes may take to arrive after its end.
const DRAIN: Duration = Duration::from_secs(2);
/// How many bytes of a console are looked at.
const CONSOLE_MAX: usize = 1 << 20;
/// How long a request may wait until the guest takes it.
const WRITE_LIMIT: Duration = Duration::from_secs(20);

#[derive(Debug, Default)]
struct Seen {
    splats: Vec<Splat>,
    exited: Option<ExitStatus>,
    port_closed: Option<Option<String>>,
    console_closed: bool,
}

/// A running QEMU. Dropping it kills it.
pub struct Machine {
    group: Arc<ProcessGroup>,
    events: Receiver<MachineEvent>,
    seen: Seen,
    port: Arc<Mutex<Option<UnixStream>>>,
    closing: Arc<AtomicBool>,
    socket: Utf8PathBuf,
    threads: Vec<JoinHandle<()>>,
    started: Instant,
    command: String,
    console_log: Utf8PathBuf,
    stderr_log: Utf8PathBuf,
    control: Option<GuestControl>,
    /// Removed, with the socket in it, when the machine is dropped.
    _private: TempDir,
}

impl Machine {
    /// Start the guest that `boot` describes; `boot.socket` is replaced by one in a new private
    /// folder. `console.log` and `qemu-stderr.log` are written to `logs`.
    ///
    /// With `shares_memory`, the guest's memory is reached through [`Machine::take_control`];
    /// `boot.shared` is replaced too. The calling thread must live as long as the machine (see [`ProcessGroup`]).
    ///
    /// # Errors
    /// When a file or socket cannot be made, or QEMU's guard cannot be started. A QEMU that is
    /// missing, or refuses its arguments, is seen as [`StopReason::Exited`].
    pub fn start(
        boot: &Boot<'_>,
        shares_memory: bool,
        logs: &Utf8Path,
        console: Console,
    ) -> Result<Machine, StartError> {
        let early = |error| StartError { error, command: boot.guest.qemu.binary.clone() };
        let private = private_dir().map_err(early)?;
        let dir = Utf8Path::from_path(private.path()).expect("checked when it was made");
        let (socket, monitor) = (dir.join("agent"), dir.join("monitor"));
        let ram =
            if shares_memory { Some(Ram::new(boot.guest.memory_mib << 20).map_err(early)?) } else { None };
        let ram_path = ram.as_ref().map(Ram::path);
        let shared = ram_path.as_ref().map(|ram| Shared { ram, monitor: &monitor });
        let words = arguments(&Boot { socket: &socket, shared, ..*boot });
        let binary = &boot.guest.qemu.binary;
        let command = shell_line(std::iter::once(binary).chain(&words));
        let fail = |error| StartError { error, command: command.clone() };

        which::which(binary).map_err(|_| {
            fail(io::Error::new(
                io::ErrorKind::NotFound,
                format!(
                    "there is no program {binary}: install the package {} (`ci/bootstrap` does)",
                    boot.guest.qemu.package
                ),
            ))
        })?;
        let console_log = logs.join("console.log");
        let stderr_log = logs.join("qemu-stderr.log");
        let stderr = File::create(stderr_log.as_std_path()).map_err(fail)?;
        let log = File::create(console_log.as_std_path()).map_err(fail)?;
        let listener = UnixListener::bind(&socket).map_err(fail)?;
        let control = match ram {
            Some(ram) => Some(GuestControl::new(ram, UnixListener::bind(&monitor).map_err(fail)?)),
            None => None,
        };
        let (sender, events) = channel();
        let mut threads = Vec::new();

        let mut process = Command::new(binary);
        process.args(&words);
        let (output, watched) = match console {
            Console::Watched => {
                let (read, write) =
                    rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(|e| fail(e.into()))?;
                let output = Streams { stdin: None, stdout: Some(write.into()), stderr: Some(stderr) };
                (output, Some(File::from(read)))
            }
            Console::Piped { input, output } => {
                (Streams { stdin: Some(input), stdout: Some(output), stderr: Some(stderr) }, None)
            }
        };
        let started = Instant::now();
        let group = Arc::new(ProcessGroup::start(&process, output).map_err(fail)?);
        if let Some(read) = watched {
            let sender = sender.clone();
            threads.push(std::thread::spawn(move || watch_console(read, log, &sender)));
        }
        let port = Arc::new(Mutex::new(None));
        let closing = Arc::new(AtomicBool::new(false));
        threads.push({
            let (port, closing, sender, mode) = (port.clone(), closing.clone(), sender.clone(), boot.mode);
            std::thread::spawn(move || watch_port(&listener, mode, &port, &closing, &sender))
        });
        threads.push({
            let group = group.clone();
            std::thread::spawn(move || {
                if let Ok(status) = group.wait() {
                    let _ = sender.send(MachineEvent::Exited(status));
                }
            })
        });
        Ok(Machine {
            group,
            events,
            seen: Seen::default(),
            port,
            closing,
            socket,
            threads,
            started,
            command,
            console_log,
            stderr_log,
            control,
            _private: private,
        })
    }

    /// When QEMU was started.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// The full command line, quoted for a shell.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// The guest from the control, when it shares its memory; once.
    pub fn take_control(&mut self) -> Option<GuestControl> {
        self.control.take()
    }

    /// The kernel's splats so far.
    pub fn splats(&self) -> &[Splat] {
        &self.seen.splats
    }

    /// The console so far, for people and for a look at what the kernel reported; at most its last
    /// MiB.
    pub fn console(&self) -> String {
        let bytes = fs::read(&self.console_log).unwrap_or_default();
        String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(CONSOLE_MAX)..]).into_owned()
    }

    /// What QEMU itself printed on its standard error.
    pub fn stderr(&self) -> String {
        let text = fs::read(&self.stderr_log).unwrap_or_default();
        String::from_utf8_lossy(&text).trim_end().to_owned()
    }

    /// Send a frame to the agent.
    ///
    /// # Errors
    /// When the port is closed: how the machine stopped.
    pub fn send(&mut self, frame: &Frame) -> Result<(), StopReason> {
        let sent = {
            let port = self.port.lock().expect("no panic while held");
            port.as_ref().map(|mut stream| stream.write_all(&frame.encode()))
        };
        match sent {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => {
                Err(self.stop(StopReason::Port(format!("the agent's port cannot be written: {error}"))))
            }
            None => Err(self.stop(StopReason::Port("the agent's port is not open".to_owned()))),
        }
    }

    /// Wait for the agent's next frame until `deadline`. Ends early when it can no longer come.
    ///
    /// # Errors
    /// Why no frame will come. `what` and `limit` are for the message.
    pub fn frame(&mut self, what: &str, deadline: Instant, limit: Duration) -> Result<Frame, StopReason> {
        loop {
            match self.event(deadline) {
                Some(MachineEvent::Frame(frame)) => return Ok(frame),
                Some(MachineEvent::Splat(splat)) if splat.fatal => {
                    return Err(self.stop(StopReason::Panicked(splat.line)));
                }
                Some(MachineEvent::Exited(status)) => return Err(self.stop(StopReason::Exited(status))),
                Some(MachineEvent::PortClosed(why)) => {
                    let why = why.unwrap_or_else(|| "the guest closed the agent's port".to_owned());
                    return Err(self.stop(StopReason::Port(why)));
                }
                Some(MachineEvent::Splat(_) | MachineEvent::ConsoleClosed | MachineEvent::MonitorGreeted) => {
                }
                None => {
                    interrupt::check().map_err(|_| StopReason::Interrupted)?;
                    return Err(StopReason::TimedOut { what: what.to_owned(), limit });
                }
            }
        }
    }

    /// The next event; `None` at the deadline.
    pub fn event(&mut self, deadline: Instant) -> Option<MachineEvent> {
        let event = self.events.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()?;
        match &event {
            MachineEvent::Splat(splat) => self.seen.splats.push(splat.clone()),
            MachineEvent::Exited(status) => self.seen.exited = Some(*status),
            MachineEvent::PortClosed(why) => self.seen.port_closed = Some(why.clone()),
            MachineEvent::ConsoleClosed => self.seen.console_closed = true,
            MachineEvent::Frame(_) | MachineEvent::MonitorGreeted => {}
        }
        Some(event)
    }

    /// Something has gone wrong: wait a moment for what is still on its way, and tell the cause. A
    /// panic comes before an end of QEMU, which comes before a closed port.
    fn stop(&mut self, first: StopReason) -> StopReason {
        let deadline = Instant::now() + DRAIN;
        while !(self.seen.exited.is_some() && self.seen.console_closed) && self.event(deadline).is_some() {}
        if interrupt::happened() {
            return StopReason::Interrupted;
        }
        if let Some(panic) = self.seen.splats.iter().find(|c| c.fatal) {
            return StopReason::Panicked(panic.line.clone());
        }
        match self.seen.exited {
            Some(status) => StopReason::Exited(status),
            None => first,
        }
    }

    /// Wait at most `limit` for QEMU's end; `None` when it still runs then.
    ///
    /// # Errors
    /// When the system cannot say how QEMU ended.
    pub fn wait_timeout(&self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        self.group.wait_timeout(limit)
    }

    /// The console is complete: QEMU has ended, or is ended now, and its last words have arrived.
    pub fn finish(&mut self) {
        if self.seen.exited.is_none() {
            self.group.kill();
        }
        let deadline = Instant::now() + DRAIN;
        while !(self.seen.exited.is_some() && self.seen.console_closed) && self.event(deadline).is_some() {}
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.group.kill();
        self.closing.store(true, Ordering::SeqCst);
        // The thread that waits for QEMU to connect may still wait: be that connection.
        let _ = UnixStream::connect(&self.socket);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// A folder that only we can enter, with a name that nobody can guess.
fn private_dir() -> io::Result<TempDir> {
    let dir = tempfile::Builder::new().prefix("goldtrace-").tempdir()?;
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700))?;
    match Utf8Path::from_path(dir.path()) {
        // A socket's path has 107 bytes on Linux (unix(7)).
        Some(path) if path.as_str().len() <= 90 => Ok(dir),
        Some(path) => {
            Err(io::Error::other(format!("`{path}` is too long for a socket: set TMPDIR to a shorter one")))
        }
        None => Err(io::Error::other("the temporary folder's name is not UTF-8: set TMPDIR to another")),
    }
}

fn watch_console(mut from: File, mut log: File, sender: &Sender<MachineEvent>) {
    let mut scanner = SplatScanner::default();
    let mut buffer = [0; 4096];
    let report = |splat| drop(sender.send(MachineEvent::Splat(splat)));
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        // The log is for people; a full disk must not keep the kernel's words from the scanner.
        let _ = log.write_all(&buffer[..n]);
        scanner.feed(&buffer[..n], report);
    }
    scanner.finish(report);
    let _ = sender.send(MachineEvent::ConsoleClosed);
}

fn watch_port(
    listener: &UnixListener,
    mode: Mode,
    port: &Mutex<Option<UnixStream>>,
    closing: &AtomicBool,
    sender: &Sender<MachineEvent>,
) {
    let close = |why: Option<String>| drop(sender.send(MachineEvent::PortClosed(why)));
    let mut stream = match listener.accept() {
        Ok((stream, _)) if !closing.load(Ordering::SeqCst) => stream,
        Ok(_) => return,
        Err(error) => return close(Some(format!("QEMU could not connect to the agent's socket: {error}"))),
    };
    // A guest that hangs reads nothing: a write to it must end all the same.
    let _ = stream.set_write_timeout(Some(WRITE_LIMIT));
    match stream.try_clone() {
        Ok(writer) => *port.lock().expect("no panic while held") = Some(writer),
        Err(error) => return close(Some(format!("the agent's socket cannot be used: {error}"))),
    }
    if mode == Mode::Stopped {
        if let Ok(1..) = stream.read(&mut [0]) {
            let _ = sender.send(MachineEvent::MonitorGreeted);
        }
        return;
    }
    loop {
        match Frame::read(&mut stream) {
            Ok(Some(frame)) => drop(sender.send(MachineEvent::Frame(frame))),
            Ok(None) => return close(None),
            Err(error) => return close(Some(error.to_string())),
        }
    }
}
