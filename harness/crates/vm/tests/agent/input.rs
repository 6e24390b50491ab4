//! What comes to the standard input of a request, and terminals.

use std::time::{Duration, Instant};

use vm::{Answer, CHUNK_MAX, FrameKind, Pending, Session, StepEnd, TerminalSize, Work};

use super::gives_up_on;
use super::on_host::*;

const SIZE: TerminalSize = TerminalSize { rows: 24, columns: 80 };

fn start(session: &mut Session<Agent>, work: Work) -> Pending {
    session.start(&request(work)).expect("sent")
}

/// Send a part when the last was taken. Whether the request goes on.
fn send(session: &mut Session<Agent>, pending: &mut Pending, bytes: &[u8]) -> bool {
    while !pending.takes_input() {
        if session.wait_for_part(pending, PATIENCE).expect("runs") {
            return false;
        }
    }
    session.send_input(pending, bytes).expect("sent");
    true
}

/// Wait until the request has printed this.
fn wait_for(session: &mut Session<Agent>, pending: &mut Pending, text: &str) {
    let start = Instant::now();
    while !String::from_utf8_lossy(&pending.answer().stdout).contains(text) {
        let ended = session.wait_for_part(pending, Duration::from_millis(100)).expect("runs");
        let printed = String::from_utf8_lossy(&pending.answer().stdout);
        assert!(!ended && start.elapsed() < PATIENCE, "no `{text}` in {printed:?}");
    }
}

/// Run a script on a terminal, and type.
fn on_terminal(script: &str, typed: &[u8]) -> Answer {
    let mut session = session();
    let mut pending = start(&mut session, Work::Terminal { script: script.to_owned(), size: SIZE });
    if !typed.is_empty() {
        send(&mut session, &mut pending, typed);
    }
    let answer = session.finish(pending).expect("an answer");
    end(session);
    answer
}

fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.stdout).into_owned()
}

#[test]
fn input_of_any_bytes_reaches_the_script_whole() {
    let sent: Vec<u8> = (0..900_000_u32).map(|at| (at % 251) as u8).collect();
    let mut session = session();
    // Of the second part only a piece fits into the pipe at first, whose size is 64 KiB.
    let mut pending = start(&mut session, Work::RunOpen("sleep 0.2; cat".to_owned()));
    for part in sent[..100_000].chunks(50_000).chain(sent[100_000..].chunks(CHUNK_MAX)) {
        assert!(send(&mut session, &mut pending, part), "ended early");
    }
    // The last part is on its way.
    session.close_input(&pending).expect("sent");
    let done = session.finish(pending).expect("an answer");
    assert_eq!(done.end, StepEnd::Exited(0));
    assert!(done.stdout == sent, "{} bytes", done.stdout.len());
    end(session);
}

#[test]
fn input_that_nothing_reads_is_dropped() {
    let mut session = session();
    let mut pending =
        start(&mut session, Work::RunOpen("exec <&-; echo closed; sleep 0.2; exit 3".to_owned()));
    wait_for(&mut session, &mut pending, "closed");
    while send(&mut session, &mut pending, &[b'x'; CHUNK_MAX]) {}
    assert_eq!(session.finish(pending).expect("an answer").end, StepEnd::Exited(3));
    // It does not reach the next request, nor does what comes too late for its own.
    let mut pending = start(&mut session, Work::RunOpen("true".to_owned()));
    while !session.wait_for_part(&mut pending, PATIENCE).expect("runs") {}
    assert!(!pending.takes_input());
    session.send_input(&mut pending, b"late").expect("sent");
    session.resize(&pending, SIZE).expect("sent");
    assert_eq!(session.request(&script("cat; echo end")).expect("an answer").stdout, b"end\n");
    end(session);
}

#[test]
fn input_that_is_never_read_holds_up_no_end() {
    let mut session = session();
    let mut pending = start(&mut session, Work::RunOpen("sleep 0.5".to_owned()));
    while send(&mut session, &mut pending, &[b'x'; CHUNK_MAX]) {}
    assert_eq!(session.finish(pending).expect("an answer").end, StepEnd::Exited(0));
    let left = "sleep 20 > /dev/null 2>&1 & exit 4";
    let mut pending = start(&mut session, Work::RunOpen(left.to_owned()));
    while send(&mut session, &mut pending, &[b'x'; CHUNK_MAX]) {}
    assert_eq!(session.finish(pending).expect("an answer").end, StepEnd::Exited(4));
    end(session);
}

#[test]
fn terminal_has_its_size_and_is_all_three_streams() {
    let done =
        on_terminal("tty; stty size; for fd in 0 1 2; do test -t $fd; done; echo err >&2; exit 7", b"");
    let printed = text(&done);
    assert_eq!(done.end, StepEnd::Exited(7), "{printed:?}");
    assert!(printed.starts_with("/dev/pts/") && printed.ends_with("\r\n24 80\r\nerr\r\n"), "{printed:?}");
    assert_eq!((done.stderr.as_slice(), done.held_open), (&b""[..], false));
}

#[test]
fn what_is_typed_is_echoed_and_has_the_terminals_meaning() {
    let done = on_terminal("read line; echo got $line", b"abd\x7fc\r");
    assert_eq!(text(&done), "abd\x08 \x08c\r\ngot abc\r\n");
}

#[test]
fn keys_of_a_terminal_end_input_and_interrupt() {
    let mut session = session();
    let script = "stty -echo; echo ready; cat; echo end; exec cat".to_owned();
    let mut pending = start(&mut session, Work::Terminal { script, size: SIZE });
    wait_for(&mut session, &mut pending, "ready");
    send(&mut session, &mut pending, b"line\n\x04");
    wait_for(&mut session, &mut pending, "line\r\nend\r\n");
    // Its answer says that it runs: a shell that is about to start a program may ignore the key.
    send(&mut session, &mut pending, b"more\n");
    wait_for(&mut session, &mut pending, "more");
    send(&mut session, &mut pending, b"\x03");
    assert_eq!(session.finish(pending).expect("an answer").end, StepEnd::Signalled(2));
    end(session);
}

#[test]
fn terminal_takes_another_size() {
    let mut session = session();
    let script = "trap 'stty size; exit 5' WINCH; echo ready; while :; do sleep 0.1; done";
    let mut pending = start(&mut session, Work::Terminal { script: script.to_owned(), size: SIZE });
    wait_for(&mut session, &mut pending, "ready");
    session.resize(&pending, TerminalSize { rows: 50, columns: 300 }).expect("sent");
    let done = session.finish(pending).expect("an answer");
    assert_eq!((text(&done).as_str(), done.end), ("ready\r\n50 300\r\n", StepEnd::Exited(5)));
    end(session);
}

#[test]
fn terminal_shows_all_that_was_printed_before_its_end() {
    let done = on_terminal("head -c 300000 /dev/zero | tr '\\0' x; exit 3", b"");
    assert_eq!((done.stdout.len(), done.end), (300_000, StepEnd::Exited(3)));
}

#[test]
fn process_left_on_a_terminal_holds_up_no_end() {
    let begin = Instant::now();
    for left in ["sleep 20", "while :; do echo more; done"] {
        let done = on_terminal(&format!("trap '' HUP; ({left}) & echo done"), b"");
        assert_eq!(done.end, StepEnd::Exited(0));
        assert!(done.held_open && text(&done).contains("done\r\n"), "{left}");
    }
    assert!(begin.elapsed() < Duration::from_secs(15));
}

#[test]
fn script_on_a_terminal_is_killed_at_its_timeout() {
    let mut session = session();
    let work =
        Work::Terminal { script: "trap '' TERM INT HUP; echo begun; sleep 1000".to_owned(), size: SIZE };
    let request = vm::Request { timeout: Duration::from_millis(300), ..request(work) };
    let done = session.request(&request).expect("an answer");
    assert_eq!((done.end.clone(), text(&done).as_str()), (StepEnd::TimedOut, "begun\r\n"));
    end(session);
}

#[test]
fn malformed_input_ends_the_agent_in_order() {
    let begun = frame(FrameKind::RunOpen, 7, &payload(100, "/", "sleep 1000"));
    let inside = |bytes: Vec<u8>| gives_up_on(&[begun.clone(), bytes].concat());
    assert_eq!(inside(frame(FrameKind::Input, 7, b"")), "an INPUT of another length");
    let long = frame(FrameKind::Input, 7, &[b'x'; CHUNK_MAX + 1]);
    assert_eq!(inside(long), "an INPUT of another length");
    let part = frame(FrameKind::Input, 7, &[b'x'; CHUNK_MAX]);
    let third = [part.clone(), part.clone(), part].concat();
    assert_eq!(inside(third), "an INPUT before the last one was taken");
    assert_eq!(inside(frame(FrameKind::Input, 8, b"x")), "a request inside another one");
    for length in [0, 7, 9] {
        let size = vec![0; length];
        assert_eq!(inside(frame(FrameKind::Resize, 7, &size)), "a terminal's size of another length");
        let terminal = payload(100, "/", "true\0");
        let terminal = frame(FrameKind::Terminal, 7, &[terminal, size].concat());
        assert_eq!(gives_up_on(&terminal), "a terminal's size of another length");
    }
    let endless = "a request for a terminal without the end of its script";
    assert_eq!(gives_up_on(&frame(FrameKind::Terminal, 7, &payload(100, "/", "true"))), endless);
}
