//! QEMU's monitor: a line of JSON for each command and each answer (QMP).

use std::io::{self, BufRead, BufReader, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde_json::{Value, json};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How many bytes a line may have. The longest of QEMU's own that comes here, an error, has some hundred.
const LINE_MAX: u64 = 1 << 16;
/// How many lines may come before an answer: events, of which a guest may cause any number.
const LINES_MAX: usize = 1000;
/// How often a state that has to be asked for is asked for.
const INTERVAL: Duration = Duration::from_millis(2);
/// The name of the stream that a machine's state is written to.
const STREAM: &str = "state";

/// A monitor that takes commands.
#[derive(Debug)]
pub struct Monitor {
    stream: BufReader<UnixStream>,
    /// QEMU's version and the package's, once it has greeted.
    version: Option<String>,
    /// How often the guest has begun or gone on to run.
    resumed: usize,
}

impl Monitor {
    /// The monitor at the other end of a socket.
    ///
    /// # Errors
    /// When the socket cannot be set up.
    pub fn new(stream: UnixStream) -> io::Result<Monitor> {
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(Monitor { stream: BufReader::new(stream), version: None, resumed: 0 })
    }

    /// Wait for its greeting, the first time; QEMU's version, such as `7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)`.
    ///
    /// # Errors
    /// When it does not come in time, or the peer is not a monitor.
    pub fn greet(&mut self) -> io::Result<String> {
        if let Some(version) = &self.version {
            return Ok(version.clone());
        }
        let greeting = self.line()?;
        let Some(qmp) = greeting.get("QMP") else {
            return Err(io::Error::other(format!("QEMU's monitor greeted with {greeting}")));
        };
        let number = |name: &str| qmp["version"]["qemu"][name].as_u64().unwrap_or_default();
        let [major, minor, micro] = ["major", "minor", "micro"].map(number);
        let package = qmp["version"]["package"].as_str().unwrap_or_default();
        let version = format!("{major}.{minor}.{micro} ({package})");
        self.execute("qmp_capabilities", json!({}))?;
        self.version = Some(version.clone());
        Ok(version)
    }

    /// Stop all of the guest's processors and its clocks.
    ///
    /// # Errors
    /// When QEMU does not do so.
    pub fn stop(&mut self) -> io::Result<()> {
        self.execute("stop", json!({})).map(drop)
    }

    /// Let them go on.
    ///
    /// # Errors
    /// When QEMU does not do so.
    pub fn resume(&mut self) -> io::Result<()> {
        self.execute("cont", json!({})).map(drop)
    }

    /// Write the state of the machine but for its memory, which is shared, into the pipe `to`. Its processors stand
    /// still from then on.
    ///
    /// # Errors
    /// When QEMU cannot do so.
    pub fn save_state(&mut self, to: OwnedFd) -> io::Result<()> {
        self.greet()?;
        self.leave_shared_memory_out()?;
        self.execute_with("getfd", json!({ "fdname": STREAM }), Some(to.as_fd()))?;
        drop(to);
        self.execute("migrate", json!({ "uri": format!("fd:{STREAM}") }))?;
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let info = self.execute("query-migrate", json!({}))?;
            match info["status"].as_str().unwrap_or_default() {
                "completed" => return Ok(()),
                "failed" | "cancelled" => {
                    return Err(io::Error::other(format!("QEMU failed to save the machine: {info}")));
                }
                status if Instant::now() > deadline => {
                    let seconds = TIMEOUT.as_secs();
                    let what = format!("QEMU has not saved the machine after {seconds} s: {status}");
                    return Err(io::Error::new(io::ErrorKind::TimedOut, what));
                }
                _ => std::thread::sleep(INTERVAL),
            }
        }
    }

    /// Read the state of the machine, which waits for it, from the pipe that QEMU has as descriptor `from`, and wait
    /// until its processors run.
    ///
    /// # Errors
    /// When QEMU does not take it. It exits then, and says why on its standard error.
    pub fn load_state(&mut self, from: i32) -> io::Result<()> {
        self.leave_shared_memory_out()?;
        let resumed = self.resumed;
        self.execute("migrate-incoming", json!({ "uri": format!("fd:{from}") }))?;
        for _ in 0..LINES_MAX {
            if self.resumed > resumed {
                return Ok(());
            }
            let event = self.line()?;
            self.note(&event);
        }
        Err(io::Error::other(format!("QEMU's monitor sent {LINES_MAX} lines and the guest does not run")))
    }

    fn leave_shared_memory_out(&mut self) -> io::Result<()> {
        let capability = json!({ "capability": "x-ignore-shared", "state": true });
        self.execute("migrate-set-capabilities", json!({ "capabilities": [capability] })).map(drop)
    }

    fn execute(&mut self, command: &str, arguments: Value) -> io::Result<Value> {
        self.execute_with(command, arguments, None)
    }

    /// Have a command executed, for which QEMU may get a descriptor; what it returns.
    fn execute_with(
        &mut self,
        command: &str,
        arguments: Value,
        fd: Option<BorrowedFd<'_>>,
    ) -> io::Result<Value> {
        let line = format!("{}\n", json!({ "execute": command, "arguments": arguments }));
        match fd {
            None => self.stream.get_mut().write_all(line.as_bytes())?,
            Some(fd) => send_with(self.stream.get_ref(), line.as_bytes(), fd)?,
        }
        for _ in 0..LINES_MAX {
            let mut answer = self.line()?;
            if let Some(value) = answer.get_mut("return") {
                return Ok(value.take());
            }
            if let Some(error) = answer.get("error") {
                return Err(io::Error::other(format!("QEMU's monitor refused `{command}`: {error}")));
            }
            // Events may come in between.
            self.note(&answer);
        }
        Err(io::Error::other(format!("QEMU's monitor sent {LINES_MAX} lines and no answer to `{command}`")))
    }

    fn note(&mut self, event: &Value) {
        if event["event"] == "RESUME" {
            self.resumed += 1;
        }
    }

    fn line(&mut self) -> io::Result<Value> {
        let mut line = String::new();
        if self.stream.by_ref().take(LINE_MAX).read_line(&mut line)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "QEMU closed its monitor"));
        }
        if line.len() as u64 == LINE_MAX {
            return Err(io::Error::other(format!("QEMU's monitor sent a line of {LINE_MAX} bytes or more")));
        }
        serde_json::from_str(&line)
            .map_err(|error| io::Error::other(format!("QEMU's monitor sent {line:?}: {error}")))
    }
}

/// Send bytes and a descriptor that belongs to them.
fn send_with(stream: &UnixStream, bytes: &[u8], fd: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = [fd];
    assert!(control.push(SendAncillaryMessage::ScmRights(&fds)), "there is room for one");
    let sent = sendmsg(stream, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
    (&*stream).write_all(&bytes[sent..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(sent: &str, then: impl FnOnce(io::Result<Monitor>)) {
        let (ours, mut qemu) = UnixStream::pair().expect("a pair");
        let sent = sent.to_owned();
        let sender = std::thread::spawn(move || {
            // Whoever refuses it closes the socket.
            let _ = qemu.write_all(sent.as_bytes());
            qemu
        });
        let mut monitor = Monitor::new(ours).expect("a socket");
        then(monitor.greet().map(|_| monitor));
        drop(sender.join());
    }

    #[test]
    fn events_between_answers_are_ignored_and_a_refusal_is_an_error() {
        let sent = "{\"QMP\":{}}\n{\"return\":{}}\n{\"event\":\"STOP\"}\n{\"return\":{}}\n{\"error\":{\"desc\":\"no\"}}\n";
        with(sent, |monitor| {
            let mut monitor = monitor.expect("greeted");
            monitor.stop().expect("stopped");
            let error = monitor.resume().expect_err("refused").to_string();
            assert!(error.contains("refused `cont`") && error.contains("no"), "{error}");
        });
    }

    #[test]
    fn peer_that_is_not_a_monitor_is_refused() {
        with("{\"hello\":1}\n", |monitor| assert!(monitor.is_err()));
        with("hello\n", |monitor| assert!(monitor.is_err()));
    }

    #[test]
    fn monitor_that_floods_is_refused() {
        let message = |sent: &str| {
            let mut message = String::new();
            with(sent, |monitor| message = monitor.expect_err("refused").to_string());
            message
        };
        assert_eq!(message(&"x".repeat(1 << 20)), "QEMU's monitor sent a line of 65536 bytes or more");
        let events = format!("{{\"QMP\":{{}}}}\n{}", "{\"event\":\"RTC_CHANGE\"}\n".repeat(2000));
        assert_eq!(message(&events), "QEMU's monitor sent 1000 lines and no answer to `qmp_capabilities`");
    }
}
