//! QEMU's monitor: a line of JSON for each command and each answer (QMP).

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How many bytes a line may have. The longest of QEMU's own that comes here, an error, has some hundred.
const LINE_MAX: u64 = 1 << 16;
/// How many lines may come before an answer: events, of which a guest may cause any number.
const LINES_MAX: usize = 1000;

/// A monitor that takes commands.
#[derive(Debug)]
pub struct Monitor {
    stream: BufReader<UnixStream>,
    greeted: bool,
}

impl Monitor {
    /// The monitor at the other end of a socket.
    ///
    /// # Errors
    /// When the socket cannot be set up.
    pub fn new(stream: UnixStream) -> io::Result<Monitor> {
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(Monitor { stream: BufReader::new(stream), greeted: false })
    }

    /// Wait for its greeting, the first time.
    ///
    /// # Errors
    /// When it does not come in time, or the peer is not a monitor.
    pub fn greet(&mut self) -> io::Result<()> {
        if self.greeted {
            return Ok(());
        }
        let greeting = self.line()?;
        if greeting.get("QMP").is_none() {
            return Err(io::Error::other(format!("QEMU's monitor greeted with {greeting}")));
        }
        self.execute("qmp_capabilities")?;
        self.greeted = true;
        Ok(())
    }

    /// Stop all of the guest's processors and its clocks.
    ///
    /// # Errors
    /// When QEMU does not do so.
    pub fn stop(&mut self) -> io::Result<()> {
        self.execute("stop")
    }

    /// Let them go on.
    ///
    /// # Errors
    /// When QEMU does not do so.
    pub fn resume(&mut self) -> io::Result<()> {
        self.execute("cont")
    }

    fn execute(&mut self, command: &str) -> io::Result<()> {
        let line = format!("{}\n", json!({ "execute": command }));
        self.stream.get_mut().write_all(line.as_bytes())?;
        for _ in 0..LINES_MAX {
            let answer = self.line()?;
            if answer.get("return").is_some() {
                return Ok(());
            }
            // Events may come in between.
            if let Some(error) = answer.get("error") {
                return Err(io::Error::other(format!("QEMU's monitor refused `{command}`: {error}")));
            }
        }
        Err(io::Error::other(format!("QEMU's monitor sent {LINES_MAX} lines and no answer to `{command}`")))
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
        then(monitor.greet().map(|()| monitor));
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
