//! Frames: what travels over the agent's port. All integers are little-endian.

use std::io::{self, Read};

const MAGIC: u32 = 0x3141_5447;
const HEADER: usize = 24;
const PAYLOAD_MAX: u32 = 1 << 20;

/// The largest payload of [`FrameKind::Input`] in bytes, and of what the guest's processes print.
pub const CHUNK_MAX: usize = 65536;

/// What the agent writes to the kernel's log before a request's nonce, in 16 hexadecimal digits, when the request has
/// ended; the greeting counts as the request 0. On the console it divides the kernel's messages.
pub const END_OF_REQUEST: &str = "goldtrace: end of request ";

/// The version of the protocol that this host speaks.
pub const PROTOCOL_VERSION: u32 = 7;

/// What a frame is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// Host to guest: run a shell script.
    Run,
    /// Host to guest: read a file.
    Read,
    /// Host to guest: power off.
    End,
    /// Host to guest: run a shell script whose standard input comes by [`FrameKind::Input`].
    RunOpen,
    /// Host to guest: end the standard input of that script.
    Close,
    /// Host to guest: run on every CPU once.
    Quiesce,
    /// Host to guest: kill the request's processes.
    Kill,
    /// Host to guest: make a file hold what the frame does.
    Write,
    /// Host to guest: add to the end of a file.
    Append,
    /// Host to guest: it has been restored from a snapshot; the time, and random numbers.
    Resume,
    /// Host to guest: bytes for the request's standard input.
    Input,
    /// Host to guest: run a shell script on a terminal.
    Terminal,
    /// Host to guest: the terminal has another size.
    Resize,
    /// Guest to host, once, and as the answer to each [`FrameKind::Resume`]: the agent is there.
    Ready,
    /// Guest to host: bytes of the request's standard output.
    Stdout,
    /// Guest to host: bytes of the request's standard error.
    Stderr,
    /// Guest to host: the request has ended.
    Done,
    /// Guest to host: the agent has run on every CPU; the timebase after that.
    Quiesced,
    /// Guest to host: the last [`FrameKind::Input`] was written, or nothing reads it.
    Taken,
}

const KINDS: [(u32, FrameKind); 19] = [
    (1, FrameKind::Run),
    (2, FrameKind::Read),
    (3, FrameKind::End),
    (4, FrameKind::RunOpen),
    (5, FrameKind::Close),
    (6, FrameKind::Quiesce),
    (7, FrameKind::Kill),
    (8, FrameKind::Write),
    (9, FrameKind::Append),
    (10, FrameKind::Resume),
    (11, FrameKind::Input),
    (12, FrameKind::Terminal),
    (13, FrameKind::Resize),
    (0x81, FrameKind::Ready),
    (0x82, FrameKind::Stdout),
    (0x83, FrameKind::Stderr),
    (0x84, FrameKind::Done),
    (0x85, FrameKind::Quiesced),
    (0x86, FrameKind::Taken),
];

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What it is for.
    pub kind: FrameKind,
    /// The request that it belongs to; 0 for the first [`FrameKind::Ready`].
    pub nonce: u64,
    /// Its content.
    pub payload: Vec<u8>,
}

/// Why no frame could be read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The bytes are not the protocol's.
    #[error("the agent's port carried {0}, which is not the protocol")]
    Malformed(String),
    /// The port cannot be read, or ended inside a frame.
    #[error("the agent's port failed: {0}")]
    Io(#[from] io::Error),
}

impl Frame {
    /// The frame as it travels.
    ///
    /// # Panics
    /// When the payload is larger than 1 MiB; callers check what users can make large.
    pub fn encode(&self) -> Vec<u8> {
        let length = u32::try_from(self.payload.len()).ok().filter(|n| *n <= PAYLOAD_MAX);
        let length = length.expect("a payload fits in a frame");
        let code = KINDS.iter().find(|(_, kind)| *kind == self.kind).expect("every kind has a code").0;
        let mut bytes = Vec::with_capacity(HEADER + self.payload.len());
        bytes.extend(MAGIC.to_le_bytes());
        bytes.extend(code.to_le_bytes());
        bytes.extend(self.nonce.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(&self.payload);
        bytes
    }

    /// The largest payload in bytes.
    pub fn payload_max() -> usize {
        PAYLOAD_MAX as usize
    }

    /// Read the next frame; `None` at the port's end.
    ///
    /// # Errors
    /// See [`FrameError`].
    pub fn read(from: &mut impl Read) -> Result<Option<Frame>, FrameError> {
        let mut header = [0; HEADER];
        loop {
            match from.read(&mut header[..1]) {
                Ok(0) => return Ok(None),
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        from.read_exact(&mut header[1..])?;
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
        if word(0) != MAGIC {
            return Err(FrameError::Malformed(format!("{:02x?} where a frame begins", &header[..4])));
        }
        let code = word(4);
        let Some((_, kind)) = KINDS.iter().find(|(known, _)| *known == code) else {
            return Err(FrameError::Malformed(format!("a frame of the unknown type {code:#x}")));
        };
        let length = word(16);
        if length > PAYLOAD_MAX {
            return Err(FrameError::Malformed(format!("a frame of {length} bytes")));
        }
        let nonce = u64::from_le_bytes(header[8..16].try_into().expect("eight bytes"));
        let mut payload = vec![0; length as usize];
        from.read_exact(&mut payload)?;
        Ok(Some(Frame { kind: *kind, nonce, payload }))
    }
}

/// The payload of [`FrameKind::Ready`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// The protocol that the agent speaks.
    pub version: u32,
    /// CPUs that are online.
    pub cpus: u32,
    /// `uname -r`.
    pub release: String,
}

impl Ready {
    /// Read the payload.
    ///
    /// # Errors
    /// When it is too short or no text.
    pub fn parse(payload: &[u8]) -> Result<Ready, FrameError> {
        let malformed = || FrameError::Malformed("a malformed greeting".to_owned());
        let (head, release) = payload.split_at_checked(8).ok_or_else(malformed)?;
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let release = std::str::from_utf8(release).map_err(|_| malformed())?.to_owned();
        Ok(Ready { version: word(0), cpus: word(4), release })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn encode_and_read_are_inverse(
            code in 0..KINDS.len(), nonce: u64, payload in proptest::collection::vec(any::<u8>(), 0..300)
        ) {
            let frame = Frame { kind: KINDS[code].1, nonce, payload };
            let bytes = frame.encode();
            let mut rest = bytes.as_slice();
            prop_assert_eq!(Frame::read(&mut rest).expect("valid"), Some(frame));
            prop_assert!(rest.is_empty());
        }

        /// What is read from any bytes is what these bytes are the encoding of.
        #[test]
        fn bytes_are_a_frame_only_when_they_encode_one(
            bytes in proptest::collection::vec(any::<u8>(), 0..100), code in 0..KINDS.len(), length in 0..4_u32
        ) {
            let mut framed = [&MAGIC.to_le_bytes()[..], &KINDS[code].0.to_le_bytes(), &[7; 8]].concat();
            framed.extend(length.to_le_bytes());
            framed.extend([0; 4]);
            framed.extend(&bytes);
            for bytes in [bytes, framed] {
                if let Ok(Some(frame)) = Frame::read(&mut bytes.as_slice()) {
                    prop_assert!(bytes.starts_with(&frame.encode()));
                }
            }
        }
    }

    #[test]
    fn cut_frame_is_an_error_and_not_an_end() {
        let bytes = Frame { kind: FrameKind::Done, nonce: 1, payload: vec![1, 2, 3] }.encode();
        for cut in 1..bytes.len() {
            assert!(Frame::read(&mut &bytes[..cut]).is_err(), "cut at {cut}");
        }
        assert!(Frame::read(&mut &bytes[..0]).expect("an end").is_none());
    }

    /// Every other read is interrupted by a signal.
    struct Interrupted<'a>(&'a [u8], bool);

    impl Read for Interrupted<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 { Err(io::ErrorKind::Interrupted.into()) } else { self.0.read(buffer) }
        }
    }

    #[test]
    fn interrupted_read_is_repeated() {
        let frame = Frame { kind: FrameKind::Done, nonce: 1, payload: vec![1, 2, 3] };
        let bytes = frame.encode();
        let mut from = Interrupted(&bytes, false);
        assert_eq!(Frame::read(&mut from).expect("valid"), Some(frame));
        assert_eq!(Frame::read(&mut from).expect("an end"), None);
    }

    #[test]
    fn malformed_frames_have_messages() {
        let error = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = Frame { kind: FrameKind::Done, nonce: 1, payload: vec![1, 2, 3] }.encode();
            change(&mut bytes);
            Frame::read(&mut bytes.as_slice()).expect_err("malformed").to_string()
        };
        let not_protocol = |what: &str| format!("the agent's port carried {what}, which is not the protocol");
        assert_eq!(error(&|b| b[0] = b'x'), not_protocol("[78, 54, 41, 31] where a frame begins"));
        assert_eq!(error(&|b| b[4] = 0x99), not_protocol("a frame of the unknown type 0x99"));
        assert_eq!(error(&|b| b[18] = 0x11), not_protocol("a frame of 1114115 bytes"));
        assert_eq!(error(&|b| b.truncate(25)), "the agent's port failed: failed to fill whole buffer");
    }

    #[test]
    fn header_is_that_of_protocol_h() {
        let text = include_str!("../../../../guests/agent/protocol.h");
        assert!(text.contains(&format!("#define FRAME_MAGIC 0x{MAGIC:08x}u")));
        assert!(text.contains(&format!("#define FRAME_HEADER {HEADER}\n")));
        assert!(text.contains(&format!("#define PROTOCOL_VERSION {PROTOCOL_VERSION}\n")));
        assert!(text.contains(&format!("#define FRAME_CHUNK {CHUNK_MAX}\n")));
        for (code, kind) in KINDS {
            let line = format!("FRAME_{} = ", format!("{kind:?}").to_uppercase());
            let rest = &text[text.find(&line).expect("a code for each kind") + line.len()..];
            let digits = rest.split(',').next().expect("a value").trim();
            let value =
                digits.strip_prefix("0x").map_or_else(|| digits.parse(), |hex| u32::from_str_radix(hex, 16));
            assert_eq!(value.expect("a number"), code, "{kind:?}");
        }
    }
}
