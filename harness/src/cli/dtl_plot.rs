//! `goldtrace dtl-plot`.

use std::fs;

use camino::Utf8PathBuf;
use clap::Args;

use super::error::CommandError;
use super::plot_error::{PlotError, Seen};
use super::status::Status;
use crate::plot;

/// Draw the dispatches and preempts of a recording of vpa_dtl
#[derive(Debug, Args)]
pub(super) struct DtlPlot {
    /// What `perf script` printed of the recording: a capture of a run, or any such file
    capture: Utf8PathBuf,
    /// Write the picture to this file, over what it holds
    #[arg(short, long, value_name = "FILE.svg")]
    output: Utf8PathBuf,
    /// Take this as the frequency of the timebase, in which waits are logged, in Hz
    #[arg(long, value_name = "HZ", default_value_t = plot::FREQUENCY, value_parser = clap::value_parser!(u64).range(1..))]
    frequency: u64,
}

impl DtlPlot {
    pub(super) fn run(&self) -> Result<Status, CommandError> {
        let count = self.draw()?;
        print_line!("{count} entries of the dispatch trace log: wrote {}", self.output)?;
        Ok(Status::Success)
    }

    /// Draw the picture; how many entries are in it.
    fn draw(&self) -> Result<usize, PlotError> {
        let DtlPlot { capture, output, frequency } = self;
        let text =
            fs::read(capture).map_err(|source| PlotError::Read { capture: capture.clone(), source })?;
        let same = |path: &Utf8PathBuf| path.canonicalize_utf8().ok();
        if same(capture).is_some_and(|capture| same(output) == Some(capture)) {
            return Err(PlotError::OutputIsCapture(output.clone()));
        }
        let records = formats::dispatch_log::read_script(&text)
            .map_err(|e| PlotError::Invalid { capture: capture.clone(), why: e.to_string() })?;
        if records.is_empty() {
            let lines = text.split_inclusive(|b| *b == b'\n').count();
            return Err(PlotError::NoSample { capture: capture.clone(), lines, seen: Seen::of(&text) });
        }
        let svg = plot::render(&records, capture.file_name().unwrap_or(capture.as_str()), *frequency);
        fs::write(output, svg).map_err(|source| PlotError::Write {
            capture: capture.clone(),
            output: output.clone(),
            source,
        })?;
        Ok(records.len())
    }
}
