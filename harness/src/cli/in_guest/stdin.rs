//! Our standard input, read by a thread of its own: a read of it can be ended by nothing but its writer.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use vm::CHUNK_MAX;

/// The key that ends a guest at once: Ctrl-].
const ESCAPE: u8 = 0x1d;

/// What has come of it.
#[derive(Debug)]
pub(in crate::cli) enum Part {
    /// Bytes, at most what one part of a guest's input may have.
    Bytes(Vec<u8>),
    /// The key that ends the guest.
    Escape,
    /// Nothing yet.
    Nothing,
    /// Its end.
    End,
}

/// Our standard input.
#[derive(Debug)]
pub(in crate::cli) struct Stdin {
    parts: Receiver<io::Result<Part>>,
}

impl Stdin {
    /// Begin to read it. Ctrl-] counts where it is a terminal.
    pub(in crate::cli) fn begin(is_terminal: bool) -> Stdin {
        // Nothing is read ahead of what the guest takes, but for one part.
        let (sender, parts) = sync_channel(0);
        std::thread::spawn(move || pass(io::stdin(), is_terminal, &sender));
        Stdin { parts }
    }

    /// What has come next.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn next(&self) -> io::Result<Part> {
        match self.parts.try_recv() {
            Ok(part) => part,
            Err(TryRecvError::Empty) => Ok(Part::Nothing),
            Err(TryRecvError::Disconnected) => Ok(Part::End),
        }
    }
}

/// Send what comes, until it ends or nobody takes it.
fn pass(mut from: impl Read, is_terminal: bool, to: &SyncSender<io::Result<Part>>) {
    let mut buffer = vec![0; CHUNK_MAX];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(n) => &buffer[..n],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                let _ = to.send(Err(error));
                return;
            }
        };
        let escape = read.iter().position(|byte| is_terminal && *byte == ESCAPE);
        let typed = &read[..escape.unwrap_or(read.len())];
        if !typed.is_empty() && to.send(Ok(Part::Bytes(typed.to_vec()))).is_err() {
            return;
        }
        if escape.is_some() {
            let _ = to.send(Ok(Part::Escape));
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(input: &'static [u8], is_terminal: bool) -> Vec<String> {
        let (sender, parts) = sync_channel(8);
        pass(input, is_terminal, &sender);
        drop(sender);
        parts.iter().map(|part| format!("{:?}", part.expect("readable"))).collect()
    }

    #[test]
    fn key_that_ends_the_guest_counts_on_a_terminal_alone() {
        assert_eq!(parts(b"a\x1db", true), ["Bytes([97])", "Escape"]);
        assert_eq!(parts(b"\x1d", true), ["Escape"]);
        assert_eq!(parts(b"a\x1db", false), ["Bytes([97, 29, 98])"]);
        assert_eq!(parts(b"", true), [""; 0]);
    }

    #[test]
    fn part_is_no_larger_than_a_guest_takes_at_once() {
        let input: &'static [u8] = vec![b'x'; CHUNK_MAX + 1].leak();
        let lengths: Vec<usize> =
            parts(input, false).iter().map(|part| part.matches("120").count()).collect();
        assert_eq!(lengths, [CHUNK_MAX, 1]);
    }
}
