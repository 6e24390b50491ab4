//! The sheet: what goes where on it, from the title down to the last row.

use super::axis::{decimal, duration};
use super::label;
use super::lane::{Lane, Part};
use super::layout::{Extent, Group, LEVELS, Mark, Preempt, Row, Start, Track};
use super::legend::Legend;
use super::palette::{self, Look};
use super::size::{GROUP, HEAD, WIDTH};
use super::svg::{BAR, Elements};

/// Pixels to the left of the time axis, for the lanes' names.
const LEFT: f64 = 76.0;
/// Pixels to the right of it.
const RIGHT: f64 = 34.0;
/// Pixels of everything.
const WHOLE: f64 = LEFT + WIDTH as f64 + RIGHT;
/// Pixels that a character of text takes, about.
const CHARACTER: f64 = 6.5;
/// A wait has its reason's letter in it from this length on, in pixels.
const LETTERED: f64 = 18.0;
/// For text of less weight.
const FAINT: &str = "fill=\"#666666\"";

/// The picture as an SVG file.
pub(super) fn write(title: &str, lanes: &[Lane<'_>], rows: &[Row<'_>], legend: &Legend) -> String {
    let mut sheet = Sheet { svg: Elements::default(), y: 0.0 };
    sheet.head(title, lanes);
    if !lanes.is_empty() {
        sheet.statistics(lanes);
        sheet.legend(legend);
    }
    for row in rows {
        sheet.row(row);
    }
    sheet.svg.file(WHOLE, sheet.y + 16.0)
}

/// What is on it, and how far down it reaches in pixels.
struct Sheet {
    svg: Elements,
    y: f64,
}

impl Sheet {
    fn head(&mut self, title: &str, lanes: &[Lane<'_>]) {
        self.svg.text(16.0, 30.0, "font-size=\"18\" font-weight=\"bold\"", title);
        let times = || lanes.iter().flat_map(|lane| lane.entries.iter().map(|entry| entry.at));
        let entries = count(times().count(), "entry", "entries");
        let about = match times().min().zip(times().max()) {
            None => format!("{entries} of the dispatch trace log"),
            Some((first, last)) => format!(
                "{entries} of the dispatch trace log, on {}, in {}; times are since the first dispatch, {} s after boot",
                count(lanes.len(), "CPU", "CPUs"),
                duration(last - first),
                label::seconds(first)
            ),
        };
        self.svg.text(16.0, 50.0, "font-size=\"12\"", &about);
        self.y = 62.0;
    }

    /// A table: a line for each lane.
    fn statistics(&mut self, lanes: &[Lane<'_>]) {
        const COLUMNS: [f64; 5] = [16.0, 150.0, 330.0, 510.0, 690.0];
        self.y += 14.0;
        let right = format!("text-anchor=\"end\" {FAINT}");
        let y = self.y;
        self.svg.text(COLUMNS[0], y, FAINT, "mean / max");
        self.svg.text(COLUMNS[1], y, &right, "entries");
        for (part, x) in Part::ALL.into_iter().zip(&COLUMNS[2..]) {
            self.svg.text(*x, y, &right, part.name());
        }
        for lane in lanes {
            self.y += 16.0;
            let y = self.y;
            self.svg.text(COLUMNS[0], y, "font-weight=\"bold\"", &lane.name());
            self.svg.text(COLUMNS[1], y, "text-anchor=\"end\"", &lane.entries.len().to_string());
            for (part, x) in Part::ALL.into_iter().zip(&COLUMNS[2..]) {
                let (mean, max) = lane.mean_and_max(part);
                let text = format!("{} / {}", duration(mean), duration(max));
                self.svg.text(*x, y, "text-anchor=\"end\"", &text);
            }
        }
        self.y += 12.0;
    }

    fn legend(&mut self, legend: &Legend) {
        let reason = |(name, count): &(String, usize)| format!("{name} ({count})");
        let dispatch =
            legend.dispatch.iter().map(|item| (Sample::Head(palette::dispatch(&item.0)), reason(item)));
        self.samples("dispatched", dispatch);
        let preempt =
            legend.preempt.iter().map(|item| (Sample::Bar(palette::preempt(&item.0)), reason(item)));
        self.samples("preempted", preempt);
        let parts = Part::ALL.map(|part| (Sample::Part(part), part.name().to_owned()));
        let others = [
            (Sample::Run, "running".to_owned()),
            (Sample::Clip, "cut off: it is longer than the time since the entry before".to_owned()),
            (Sample::Group, "n more dispatches, too close together for a head each".to_owned()),
        ];
        self.samples("waits", parts.into_iter().chain(others));
        self.y += 10.0;
    }

    /// A line of the legend, or more where it is full.
    fn samples(&mut self, name: &str, samples: impl Iterator<Item = (Sample, String)>) {
        const INDENT: f64 = 100.0;
        self.y += 20.0;
        self.svg.text(16.0, self.y + 4.0, FAINT, name);
        let mut x = INDENT;
        for (sample, text) in samples {
            let width = 48.0 + CHARACTER * text.chars().count() as f64;
            if x > INDENT && x + width > WHOLE {
                x = INDENT;
                self.y += 20.0;
            }
            self.sample(x, sample);
            self.svg.text(x + 28.0, self.y + 4.0, "", &text);
            x += width;
        }
    }

    fn sample(&mut self, x: f64, sample: Sample) {
        let (bar, y, top) = (Extent { from: x, to: x + 22.0 }, self.y, self.y - BAR / 2.0);
        let plain = palette::preempt("unused");
        match sample {
            Sample::Head(look) => self.svg.dispatch_head(x + 15.0, y, look),
            Sample::Bar(look) => {
                self.svg.part(Part::WaitingToReady, bar, top, look);
                self.svg.letter(x + 11.0, y, look);
            }
            Sample::Part(part) => self.svg.part(part, bar, top, plain),
            Sample::Run => self.svg.run(bar, top),
            Sample::Clip => {
                self.svg.part(Part::WaitingToReady, bar, top, plain);
                self.svg.clip(bar.from, top);
            }
            Sample::Group => self.svg.group_head(x + 12.0, y, "+n"),
        }
    }

    fn row(&mut self, row: &Row<'_>) {
        if row.left_out > 0 {
            self.y += 16.0;
            let text = format!("no dispatch for {}: left out", duration(row.left_out));
            self.svg.text(LEFT, self.y, &format!("{FAINT} font-style=\"italic\""), &text);
        }
        let top = self.y + 32.0;
        let height = |track: &Track<'_>| track.levels as f64 * f64::from(HEAD) + BAR + 13.0;
        let bottom = top + row.tracks.iter().map(height).sum::<f64>();
        self.svg.text(16.0, top - 6.0, FAINT, row.unit.name);
        for tick in &row.ticks {
            let x = LEFT + tick.x;
            self.svg.grid(x, top - 3.0, bottom);
            // A long number at the left end would run into the unit.
            if x - CHARACTER * tick.text.len() as f64 / 2.0 > 36.0 {
                self.svg.text(x, top - 6.0, &format!("text-anchor=\"middle\" {FAINT}"), &tick.text);
            }
        }
        self.svg.axis(placed(Extent { from: 0.0, to: f64::from(WIDTH) }), top);
        self.y = top;
        for track in &row.tracks {
            let bar = self.y + height(track) - BAR - 6.0;
            self.svg.text(LEFT - 8.0, bar + 12.0, "text-anchor=\"end\" font-weight=\"bold\"", &track.name);
            self.track(track, bar);
            self.y += height(track);
        }
    }

    fn track(&mut self, track: &Track<'_>, bar: f64) {
        for run in &track.runs {
            self.svg.open(&format!("{} ran for {} us", track.name, decimal(run.length, 1000)));
            self.svg.run(placed(run.extent), bar);
            self.svg.close();
        }
        // From the last to the first: a stem stays whole where the next wait begins at it, and its
        // head where the next one's, higher up, has its stem.
        for mark in track.marks.iter().rev() {
            self.svg.open(&format!("{}\n{}", track.name, label::entry(mark.entry)));
            self.mark(mark, bar);
            self.svg.close();
        }
        for group in &track.groups {
            self.group(track, group, bar);
        }
    }

    fn mark(&mut self, mark: &Mark<'_>, bar: f64) {
        let stem = mark.stem.map(|stem| (LEFT + stem.x, stem.level));
        if let Some(preempt) = &mark.preempt {
            self.preempt(preempt, bar, palette::preempt(&mark.entry.record.preempt));
            let start = preempt.parts.first().map(|(_, extent)| placed(*extent).from);
            if let (Start::Clipped, Some(x)) = (preempt.start, start.or(stem.map(|(x, _)| x))) {
                self.svg.clip(x, bar);
            }
        }
        if let Some((x, level)) = stem {
            let look = palette::dispatch(&mark.entry.record.dispatch);
            let head = head_centre(level.unwrap_or(LEVELS), bar);
            self.svg.stem(x, bar, head, look);
            if level.is_some() {
                self.svg.dispatch_head(x, head, look);
            }
        }
    }

    fn preempt(&mut self, preempt: &Preempt, bar: f64, look: Look) {
        for (part, extent) in &preempt.parts {
            let extent = placed(*extent);
            self.svg.part(*part, extent, bar, look);
            if *part == Part::WaitingToReady && extent.to - extent.from >= LETTERED {
                self.svg.letter(f64::midpoint(extent.from, extent.to), bar + BAR / 2.0, look);
            }
        }
    }

    fn group(&mut self, track: &Track<'_>, group: &Group<'_>, bar: f64) {
        let labels: Vec<String> = group.entries.iter().map(|entry| label::entry(entry)).collect();
        self.svg.open(&format!("{}\n{}", track.name, labels.join("\n\n")));
        let (x, y) = (LEFT + group.x, head_centre(LEVELS, bar));
        match &group.entries[..] {
            [entry] => self.svg.dispatch_head(x, y, palette::dispatch(&entry.record.dispatch)),
            entries => {
                self.svg.group_head(x + f64::from(GROUP) / 2.0 - 1.0, y, &format!("+{}", entries.len()))
            }
        }
        self.svg.close();
    }
}

/// What stands in front of a text of the legend.
enum Sample {
    Head(Look),
    Bar(Look),
    Part(Part),
    Run,
    Clip,
    Group,
}

/// Where on the sheet an extent of the time axis is.
fn placed(extent: Extent) -> Extent {
    Extent { from: LEFT + extent.from, to: LEFT + extent.to }
}

/// The middle of a head above the bar that begins at `bar`.
fn head_centre(level: usize, bar: f64) -> f64 {
    bar - 8.0 - level as f64 * f64::from(HEAD)
}

fn count(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
