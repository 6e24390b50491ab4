//! The host's side of the protocol against an agent that each test scripts.

use std::cell::Cell;
use std::collections::VecDeque;

use super::*;

/// What an agent sends when it is sent a frame.
type Reply = Box<dyn FnMut(&Frame) -> Vec<Result<Frame, StopReason>>>;

/// An agent without a guest. Where it sends nothing, time is up.
struct FakeAgent {
    started: Instant,
    queue: VecDeque<Result<Frame, StopReason>>,
    reply: Reply,
    sent: Vec<FrameKind>,
    /// How long it has waited for a CPU, and how much more it has each time that somebody asks.
    waited: Cell<Duration>,
    starving: Duration,
}

impl Port for FakeAgent {
    fn started(&self) -> Instant {
        self.started
    }

    fn send(&mut self, frame: &Frame) -> Result<(), StopReason> {
        self.sent.push(frame.kind);
        self.queue.extend((self.reply)(frame));
        Ok(())
    }

    fn frame(&mut self, what: &str, _: Instant, timeout: Duration) -> Result<Frame, StopReason> {
        let late = || Err(StopReason::TimedOut { what: what.to_owned(), timeout });
        self.queue.pop_front().unwrap_or_else(late)
    }

    fn wait_for_exit(&mut self, _: Instant, timeout: Duration) -> Result<Option<Frame>, StopReason> {
        let late = || StopReason::TimedOut { what: "the end".to_owned(), timeout };
        match self.queue.pop_front() {
            Some(Err(StopReason::Exited(status))) if status.success() => Ok(None),
            Some(other) => other.map(Some),
            None => Err(late()),
        }
    }

    fn waited_for_cpu(&self) -> Duration {
        self.waited.set(self.waited.get() + self.starving);
        self.waited.get()
    }
}

fn frame(kind: FrameKind, nonce: u64, payload: impl Into<Vec<u8>>) -> Frame {
    Frame { kind, nonce, payload: payload.into() }
}

fn ready(version: u32, cpus: u32, release: &str) -> Frame {
    frame(FrameKind::Ready, 0, [&version.to_le_bytes(), &cpus.to_le_bytes(), release.as_bytes()].concat())
}

/// The frame that ends an answer.
fn done(nonce: u64, kind: u32, value: u32, stdout: u64, stderr: u64) -> Frame {
    let us = 1500_u64;
    let payload = [
        &kind.to_le_bytes()[..],
        &value.to_le_bytes(),
        &stdout.to_le_bytes(),
        &stderr.to_le_bytes(),
        &us.to_le_bytes(),
        &[0; 8],
        &0x1200_u64.to_le_bytes(),
        &5_u32.to_le_bytes(),
        &4_u32.to_le_bytes(),
    ];
    frame(FrameKind::Done, nonce, payload.concat())
}

fn open(
    greeting: impl IntoIterator<Item = Result<Frame, StopReason>>,
    reply: impl FnMut(&Frame) -> Vec<Result<Frame, StopReason>> + 'static,
) -> Result<Session<FakeAgent>, SessionError> {
    let agent = FakeAgent {
        started: Instant::now(),
        queue: greeting.into_iter().collect(),
        reply: Box::new(reply),
        sent: Vec::new(),
        waited: Cell::default(),
        starving: Duration::ZERO,
    };
    Session::open(agent, "7.2.12", 2, Duration::from_secs(90)).map_err(|failed| failed.error)
}

/// A session with an agent that is as it should be but for its replies.
fn session(mut reply: impl FnMut(&Frame) -> Vec<Frame> + 'static) -> Session<FakeAgent> {
    let reply = move |frame: &Frame| reply(frame).into_iter().map(Ok).collect();
    open([Ok(ready(PROTOCOL_VERSION, 2, "7.2.12"))], reply).expect("the right agent")
}

fn request() -> Request {
    Request {
        work: Work::Run("echo a".to_owned()),
        cwd: "/".to_owned(),
        timeout: Duration::from_secs(1),
        output_limit: 8,
    }
}

/// The message of what a request comes to when the agent replies with these frames, made for its nonce.
#[track_caller]
fn error(reply: impl Fn(u64) -> Vec<Frame> + 'static) -> String {
    session(move |frame| reply(frame.nonce)).request(&request()).expect_err("no answer").to_string()
}

#[test]
fn answer_is_what_the_frames_carry() {
    let mut session = session(|sent| {
        let n = sent.nonce;
        vec![
            frame(FrameKind::Stdout, n, *b"ab"),
            frame(FrameKind::Stderr, n, *b"e"),
            frame(FrameKind::Stdout, n, *b"c"),
            done(n, 0, 3, 3, 1),
        ]
    });
    assert_eq!((session.ready().cpus, session.ready().release.as_str()), (2, "7.2.12"));
    let answer = session.request(&request()).expect("an answer");
    assert_eq!(answer.end, StepEnd::Exited(3));
    assert_eq!((answer.stdout.as_slice(), answer.stderr.as_slice()), (&b"abc"[..], &b"e"[..]));
    assert_eq!(answer.elapsed, Duration::from_micros(1500));
    assert_eq!(answer.kernel, KernelState { tainted: 0x1200, console_level: 5, message_level: 4 });
    assert_eq!(session.take_requests().len(), 1);
    // The next one has a nonce of its own.
    session.request(&request()).expect("another answer");
}

#[test]
fn every_end_is_read() {
    let ends = [
        (0, StepEnd::Exited(7)),
        (1, StepEnd::Signalled(7)),
        (2, StepEnd::TimedOut),
        (3, StepEnd::Flooded),
        (4, StepEnd::Errno(7)),
    ];
    for (kind, end) in ends {
        let answer = session(move |sent| vec![done(sent.nonce, kind, 7, 0, 0)]).request(&request());
        assert_eq!(answer.expect("an answer").end, end);
    }
}

#[test]
fn other_agent_kernel_or_cpus_are_refused() {
    let refusal = |greeting: Frame| open([Ok(greeting)], |_| Vec::new()).err().expect("refused").to_string();
    let version = format!("the agent speaks version 99 of the protocol, expected {PROTOCOL_VERSION}");
    assert_eq!(refusal(ready(99, 2, "7.2.12")), version);
    assert_eq!(refusal(ready(PROTOCOL_VERSION, 2, "6.1.0")), "the guest runs kernel 6.1.0, expected 7.2.12");
    assert_eq!(refusal(ready(PROTOCOL_VERSION, 1, "7.2.12")), "1 of the guest's 2 CPUs are online");
    assert_eq!(refusal(done(0, 0, 0, 0, 0)), "expected the agent's greeting, got a Done frame");
    let malformed = "the agent's port carried a malformed greeting, which is not the protocol";
    assert_eq!(refusal(frame(FrameKind::Ready, 0, *b"short")), malformed);
    assert_eq!(refusal(frame(FrameKind::Ready, 0, *b"12345678\xff")), malformed);
}

#[test]
fn guest_without_a_greeting_is_given_up() {
    let error = open([], |_| Vec::new()).err().expect("no agent").to_string();
    assert_eq!(error, "timed out after 90.0 s waiting for the agent's greeting");
    let error = open([Err(StopReason::Panicked("Kernel panic".to_owned()))], |_| Vec::new());
    assert_eq!(error.err().expect("no agent").to_string(), "the kernel panicked: Kernel panic");
}

#[test]
fn wrong_nonce_is_refused() {
    let message = "the agent answered a request that was not made";
    assert_eq!(error(|n| vec![done(n ^ 2, 0, 0, 0, 0)]), message);
    assert_eq!(error(|n| vec![frame(FrameKind::Stdout, n ^ 2, *b"a")]), message);
    assert_eq!(error(|_| vec![frame(FrameKind::Stdout, 0, *b"a")]), message);
}

#[test]
fn answer_to_the_request_before_is_refused() {
    let mut before = None;
    let mut session =
        session(move |sent| vec![done(before.replace(sent.nonce).unwrap_or(sent.nonce), 0, 0, 0, 0)]);
    session.request(&request()).expect("an answer");
    let error = session.request(&request()).expect_err("the first one's").to_string();
    assert_eq!(error, "the agent answered a request that was not made");
}

#[test]
fn wrong_counts_are_refused() {
    let with_counts = |out, err| {
        error(move |n| {
            vec![
                frame(FrameKind::Stdout, n, *b"ab"),
                frame(FrameKind::Stderr, n, *b"e"),
                done(n, 0, 0, out, err),
            ]
        })
    };
    assert_eq!(with_counts(3, 1), "the agent sent 3 and 1 bytes of output, received 2 and 1");
    assert_eq!(with_counts(2, 0), "the agent sent 2 and 0 bytes of output, received 2 and 1");
    // Their sum is right.
    assert_eq!(with_counts(1, 2), "the agent sent 1 and 2 bytes of output, received 2 and 1");
}

#[test]
fn more_output_than_the_limit_is_refused() {
    let message = "the agent sent more than the 8 bytes of output that it may send";
    assert_eq!(error(|n| vec![frame(FrameKind::Stdout, n, *b"123456789")]), message);
    let both = |n| vec![frame(FrameKind::Stdout, n, *b"12345678"), frame(FrameKind::Stderr, n, *b"9")];
    assert_eq!(error(both), message);
    let just = session(|sent| {
        vec![frame(FrameKind::Stdout, sent.nonce, *b"12345678"), done(sent.nonce, 3, 8, 8, 0)]
    });
    assert_eq!({ just }.request(&request()).expect("fits").end, StepEnd::Flooded);
}

#[test]
fn other_frames_inside_an_answer_are_refused() {
    for kind in [FrameKind::Ready, FrameKind::Quiesced, FrameKind::Run, FrameKind::End] {
        let error = error(move |n| vec![frame(FrameKind::Stdout, n, *b"a"), frame(kind, n, *b"")]);
        assert_eq!(error, format!("unexpected {kind:?} frame in an answer"));
    }
}

#[test]
fn malformed_end_of_an_answer_is_refused() {
    let short = |n| vec![frame(FrameKind::Done, n, vec![0; 55])];
    assert_eq!(error(short), "the frame that ends an answer has 55 bytes, expected 56");
    assert_eq!(
        error(|n| vec![done(n, 9, 0, 0, 0)]),
        "the frame that ends an answer is of the unknown kind 9"
    );
}

#[test]
fn agent_that_dies_inside_an_answer_is_an_error() {
    let port = || StopReason::Port("the guest closed the agent's port".to_owned());
    let dying = move |sent: &Frame| vec![Ok(frame(FrameKind::Stdout, sent.nonce, *b"a")), Err(port())];
    let mut session = open([Ok(ready(PROTOCOL_VERSION, 2, "7.2.12"))], dying).expect("the right agent");
    let error = session.request(&request()).expect_err("no answer").to_string();
    assert_eq!(error, "the guest closed the agent's port");
}

#[test]
fn request_is_killed_at_its_timeout() {
    let mut session = session(|sent| match sent.kind {
        FrameKind::Kill => {
            vec![frame(FrameKind::Stdout, sent.nonce, *b"a"), done(sent.nonce, 2, 0, 1, 0)]
        }
        _ => Vec::new(),
    });
    let answer = session.request(&request()).expect("an answer");
    assert_eq!((answer.end, answer.stdout.as_slice()), (StepEnd::TimedOut, &b"a"[..]));
    assert_eq!(session.machine().sent, [FrameKind::Run, FrameKind::Kill]);
}

/// A request of a second, and how many times its end was waited for until it was killed.
fn waits(starving: Duration) -> usize {
    let mut session = session(|sent| match sent.kind {
        FrameKind::Kill => vec![done(sent.nonce, 2, 0, 0, 0)],
        _ => Vec::new(),
    });
    session.machine.starving = starving;
    let mut pending = session.start(&request()).expect("sent");
    let mut waits = 0;
    while session.machine.sent.len() == 1 {
        let deadline = pending.timeout.deadline();
        assert!(!session.gather(&mut pending, deadline).expect("goes on"));
        waits += 1;
    }
    assert_eq!(session.finish(pending).expect("an answer").end, StepEnd::TimedOut);
    waits
}

#[test]
fn time_in_which_the_host_had_no_cpu_for_the_guest_does_not_count() {
    assert_eq!(waits(Duration::ZERO), 1);
    // One second, then four more, then four more: nine is the most, and then there is nothing to add.
    assert_eq!(waits(Duration::from_secs(4)), 4);
    assert_eq!(waits(Duration::from_secs(1000)), 2);
}

#[test]
fn agent_that_is_silent_also_after_the_timeout_times_out() {
    assert_eq!(
        error(|_| Vec::new()),
        "timed out after 30.0 s waiting for the end of `echo a`, which was to be killed at its timeout"
    );
}

#[test]
fn request_that_does_not_fit_is_not_sent() {
    let mut session = session(|_| Vec::new());
    let large = Request { work: Work::Run("x".repeat(1 << 20)), ..request() };
    let error = session.request(&large).expect_err("too large").to_string();
    assert_eq!(error, "the step is too large: 1048585 bytes, and at most 1048576 fit");
    assert_eq!(session.machine().sent, []);
}

#[test]
fn quiescing_returns_the_timebase() {
    let quiesce = |reply: fn(u64) -> Frame| {
        session(move |sent| vec![reply(sent.nonce)]).quiesce().map_err(|error| error.to_string())
    };
    assert_eq!(quiesce(|n| frame(FrameKind::Quiesced, n, 77_u64.to_le_bytes())), Ok(77));
    let no_timebase = Err("the guest's processor has no timebase".to_owned());
    assert_eq!(quiesce(|n| frame(FrameKind::Quiesced, n, 0_u64.to_le_bytes())), no_timebase);
    assert_eq!(quiesce(|n| frame(FrameKind::Quiesced, n, *b"short")), no_timebase);
    let unknown = Err("the agent answered a request that was not made".to_owned());
    assert_eq!(quiesce(|n| frame(FrameKind::Quiesced, n ^ 2, 77_u64.to_le_bytes())), unknown);
    let other = Err("expected the answer to QUIESCE, got a Done frame".to_owned());
    assert_eq!(quiesce(|n| done(n, 0, 0, 0, 0)), other);
}

/// A session whose agent sends these when it is asked to quiesce during an answer: `R` for a frame of the request's
/// output, `D` for its end, `Q` for the answer.
fn quiescing(frames: &'static str) -> Result<Option<u64>, String> {
    let mut asked = 0;
    let mut session = session(move |sent| {
        if sent.kind != FrameKind::Quiesce {
            asked = sent.nonce;
            return Vec::new();
        }
        let reply = frames.chars().map(|kind| match kind {
            'R' => frame(FrameKind::Stdout, asked, *b"a"),
            'D' => done(asked, 0, 0, frames.split('D').next().map_or(0, str::len) as u64, 0),
            _ => frame(FrameKind::Quiesced, sent.nonce, 77_u64.to_le_bytes()),
        });
        reply.collect()
    });
    let mut pending = session.start(&request()).expect("sent");
    session.quiesce_during(&mut pending).map_err(|error| error.to_string())
}

#[test]
fn quiescing_during_an_answer_leaves_the_answer_whole() {
    assert_eq!(quiescing("Q"), Ok(Some(77)));
    assert_eq!(quiescing("RRQ"), Ok(Some(77)));
    // The command has ended meanwhile.
    assert_eq!(quiescing("RDQ"), Ok(None));
    let unknown = Err("the agent answered a request that was not made".to_owned());
    assert_eq!(quiescing("DRQ"), unknown);
    assert_eq!(quiescing("DDQ"), unknown);
    assert!(quiescing("RD").is_err_and(|error| error.starts_with("timed out")));
}

#[test]
fn waiting_takes_what_has_come_and_no_more() {
    let mut session = session(|sent| match sent.kind {
        FrameKind::RunOpen => vec![frame(FrameKind::Stdout, sent.nonce, *b"a")],
        _ => vec![done(sent.nonce, 0, 0, 1, 0)],
    });
    let open = Request { work: Work::RunOpen("cat".to_owned()), ..request() };
    let mut pending = session.start(&open).expect("sent");
    assert!(!session.wait(&mut pending, Duration::ZERO).expect("goes on"));
    assert_eq!(pending.answer().stdout, b"a");
    session.close_input(&pending).expect("sent");
    assert!(session.wait(&mut pending, Duration::ZERO).expect("ends"));
    assert_eq!(session.machine().sent, [FrameKind::RunOpen, FrameKind::Close]);
}

#[test]
fn frame_after_the_end_is_refused() {
    let session_of = |reply: fn(&Frame) -> Vec<Result<Frame, StopReason>>| {
        open([Ok(ready(PROTOCOL_VERSION, 2, "7.2.12"))], reply).expect("the right agent")
    };
    let end = |reply| session_of(reply).end().1.map_err(|error| error.to_string());
    assert_eq!(end(|_| vec![Err(StopReason::Exited(std::process::ExitStatus::default()))]), Ok(()));
    let late = "unexpected Stdout frame from the agent after END".to_owned();
    assert_eq!(end(|sent| vec![Ok(frame(FrameKind::Stdout, sent.nonce, *b"a"))]), Err(late));
    let silent = "timed out after 30.0 s waiting for the end".to_owned();
    assert_eq!(end(|_| Vec::new()), Err(silent));
}
