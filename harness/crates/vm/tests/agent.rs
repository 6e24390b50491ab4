//! The agent's C code as a process of the host, under the address and undefined behaviour sanitizers, with a socket as
//! its port: both ends of the protocol at once, and an agent that is sent what no host should send.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use vm::qemu::StopReason;
use vm::{Answer, Frame, FrameKind, Port, Request, Session, SessionError, StepEnd, Work};

/// How long the agent may take for anything on a busy host.
const PATIENCE: Duration = Duration::from_secs(30);

/// The agent's program, compiled once. Without a C compiler the tests fail: nothing else tests the agent.
fn program() -> &'static Utf8Path {
    static PROGRAM: OnceLock<Utf8PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let here = Utf8Path::new(env!("CARGO_MANIFEST_DIR"));
        let agent = here.join("../../../guests/agent");
        let program = Utf8Path::new(env!("CARGO_TARGET_TMPDIR")).join("agent-on-host");
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
            .args([
                &agent,
                &agent.join("agent.c"),
                &agent.join("file.c"),
                &agent.join("frame.c"),
                &agent.join("pump.c"),
                &here.join("tests/agent_on_host.c"),
            ])
            .args([Utf8Path::new("-o"), &program])
            .output()
            .expect("cc, which the guests' agent is tested with: install the package gcc");
        assert!(done.status.success(), "cc failed:\n{}", String::from_utf8_lossy(&done.stderr));
        program
    })
}

/// An agent that runs.
struct Agent {
    child: Child,
    port: UnixStream,
    started: Instant,
}

impl Agent {
    fn start() -> Agent {
        Agent::start_with_log("/dev/null".into())
    }

    /// An agent that takes a file for the kernel's log.
    fn start_with_log(log: &Utf8Path) -> Agent {
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
    fn exit(mut self) -> (Option<i32>, String) {
        let _ = self.port.shutdown(std::net::Shutdown::Both);
        let mut said = String::new();
        self.child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
        (self.child.wait().expect("exits").code(), said)
    }

    fn next_frame(&mut self) -> Frame {
        Frame::read(&mut self.port).expect("readable").expect("a frame")
    }

    fn send_raw(&mut self, bytes: &[u8]) {
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

    fn wait_for_exit(&mut self, _: Duration) -> Result<Option<Frame>, StopReason> {
        if let Some(frame) =
            Frame::read(&mut self.port).map_err(|error| StopReason::Port(error.to_string()))?
        {
            return Ok(Some(frame));
        }
        let status = self.child.wait().expect("exits");
        if status.success() { Ok(None) } else { Err(StopReason::Exited(status)) }
    }
}

fn session() -> Session<Agent> {
    session_with(Agent::start())
}

fn session_with(agent: Agent) -> Session<Agent> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a kernel");
    let cpus = Command::new("getconf").arg("_NPROCESSORS_ONLN").output().expect("getconf").stdout;
    let cpus = String::from_utf8_lossy(&cpus).trim().parse().expect("a number");
    Session::open(agent, release.trim(), cpus, PATIENCE)
        .map_err(|failed| failed.error.to_string())
        .expect("the agent greets")
}

fn request(work: Work) -> Request {
    Request { work, cwd: "/".to_owned(), timeout: PATIENCE, output_limit: 1 << 20 }
}

fn script(text: &str) -> Request {
    request(Work::Run(text.to_owned()))
}

/// Run a request and end the agent, which must print nothing, such as a report of a sanitizer.
#[track_caller]
fn answer(request: &Request) -> Answer {
    let mut session = session();
    let answer = session.request(request).expect("an answer");
    end(session);
    answer
}

#[track_caller]
fn end(session: Session<Agent>) {
    let (agent, ended) = session.end();
    ended.expect("the agent exits with 0");
    assert_eq!(agent.exit(), (Some(0), String::new()));
}

/// A request's frame, as it travels.
fn frame(kind: FrameKind, nonce: u64, payload: &[u8]) -> Vec<u8> {
    Frame { kind, nonce, payload: payload.to_vec() }.encode()
}

/// The payload of a request.
fn payload(output_limit: u32, cwd: &str, body: &str) -> Vec<u8> {
    let length = u32::try_from(cwd.len()).expect("short");
    let words = [output_limit.to_le_bytes(), length.to_le_bytes()].concat();
    [&words, cwd.as_bytes(), body.as_bytes()].concat()
}

#[test]
fn greeting_names_kernel_cpus_and_version() {
    let session = session();
    assert_eq!(session.ready().version, vm::PROTOCOL_VERSION);
    end(session);
}

#[test]
fn end_of_each_request_is_marked_in_the_kernels_log() {
    let dir = tempfile::tempdir().expect("a directory");
    let log = Utf8Path::from_path(dir.path()).expect("UTF-8").join("kmsg");
    std::fs::write(&log, "").expect("written");
    let mut session = session_with(Agent::start_with_log(&log));
    let mut expected = "<4>goldtrace: end of request 0000000000000000\n".to_owned();
    assert_eq!(std::fs::read_to_string(&log).expect("readable"), expected);
    for _ in 0..3 {
        session.request(&script("true")).expect("an answer");
        let nonces = session.take_requests();
        let marks = nonces.iter().map(|nonce| format!("<4>goldtrace: end of request {nonce:016x}\n"));
        expected.extend(marks);
        assert_eq!(std::fs::read_to_string(&log).expect("readable"), expected);
    }
    end(session);
}

#[test]
fn answer_has_the_kernels_state() {
    let numbers = |path: &str| {
        let text = std::fs::read_to_string(path).expect("readable");
        text.split_whitespace().map(|number| number.parse().expect("a number")).collect::<Vec<u64>>()
    };
    let state = answer(&script("true")).kernel;
    assert_eq!(vec![state.tainted], numbers("/proc/sys/kernel/tainted"));
    let levels = [state.console_level, state.message_level].map(u64::from);
    assert_eq!(levels, numbers("/proc/sys/kernel/printk")[..2]);
}

#[test]
fn script_runs_in_its_directory_with_both_streams_and_its_status() {
    let done = answer(&Request { cwd: "/proc/self".to_owned(), ..script("pwd; echo err >&2; exit 7") });
    assert_eq!(done.end, StepEnd::Exited(7));
    assert!(done.stdout.starts_with(b"/proc/"), "{done:?}");
    assert_eq!(done.stderr, b"err\n");
    assert!(done.elapsed > Duration::ZERO && done.elapsed < PATIENCE, "{done:?}");
}

#[test]
fn script_stops_at_its_first_failing_command() {
    let done = answer(&script("false; echo never"));
    assert_eq!((done.end, done.stdout), (StepEnd::Exited(1), Vec::new()));
}

#[test]
fn pipeline_fails_with_any_of_its_parts() {
    for (text, status) in [("false | cat", 1), ("(exit 3) | true", 3), ("true | (exit 4)", 4)] {
        assert_eq!(answer(&script(text)).end, StepEnd::Exited(status), "{text}");
    }
    assert_eq!(answer(&script("sh -c 'kill -SEGV $$' | cat")).end, StepEnd::Exited(128 + 11));
}

#[test]
fn requests_follow_each_other() {
    let mut session = session();
    for n in 0..50 {
        let done = session.request(&script(&format!("printf {n}; printf e{n} >&2"))).expect("an answer");
        assert_eq!((done.stdout, done.stderr), (n.to_string().into_bytes(), format!("e{n}").into_bytes()));
    }
    end(session);
}

#[test]
fn output_of_any_bytes_is_whole() {
    let done = answer(&script("head -c 300000 /dev/zero; printf '\\377\\n'; head -c 200000 /dev/zero >&2"));
    assert_eq!((done.stdout.len(), done.stderr.len()), (300_002, 200_000));
    assert!(done.stdout.ends_with(b"\0\xff\n"));
}

#[test]
fn output_over_its_limit_is_cut_there_and_the_script_killed() {
    for stream in ["1", "2"] {
        let endless = script(&format!("while :; do echo 0123456789; done >&{stream}"));
        let done = answer(&Request { output_limit: 1000, ..endless });
        assert_eq!((done.end, done.stdout.len() + done.stderr.len()), (StepEnd::Flooded, 1000));
    }
    // Output of just the limit was cut, as far as the agent knows; a byte less was not.
    let exactly = |limit| answer(&Request { output_limit: limit, ..script("printf 12345678") });
    assert_eq!((exactly(8).end, exactly(9).end), (StepEnd::Flooded, StepEnd::Exited(0)));
    assert_eq!(exactly(0).end, StepEnd::Flooded);
}

#[test]
fn script_that_hangs_is_killed_at_its_timeout_with_its_children() {
    let start = Instant::now();
    let hanging =
        Request { timeout: Duration::from_millis(300), ..script("echo $$; sleep 1000 & sleep 1000") };
    let done = answer(&hanging);
    assert_eq!(done.end, StepEnd::TimedOut);
    assert!(done.elapsed >= Duration::from_millis(300) && start.elapsed() < PATIENCE, "{done:?}");
    let group: i32 = String::from_utf8_lossy(&done.stdout).trim().parse().expect("a process id");
    let start = Instant::now();
    while Command::new("kill")
        .args(["-0", "--", &format!("-{group}")])
        .output()
        .is_ok_and(|o| o.status.success())
    {
        assert!(start.elapsed() < PATIENCE, "a process of the script is left");
    }
}

#[test]
fn script_that_ignores_signals_is_killed_at_its_timeout() {
    let stubborn = "trap '' TERM INT HUP PIPE; while :; do sleep 1000; done";
    let done = answer(&Request { timeout: Duration::from_millis(200), ..script(stubborn) });
    assert_eq!(done.end, StepEnd::TimedOut);
}

#[test]
fn signal_of_a_script_is_reported() {
    assert_eq!(answer(&script("kill -SEGV $$")).end, StepEnd::Signalled(11));
    assert_eq!(answer(&script("kill -KILL $$")).end, StepEnd::Signalled(9));
    // SIGPIPE has its default again.
    assert_eq!(answer(&script("kill -PIPE $$; echo survived")).end, StepEnd::Signalled(13));
}

#[test]
fn process_left_behind_holds_up_no_answer() {
    let start = Instant::now();
    for left in
        ["sleep 20 & echo done", "sleep 20 2> /dev/null & echo done", "sleep 20 > /dev/null & echo done"]
    {
        let done = answer(&script(left));
        assert_eq!((done.end, done.stdout.as_slice()), (StepEnd::Exited(0), &b"done\n"[..]));
        assert!(done.held_open, "{left}");
    }
    assert!(!answer(&script("sleep 20 > /dev/null 2>&1 & echo done")).held_open);
    assert!(start.elapsed() < Duration::from_secs(15));
}

#[test]
fn file_is_read_to_its_end() {
    let path = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let done = answer(&request(Work::Read(path.to_string())));
    assert_eq!((done.end, done.stdout), (StepEnd::Exited(0), std::fs::read(&path).expect("there")));
    let relative = Request { cwd: "/proc/self".to_owned(), ..request(Work::Read("comm".to_owned())) };
    assert_eq!(answer(&relative).stdout, b"agent-on-host\n");
}

#[test]
fn file_or_directory_that_is_not_there_is_an_errno() {
    let read = |path: &str| answer(&request(Work::Read(path.to_owned()))).end;
    assert_eq!(read("/nowhere/hist"), StepEnd::Errno(2));
    assert_eq!(read("/proc"), StepEnd::Errno(21));
    // A file that opens and cannot be read: kernel memory at 0.
    assert_eq!(read("/proc/self/mem"), StepEnd::Errno(5));
    let nowhere = Request { cwd: "/nowhere".to_owned(), ..script("echo never") };
    assert_eq!(answer(&nowhere).end, StepEnd::Errno(2));
}

#[test]
fn endless_file_is_cut_at_the_limit() {
    let done = answer(&Request { output_limit: 70_000, ..request(Work::Read("/dev/zero".to_owned())) });
    assert_eq!((done.end, done.stdout.len()), (StepEnd::Flooded, 70_000));
}

#[test]
fn file_is_written_whole_and_anew() {
    let dir = tempfile::tempdir().expect("a directory");
    let cwd = dir.path().to_str().expect("UTF-8");
    // More than three requests hold, with every byte.
    let large: Vec<u8> = (0..3_500_000_u32).map(|n| (n % 251) as u8).collect();
    let mut session = session();
    for content in [&large[..], b"", b"short\0\n"] {
        let end = session.write_file(cwd, "a file", content, PATIENCE).expect("an answer");
        assert_eq!(end, StepEnd::Exited(0));
        assert!(std::fs::read(dir.path().join("a file")).expect("there") == content);
    }
    for (path, errno) in [("absent/file", 2), (".", 21), ("/dev/full", 28)] {
        let end = session.write_file(cwd, path, b"x", PATIENCE).expect("an answer");
        assert_eq!(end, StepEnd::Errno(errno), "{path}");
    }
    let append = request(Work::Append { path: "a file".to_owned(), content: b"more".to_vec() });
    let done = session.request(&Request { cwd: cwd.to_owned(), ..append }).expect("an answer");
    assert_eq!((done.end, done.stdout.len()), (StepEnd::Exited(0), 0));
    assert_eq!(std::fs::read(dir.path().join("a file")).expect("there"), b"short\0\nmore");
    end(session);
}

#[test]
fn standard_input_is_empty_or_open_until_it_is_closed() {
    assert_eq!(answer(&script("cat; echo end")).stdout, b"end\n");
    let mut session = session();
    let mut pending =
        session.start(&request(Work::RunOpen("echo begun; cat; echo end".to_owned()))).expect("sent");
    let start = Instant::now();
    while pending.answer().stdout.is_empty() {
        assert!(!session.wait(&mut pending, Duration::from_millis(20)).expect("runs"), "ended early");
        assert!(start.elapsed() < PATIENCE);
    }
    assert!(!session.wait(&mut pending, Duration::from_millis(100)).expect("runs"), "ended early");
    session.close_input(&pending).expect("sent");
    let done = session.finish(pending).expect("an answer");
    assert_eq!((done.end, done.stdout.as_slice()), (StepEnd::Exited(0), &b"begun\nend\n"[..]));
    // Its input may be closed when the request has ended already.
    let mut pending = session.start(&request(Work::RunOpen("true".to_owned()))).expect("sent");
    while !session.wait(&mut pending, Duration::from_millis(20)).expect("runs") {}
    session.close_input(&pending).expect("sent");
    assert_eq!(session.request(&script("echo next")).expect("an answer").stdout, b"next\n");
    end(session);
}

#[test]
fn quiescing_is_answered_also_while_a_script_runs() {
    let mut session = session();
    let mut pending = session.start(&request(Work::RunOpen("cat".to_owned()))).expect("sent");
    let quiesced = session.quiesce_during(&mut pending);
    if cfg!(target_arch = "powerpc64") {
        assert!(quiesced.expect("quiesced").is_some());
    } else {
        let error = quiesced.expect_err("no timebase").to_string();
        assert_eq!(error, "the guest's processor has no timebase");
    }
    session.close_input(&pending).expect("sent");
    assert_eq!(session.finish(pending).expect("an answer").end, StepEnd::Exited(0));
    end(session);
}

#[test]
fn host_that_closes_the_port_ends_the_agent() {
    let mut agent = Agent::start();
    agent.next_frame();
    assert_eq!(agent.exit(), (Some(3), "the host closed the agent's port\n".to_owned()));
    let mut agent = Agent::start();
    agent.next_frame();
    agent.send_raw(&frame(FrameKind::Run, 7, &payload(100, "/", "echo begun; sleep 1000")));
    assert_eq!(agent.next_frame().kind, FrameKind::Stdout);
    let closed = "the host closed the agent's port during a request\n".to_owned();
    assert_eq!(agent.exit(), (Some(3), closed));
}

/// What the agent says when it is sent these bytes after its greeting.
#[track_caller]
fn gives_up_on(bytes: &[u8]) -> String {
    let mut agent = Agent::start();
    assert_eq!(agent.next_frame().kind, FrameKind::Ready);
    agent.send_raw(bytes);
    agent.port.shutdown(std::net::Shutdown::Write).expect("closed");
    // The agent closes its end when it exits.
    let _ = agent.port.read_to_end(&mut Vec::new());
    let (status, said) = agent.exit();
    assert_eq!(status, Some(3), "{said}");
    said.trim_end().to_owned()
}

#[test]
fn garbage_from_the_host_ends_the_agent_in_order() {
    let malformed = "a frame without the protocol's magic, or too long";
    assert_eq!(gives_up_on(&[b'x'; 24]), malformed);
    let run = frame(FrameKind::Run, 7, &payload(100, "/", "true"));
    let mut long = run.clone();
    long[16..20].copy_from_slice(&((1_u32 << 20) + 1).to_le_bytes());
    assert_eq!(gives_up_on(&long), malformed);
    long[16..20].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(gives_up_on(&long), malformed);
    let inside = "the host closed the agent's port inside a frame";
    for cut in [1, 23, 24, 30, run.len() - 1] {
        assert_eq!(gives_up_on(&run[..cut]), inside, "cut at {cut}");
    }
}

#[test]
fn malformed_requests_end_the_agent_in_order() {
    let short = "a request that is too short";
    assert_eq!(gives_up_on(&frame(FrameKind::Run, 7, b"")), short);
    assert_eq!(gives_up_on(&frame(FrameKind::Run, 7, &[0; 7])), short);
    let with_length = |length: u32| {
        let mut bytes = payload(100, "/", "true");
        bytes[4..8].copy_from_slice(&length.to_le_bytes());
        frame(FrameKind::Read, 7, &bytes)
    };
    for length in [6, 4096, u32::MAX, u32::MAX - 7] {
        assert_eq!(gives_up_on(&with_length(length)), short, "{length}");
    }
    // A directory longer than any.
    let long = payload(100, &"x".repeat(4096), "true");
    assert_eq!(gives_up_on(&frame(FrameKind::Run, 7, &long)), short);
    let endless = "a request to write a file without the end of its path";
    for kind in [FrameKind::Write, FrameKind::Append] {
        assert_eq!(gives_up_on(&frame(kind, 7, &payload(100, "/", "/tmp/path"))), endless);
        assert_eq!(gives_up_on(&frame(kind, 7, &payload(100, "/", ""))), endless);
    }
    let mut unknown = frame(FrameKind::Run, 7, &payload(100, "/", "true"));
    unknown[4..8].copy_from_slice(&99_u32.to_le_bytes());
    assert_eq!(gives_up_on(&unknown), "a request of an unknown type");
}

#[test]
fn request_inside_another_one_ends_the_agent() {
    let run = frame(FrameKind::RunOpen, 7, &payload(100, "/", "cat"));
    for inside in [frame(FrameKind::Run, 8, &payload(100, "/", "true")), frame(FrameKind::Close, 8, b"")] {
        assert_eq!(gives_up_on(&[run.clone(), inside].concat()), "a request inside another one");
    }
}

#[test]
fn largest_request_fits() {
    let comment = format!("#{}", "x".repeat((1 << 20) - 8 - 1 - 1 - 9));
    let mut session = session();
    // A script of a MiB is more than one argument of a program may have (MAX_ARG_STRLEN, 128 KiB on Linux).
    let done = session.request(&script(&format!("{comment}\necho end")));
    assert_eq!(done.expect("an answer").end, StepEnd::Errno(7));
    let done = session.request(&script(&format!("{}\necho end", &comment[..100_000]))).expect("an answer");
    assert_eq!(done.stdout, b"end\n");
    let error = session.request(&script(&format!("{comment}\n\n\necho end"))).expect_err("does not fit");
    assert!(matches!(error, SessionError::TooLarge { .. }), "{error}");
    end(session);
}

#[test]
fn agent_that_is_killed_is_an_error_of_the_session() {
    let mut session = session();
    // Its parent is the agent.
    let error = session.request(&script("kill -KILL $PPID; sleep 1000")).expect_err("no answer").to_string();
    assert_eq!(error, "the agent has exited");
}

#[test]
fn script_does_not_outlive_the_agent() {
    let mut agent = Agent::start();
    agent.next_frame();
    let sleeps = "sh -c 'sleep 1000 & echo $!; sleep 1000'";
    agent.send_raw(&frame(FrameKind::Run, 7, &payload(100, "/", sleeps)));
    let output = agent.next_frame();
    let process = String::from_utf8(output.payload).expect("text").trim().to_owned();
    drop(agent.exit());
    assert!(!Utf8Path::new("/proc").join(process).exists());
}
