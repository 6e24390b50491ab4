//! What a guest has recorded, decoded on the host.

use std::fs;
use std::io;
use std::process::Command;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::abort::{Abort, HarnessError};
use vm::process::output;
use vm::{Request, Session, StepEnd, Work};

/// The largest recording, in bytes.
const DATA_MAX: u32 = 256 << 20;
/// How long the host's perf may take.
const TIMEOUT: Duration = Duration::from_secs(60);
const KALLSYMS: &str = "kallsyms";

/// What perf printed on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostOutput {
    /// The command line.
    pub command: String,
    /// The directory that it ran in, with the data.
    pub dir: Utf8PathBuf,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its exit status when that is not 0, with its standard error; `None` for 0.
    pub failed: Option<String>,
}

/// What has been copied out of a guest.
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

    /// Copy recorded data and the kernel's symbols out of the guest, into `to`, as far as they are not
    /// there.
    ///
    /// # Errors
    /// When a file cannot be read in the guest, or cannot be written here.
    pub(super) fn fetch(
        &mut self,
        session: &mut Session,
        cwd: &str,
        data: &str,
        to: &Utf8Path,
    ) -> Result<(), Abort> {
        if !self.symbols {
            copy(session, cwd, "/proc/kallsyms", &to.join(KALLSYMS))?;
            self.symbols = true;
        }
        if self.data.as_deref() != Some(data) {
            copy(session, cwd, data, &to.join(file_name(data)))?;
            self.data = Some(data.to_owned());
        }
        Ok(())
    }
}

fn copy(session: &mut Session, cwd: &str, path: &str, to: &Utf8Path) -> Result<(), Abort> {
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
    Ok(kept.map_err(|error| HarnessError::file("write", to, error))?)
}

/// Run perf on data that was [copied](Copies::fetch) into `dir`.
///
/// # Errors
/// When perf cannot be started or takes too long.
pub(super) fn on_host(
    perf: &Utf8Path,
    arguments: &[String],
    data: &str,
    dir: &Utf8Path,
) -> io::Result<HostOutput> {
    let mut command = Command::new(perf);
    command.args(arguments).args(["-i", data, "--kallsyms", KALLSYMS]).current_dir(dir);
    // Nothing of the user's settings, language or time zone may show.
    command.env("PERF_CONFIG", "/dev/null").env("HOME", dir).env("LC_ALL", "C").env("TZ", "UTC");
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let shown = vm::process::shell_line(words.map(|word| word.to_string_lossy()));
    let done = output(command, TIMEOUT)?;
    let failed = (!done.status.success()).then(|| format!("{}\n{}", done.status, done.stderr.trim_end()));
    Ok(HostOutput { command: shown, dir: dir.to_owned(), stdout: done.stdout, failed })
}

/// The command that decodes the data in the guest.
pub(super) fn in_guest(arguments: &[String], data: &str) -> String {
    let words = ["perf"].into_iter().chain(arguments.iter().map(String::as_str)).chain(["-i", data]);
    vm::process::shell_line(words)
}

/// The name of the data's copy. The guest's command names the data by its path, which perf prints:
/// where it is more than a name, both cannot print the same.
pub(super) fn file_name(data: &str) -> &str {
    data.rsplit('/').next().unwrap_or(data)
}
