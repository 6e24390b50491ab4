//! Pictures of the dispatches that a trial's captures show.

use std::fs;
use std::io;

use camino::Utf8PathBuf;
use formats::Format;
use trial::{RunDir, Trial};

use super::print::note;
use super::text::ReportText;
use crate::plot;

/// Draw each capture of the trial that shows dispatches, as `plots/NAME.svg` beside `captures/`.
///
/// A picture is an extra: when one cannot be written, a warning says so, and the trial's outcome stays as it is.
pub fn draw_timelines(trial: &Trial<'_>, run: &RunDir) {
    let dir = run.trial_dir(&trial.case.id, &trial.guest.name);
    let captures = trial.case.steps.iter().filter_map(|step| step.capture.as_ref());
    for capture in captures.filter(|capture| capture.format == Format::PerfScript) {
        let picture = dir.plot(&capture.name);
        let title = format!("{}: {}", trial.case.id, capture.name);
        if let Err(error) = draw(&dir.capture(&capture.name), &title, &picture) {
            note(&ReportText::of(format_args!("warning: failed to draw `{picture}`: {error}\n")));
        }
    }
}

fn draw(capture: &Utf8PathBuf, title: &str, picture: &Utf8PathBuf) -> io::Result<()> {
    let text = match fs::read(capture) {
        // The trial did not get as far as this capture.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        read => read?,
    };
    match formats::dispatch_log::read_script(&text) {
        Ok(records) if !records.is_empty() => {
            fs::write(picture, plot::render(&records, title, plot::FREQUENCY))
        }
        // A capture that cannot be read is a failure of its trial, which says so.
        _ => Ok(()),
    }
}
