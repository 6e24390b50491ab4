//! QEMU's monitor: a line of JSON for each command and each answer (QMP).

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A monitor that takes commands.
#[derive(Debug)]
pub struct Monitor {
    stream: BufReader<UnixStream>,
}

impl Monitor {
    /// The monitor of the QEMU that connects to `listener`.
    ///
    /// # Errors
    /// When QEMU does not connect in time, or the peer is not a monitor.
    pub fn accept(listener: &UnixListener) -> io::Result<Monitor> {
        listener.set_nonblocking(true)?;
        let deadline = Instant::now() + TIMEOUT;
        let stream = loop {
            match listener.accept() {
                Ok((stream, _)) => break stream,
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                Err(_) if Instant::now() > deadline => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "QEMU did not connect its monitor"));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let mut monitor = Monitor { stream: BufReader::new(stream) };
        let greeting = monitor.line()?;
        if greeting.get("QMP").is_none() {
            return Err(io::Error::other(format!("QEMU's monitor greeted with {greeting}")));
        }
        monitor.execute("qmp_capabilities")?;
        Ok(monitor)
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
        loop {
            let answer = self.line()?;
            if answer.get("return").is_some() {
                return Ok(());
            }
            // Events may come in between.
            if let Some(error) = answer.get("error") {
                return Err(io::Error::other(format!("QEMU's monitor refused `{command}`: {error}")));
            }
        }
    }

    fn line(&mut self) -> io::Result<Value> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "QEMU closed its monitor"));
        }
        serde_json::from_str(&line)
            .map_err(|error| io::Error::other(format!("QEMU's monitor sent {line:?}: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(sent: &'static str, then: impl FnOnce(io::Result<Monitor>)) {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("m");
        let listener = UnixListener::bind(&path).expect("bound");
        let mut qemu = UnixStream::connect(&path).expect("connected");
        qemu.write_all(sent.as_bytes()).expect("sent");
        then(Monitor::accept(&listener));
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
}
