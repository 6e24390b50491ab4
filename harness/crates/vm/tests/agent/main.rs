//! The agent's C code as a process of the host, under the address and undefined behaviour sanitizers, with a socket as
//! its port: both ends of the protocol at once, and an agent that is sent what no host should send.

mod input;
mod on_host;

use std::io::Read;
use std::process::Command;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use vm::{FrameKind, Request, SessionError, StepEnd, Work};

use on_host::*;

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
fn script_finds_no_signal_ignored_or_blocked() {
    let answer = answer(&script("sed -nE 's/^Sig(Blk|Ign):\\t//p' /proc/self/status"));
    let masks = String::from_utf8_lossy(&answer.stdout);
    assert_eq!(masks.lines().count(), 2, "{masks}");
    for mask in masks.lines() {
        // From 32 on they belong to the C library, which passes on what the tests were started with.
        let first = u64::from_str_radix(mask, 16).expect("a mask") & 0x7fff_ffff;
        assert_eq!(first, 0, "{masks}");
    }
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
fn restored_guest_is_given_the_time_and_random_numbers() {
    let dir = tempfile::tempdir().expect("a directory");
    let log = Utf8Path::from_path(dir.path()).expect("UTF-8").join("kmsg");
    let mut agent = Agent::start_with_log(&log);
    let first = agent.next_frame();
    std::fs::write(&log, "").expect("written");
    for (nonce, random) in [(5, &[0x0a][..]), (6, &[0xff; 64])] {
        let payload = [&1_796_000_000_123_456_789_u64.to_le_bytes()[..], random].concat();
        agent.send_raw(&frame(FrameKind::Resume, nonce, &payload));
        let ready = agent.next_frame();
        assert_eq!(
            (ready.kind, ready.nonce, ready.payload),
            (FrameKind::Ready, nonce, first.payload.clone())
        );
    }
    let logged = std::fs::read_to_string(&log).expect("readable");
    let begin = "resume at 1796000000123456789 with";
    // No request has ended.
    assert_eq!(logged, format!("{begin} 0a\n{begin}{}\n", " ff".repeat(64)));
    for length in [0, 8, 73] {
        let error = gives_up_on(&frame(FrameKind::Resume, 7, &vec![1; length]));
        assert_eq!(error, "a RESUME of another length", "{length}");
    }
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
