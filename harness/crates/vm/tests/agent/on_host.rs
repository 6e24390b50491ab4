//! The agent as a process of the host, and requests to it.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use vm::qemu::StopReason;
use vm::{Answer, Frame, FrameKind, Port, Request, Session, Work};

/// How long the agent may take for anything on a busy host.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The agent's sources, without those of PID 1.
const SOURCES: [&str; 8] =
    ["agent.c", "child.c", "file.c", "frame.c", "input.c", "pump.c", "request.c", "terminal.c"];

/// The agent's program, compiled once. Without a C compiler the tests fail: nothing else tests the agent.
pub fn program() -> &'static Utf8Path {
    static PROGRAM: OnceLock<Utf8PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let here = Utf8Path::new(env!("CARGO_MANIFEST_DIR"));
        let agent = here.join("../../../guests/agent");
        let program = Utf8Path::new(env!("CARGO_TARGET_TMPDIR")).join("agent-on-host");
        // Another process of these tests may be running the program.
        let made = program.with_extension(std::process::id().to_string());
        let done = Command::new("cc")
            .args([
                "-std=c17",
                "-D_GNU_SOURCE",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-Wno-unused-result",
                "-g",
                "-O1",
            ])
            .args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-I"])
            .arg(&agent)
            .args(SOURCES.map(|name| agent.join(name)))
            .arg(here.join("tests/agent/agent_on_host.c"))
            .args([Utf8Path::new("-o"), &made])
            .output()
            .expect("cc, which the guests' agent is tested with: install the package gcc");
        assert!(done.status.success(), "cc failed:\n{}", String::from_utf8_lossy(&done.stderr));
        std::fs::rename(&made, &program).expect("renamed");
        program
    })
}

/// An agent that runs.
pub struct Agent {
    pub child: Child,
    pub port: UnixStream,
    pub started: Instant,
}

impl Agent {
    pub fn start() -> Agent {
        Agent::start_with_log("/dev/null".into())
    }

    /// An agent that takes a file for the kernel's log.
    pub fn start_with_log(log: &Utf8Path) -> Agent {
        let (port, agents) = UnixStream::pair().expect("a socket pair");
        let child = Command::new(program())
            .env("GOLDTRACE_KERNEL_LOG", log)
            .stdin(Stdio::from(OwnedFd::from(agents)))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the agent starts");
        port.set_read_timeout(Some(PATIENCE)).expect("set");
        Agent { child, port, started: Instant::now() }
    }

    /// Close the port, unless the agent has exited; its exit status and what it said.
    pub fn exit(mut self) -> (Option<i32>, String) {
        let _ = self.port.shutdown(std::net::Shutdown::Both);
        let mut said = String::new();
        self.child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
        (self.child.wait().expect("exits").code(), said)
    }

    pub fn next_frame(&mut self) -> Frame {
        Frame::read(&mut self.port).expect("readable").expect("a frame")
    }

    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.port.write_all(bytes).expect("sent");
    }
}

impl Drop for Agent {
    /// Without its port the agent ends, and its parent after it, with all their processes.
    fn drop(&mut self) {
        let _ = self.port.shutdown(std::net::Shutdown::Both);
        let deadline = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                let _ = self.child.kill();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Port for Agent {
    fn started(&self) -> Instant {
        self.started
    }

    fn send(&mut self, frame: &Frame) -> Result<(), StopReason> {
        self.port.write_all(&frame.encode()).map_err(|error| StopReason::Port(error.to_string()))
    }

    fn frame(&mut self, what: &str, deadline: Instant, timeout: Duration) -> Result<Frame, StopReason> {
        let late = || StopReason::TimedOut { what: what.to_owned(), timeout };
        let left = deadline.checked_duration_since(Instant::now()).ok_or_else(late)?;
        // A frame is never cut: the agent writes each at once.
        self.port.set_read_timeout(Some(left.max(Duration::from_millis(1)))).expect("set");
        match Frame::read(&mut self.port) {
            Ok(Some(frame)) => Ok(frame),
            Ok(None) => Err(StopReason::Port("the agent has exited".to_owned())),
            Err(vm::FrameError::Io(error)) if error.kind() == std::io::ErrorKind::WouldBlock => Err(late()),
            Err(error) => Err(StopReason::Port(error.to_string())),
        }
    }

    fn wait_for_exit(&mut self, _: Instant, _: Duration) -> Result<Option<Frame>, StopReason> {
        if let Some(frame) =
            Frame::read(&mut self.port).map_err(|error| StopReason::Port(error.to_string()))?
        {
            return Ok(Some(frame));
        }
        let status = self.child.wait().expect("exits");
        if status.success() { Ok(None) } else { Err(StopReason::Exited(status)) }
    }
}

pub fn session() -> Session<Agent> {
    session_with(Agent::start())
}

pub fn session_with(agent: Agent) -> Session<Agent> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a kernel");
    let cpus = Command::new("getconf").arg("_NPROCESSORS_ONLN").output().expect("getconf").stdout;
    let cpus = String::from_utf8_lossy(&cpus).trim().parse().expect("a number");
    Session::open(agent, release.trim(), cpus, PATIENCE)
        .map_err(|failed| failed.error.to_string())
        .expect("the agent greets")
}

pub fn request(work: Work) -> Request {
    Request { work, cwd: "/".to_owned(), timeout: PATIENCE, output_limit: 1 << 20 }
}

pub fn script(text: &str) -> Request {
    request(Work::Run(text.to_owned()))
}

/// Run a request and end the agent, which must print nothing, such as a report of a sanitizer.
#[track_caller]
pub fn answer(request: &Request) -> Answer {
    let mut session = session();
    let answer = session.request(request).expect("an answer");
    end(session);
    answer
}

#[track_caller]
pub fn end(session: Session<Agent>) {
    let (agent, ended) = session.end();
    ended.expect("the agent exits with 0");
    assert_eq!(agent.exit(), (Some(0), String::new()));
}

/// A request's frame, as it travels.
pub fn frame(kind: FrameKind, nonce: u64, payload: &[u8]) -> Vec<u8> {
    Frame { kind, nonce, payload: payload.to_vec() }.encode()
}

/// The payload of a request.
pub fn payload(output_limit: u32, cwd: &str, body: &str) -> Vec<u8> {
    let length = u32::try_from(cwd.len()).expect("short");
    let words = [output_limit.to_le_bytes(), length.to_le_bytes()].concat();
    [&words, cwd.as_bytes(), body.as_bytes()].concat()
}
