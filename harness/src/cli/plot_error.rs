//! Why `goldtrace dtl-plot` draws no picture, and what to give it instead.

use std::io;

use camino::Utf8PathBuf;

use formats::dispatch_log::DumpEntry;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlotError {
    #[error("failed to read capture `{capture}`: {source}")]
    Read { capture: Utf8PathBuf, source: io::Error },
    #[error("`{0}` is the capture itself\nhelp: give another file with -o")]
    OutputIsCapture(Utf8PathBuf),
    #[error("failed to read capture `{capture}`: {why}\nhelp: give what `perf script` printed, unchanged")]
    Invalid { capture: Utf8PathBuf, why: String },
    #[error("`{capture}` has no vpa-dtl sample in its {lines} lines{}", seen.help())]
    NoSample { capture: Utf8PathBuf, lines: usize, seen: Seen },
    #[error("failed to write the picture of `{capture}` to `{output}`: {source}")]
    Write { capture: Utf8PathBuf, output: Utf8PathBuf, source: io::Error },
}

/// What a text without samples is.
#[derive(Debug)]
pub(super) enum Seen {
    /// Not a dump of the log.
    Other,
    /// What `perf report -D` prints, with this many entries.
    Dump(usize),
    /// The same, and not readable.
    BrokenDump(String),
}

impl Seen {
    pub(super) fn of(text: &[u8]) -> Seen {
        // A dump with a line that cannot be read is a dump all the same.
        match formats::dispatch_log::read_dump(text) {
            Ok(records) => {
                let entries = records.iter().flat_map(|record| &record.entries);
                match entries.filter(|entry| matches!(entry, DumpEntry::Dispatch { .. })).count() {
                    0 => Seen::Other,
                    count => Seen::Dump(count),
                }
            }
            Err(error) => Seen::BrokenDump(error.to_string()),
        }
    }

    fn help(&self) -> String {
        let instead = "help: give what `perf script` prints of the same recording";
        match self {
            Seen::Other => "\nhelp: record with `perf record -e vpa_dtl/dtl_all/` and give what `perf script` prints then".to_owned(),
            Seen::Dump(count) => {
                format!(": it is what `perf report -D` prints, whose {count} entries have no times\n{instead}")
            }
            Seen::BrokenDump(why) => {
                format!(": it is what `perf report -D` prints, whose entries have no times ({why})\n{instead}")
            }
        }
    }
}
