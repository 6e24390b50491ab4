//! SHA-256 of texts and files.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};

use camino::Utf8Path;
use sha2::Digest as _;

/// A SHA-256, as 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest(String);

impl Digest {
    /// All 64 digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first 24 digits, 96 bits: enough to name a product.
    pub fn short(&self) -> &str {
        &self.0[..24]
    }
}

fn hex(bytes: &[u8]) -> Digest {
    Digest(bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all");
        text
    }))
}

/// The digest of a text.
pub fn text_digest(text: &str) -> Digest {
    bytes_digest(text.as_bytes())
}

/// The digest of bytes.
pub fn bytes_digest(bytes: &[u8]) -> Digest {
    hex(&sha2::Sha256::digest(bytes))
}

/// The digest of a file's bytes.
///
/// # Errors
/// When the file cannot be read.
pub fn file_digest(path: &Utf8Path) -> io::Result<Digest> {
    let mut file = File::open(path)?;
    let mut state = sha2::Sha256::new();
    let mut buffer = vec![0; 1 << 17];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&state.finalize())),
            n => state.update(&buffer[..n]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_of_the_standard_vector() {
        let digest = text_digest("abc");
        assert_eq!(digest.as_str(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(digest.short(), "ba7816bf8f01cfea414140de");
    }
}
