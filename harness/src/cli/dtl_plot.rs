//! `goldtrace dtl-plot`.

use std::fs;

use camino::Utf8PathBuf;
use clap::Args;

use super::status::{CommandError, Status};
use crate::plot;
use dtl::{self, DumpEntry};

/// Draw the dispatches and preempts of a recording of vpa_dtl.
#[derive(Debug, Args)]
pub(super) struct DtlPlot {
    /// What `perf script` has printed of the recording: a capture of a run, or any such file
    capture: Utf8PathBuf,
    /// The picture to write; a file that is there is written over
    #[arg(short, long, value_name = "FILE.svg")]
    output: Utf8PathBuf,
    /// Frequency of the timebase, in which waits are logged, in Hz
    #[arg(long, value_name = "HZ", default_value_t = plot::FREQUENCY, value_parser = clap::value_parser!(u64).range(1..))]
    frequency: u64,
}

impl DtlPlot {
    pub(super) fn run(&self) -> Result<Status, CommandError> {
        let DtlPlot { capture, output, frequency } = self;
        let text = fs::read(capture)
            .map_err(|e| CommandError::Usage(format!("failed to read capture `{capture}`: {e}")))?;
        let same = |path: &Utf8PathBuf| path.canonicalize_utf8().ok();
        if same(capture).is_some_and(|capture| same(output) == Some(capture)) {
            return Err(CommandError::Usage(format!(
                "`{output}` is the capture itself: give another file with -o"
            )));
        }
        let records = dtl::read_script(&text).map_err(|e| {
            CommandError::Usage(format!(
                "failed to read capture `{capture}`: {e}; give what `perf script` has printed, unchanged"
            ))
        })?;
        if records.is_empty() {
            return Err(CommandError::Usage(self.nothing_in(&text)));
        }
        let svg = plot::render(&records, capture.file_name().unwrap_or(capture.as_str()), *frequency);
        fs::write(output, svg)
            .map_err(|e| anyhow::anyhow!("failed to write the picture of `{capture}` to `{output}`: {e}"))
            .map_err(CommandError::Infrastructure)?;
        anstream::println!("{} entries of the dispatch trace log: wrote {output}", records.len());
        Ok(Status::Success)
    }

    /// Why there is no picture of such a capture.
    fn nothing_in(&self, text: &[u8]) -> String {
        let capture = &self.capture;
        let lines = text.split_inclusive(|b| *b == b'\n').count();
        let none = format!("`{capture}` has no vpa-dtl sample in its {lines} lines");
        // A dump with a line that cannot be read is a dump all the same.
        let dumped = dtl::read_dump(text).map(|records| {
            let entries = records.iter().flat_map(|record| &record.entries);
            entries.filter(|entry| matches!(entry, DumpEntry::Dispatch { .. })).count()
        });
        match dumped {
            Ok(0) => format!(
                "{none}: record with `perf record -e vpa_dtl/dtl_all/` and give what `perf script` prints then"
            ),
            Ok(entries) => format!(
                "{none}: it is what `perf report -D` prints, whose {entries} entries have no times; give what \
                 `perf script` prints of the same recording"
            ),
            Err(error) => format!(
                "{none}: it is what `perf report -D` prints, whose entries have no times ({error}); give what \
                 `perf script` prints of the same recording"
            ),
        }
    }
}
