//! What a guest has recorded, decoded once more in another guest.
//!
//! Nothing on the host reads a recording, which a hostile kernel may have made: it is copied from guest to guest as
//! bytes. A file of the host has it besides, for a person.

use std::fs;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use guest::GuestName;
use vm::process::shell_line;
use vm::{Answer, Request, Session, StepEnd, Work};

use super::abort::{Abort, HarnessError};
use super::decoder::Decoder;
use super::problem::excerpt;
use crate::case::Step;

/// The largest recording, in bytes. Those of the cases have at most a few hundred thousand.
const DATA_MAX: u32 = 16 << 20;
/// How long a copy may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The kernel's symbols, in the recorded guest and in the one that decodes.
const KALLSYMS: [&str; 2] = ["/proc/kallsyms", "/kallsyms"];

/// What perf printed in the other guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecondDecoding {
    /// The guest.
    pub guest: GuestName,
    /// The command line.
    pub command: String,
    /// The directory on the host with copies of the data and of the kernel's symbols.
    pub dir: Utf8PathBuf,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// How it ended when that is not with exit status 0, with the end of its standard error.
    pub failed: Option<String>,
}

/// What the other guest has of the recorded one.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// The kernel's symbols, which take the guest longer to print than anything else here.
    symbols: bool,
    /// The data that was copied last, unless a command has run since.
    data: Option<String>,
}

impl Copies {
    /// A command runs in the guest: data may change.
    pub(super) fn outdate(&mut self) {
        self.data = None;
    }

    /// Copy recorded data and the kernel's symbols into the other guest, as far as they are not there. The data gets
    /// the same path, which perf prints. `to` keeps copies.
    ///
    /// # Errors
    /// When a file cannot be read in one guest or written in the other.
    pub(super) fn copy(
        &mut self,
        session: &mut Session,
        decoder: &mut Decoder,
        cwd: &str,
        data: &str,
        to: &Utf8Path,
    ) -> Result<(), Abort> {
        if !self.symbols {
            let [from, path] = KALLSYMS;
            let symbols = read(session, cwd, from, &to.join("kallsyms"))?;
            decoder.write(cwd, path, &symbols)?;
            self.symbols = true;
        }
        if self.data.as_deref() != Some(data) {
            let recording = read(session, cwd, data, &to.join(file_name(data)))?;
            decoder.write(cwd, data, &recording)?;
            self.data = Some(data.to_owned());
        }
        Ok(())
    }
}

/// A file of the recorded guest, which is kept in `to`.
fn read(session: &mut Session, cwd: &str, path: &str, to: &Utf8Path) -> Result<Vec<u8>, Abort> {
    let request = Request {
        work: Work::Read(path.to_owned()),
        cwd: cwd.to_owned(),
        timeout: TIMEOUT,
        output_limit: DATA_MAX,
    };
    let answer = session.request(&request)?;
    if answer.end != StepEnd::Exited(0) {
        return Err(HarnessError::Copy { path: path.to_owned(), end: answer.end }.into());
    }
    let kept = to.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(to, &answer.stdout));
    kept.map_err(|error| HarnessError::file("write", to, error))?;
    Ok(answer.stdout)
}

/// Run perf in the other guest, on data that was [copied](Copies::copy) there.
///
/// # Errors
/// When the guest does not answer.
pub(super) fn decode(
    decoder: &mut Decoder,
    arguments: &[String],
    data: &str,
    (cwd, step): (&str, &Step),
    dir: Utf8PathBuf,
) -> Result<SecondDecoding, Abort> {
    let command = format!("{} --kallsyms {}", command(arguments, data), KALLSYMS[1]);
    let request = Request {
        work: Work::Run(command.clone()),
        cwd: cwd.to_owned(),
        timeout: step.timeout,
        output_limit: step.output_limit,
    };
    let Answer { end, stdout, stderr, .. } = decoder.request(&request)?;
    // perf that fails, floods or hangs on one architecture alone is perf's failure.
    let failed = (end != StepEnd::Exited(0)).then(|| format!("{end}{}", excerpt(&stderr)));
    Ok(SecondDecoding { guest: decoder.guest().clone(), command, dir, stdout, failed })
}

/// The command that decodes the data in the guest that has recorded it.
pub(super) fn command(arguments: &[String], data: &str) -> String {
    let words = ["perf"].into_iter().chain(arguments.iter().map(String::as_str)).chain(["-i", data]);
    shell_line(words)
}

/// The name of the data's copy on the host.
fn file_name(data: &str) -> &str {
    data.rsplit('/').next().unwrap_or(data)
}
