//! Files that are copied into a guest and out of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::str::FromStr;

use camino::{Utf8Path, Utf8PathBuf};

use crate::cli::error::CommandError;

/// Where files go that are given without a path.
const PUT_DIRECTORY: &str = "/tmp";

/// A file that is copied, and where to, when that is given.
#[derive(Debug, Clone)]
pub(super) struct Copied {
    from: Utf8PathBuf,
    to: Option<Utf8PathBuf>,
}

/// A file for the guest.
pub(super) struct GuestFile {
    /// Its path there.
    pub(super) path: Utf8PathBuf,
    pub(super) content: Vec<u8>,
    pub(super) is_program: bool,
}

impl FromStr for Copied {
    type Err = String;

    fn from_str(text: &str) -> Result<Copied, String> {
        let (from, to) = match text.split_once(':') {
            Some((from, to)) => (from, Some(to)),
            None => (text, None),
        };
        if from.is_empty() || to == Some("") {
            return Err("a path is empty".to_owned());
        }
        Ok(Copied { from: from.into(), to: to.map(Utf8PathBuf::from) })
    }
}

impl Copied {
    /// Read the host's file, for the guest.
    pub(super) fn read(&self) -> Result<GuestFile, CommandError> {
        let from = &self.from;
        let content = fs::read(from).map_err(|error| CommandError::file("read", from, error))?;
        let metadata = fs::metadata(from).map_err(|error| CommandError::file("look at", from, error))?;
        let is_program = metadata.permissions().mode() & 0o111 != 0;
        let name = from.file_name().unwrap_or("file");
        let path = self.to.clone().unwrap_or_else(|| Utf8Path::new(PUT_DIRECTORY).join(name));
        Ok(GuestFile { path, content, is_program })
    }

    /// The guest's file.
    pub(super) fn from(&self) -> &Utf8Path {
        &self.from
    }

    /// Write what the guest's file holds, on the host.
    pub(super) fn write(&self, content: &[u8]) -> Result<(), CommandError> {
        let file = self.to.clone().unwrap_or_else(|| self.from.file_name().unwrap_or("file").into());
        fs::write(&file, content).map_err(|error| CommandError::file("write", &file, error))
    }
}
