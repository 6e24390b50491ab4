//! What goes where, in pixels.
//!
//! A row has a time axis and under it each CPU's lane. A lane is a bar: thin where the CPU ran, thick
//! and coloured where it was preempted. Each dispatch is a stem in the bar and a head on it, and heads
//! that would overlap are put higher, on three levels; those for which there is no level left share a
//! counting head on a fourth. Their stems are all drawn.

use super::axis::{Tick, Unit, ticks};
use super::lane::{Entry, Lane, Ns, Part};
use super::size::{GROUP, HEAD};
use super::window::Window;

/// Levels of heads that stand for one dispatch.
pub(super) const LEVELS: usize = 3;
/// A part of a wait that is shorter than this is drawn as long, in pixels, where its bar has room.
const LEAST: f64 = 2.0;

/// A row of the picture.
#[derive(Debug)]
pub(super) struct Row<'l> {
    /// Nanoseconds between this row and the one before that are left out.
    pub(super) left_out: Ns,
    pub(super) unit: Unit,
    pub(super) ticks: Vec<Tick>,
    pub(super) tracks: Vec<Track<'l>>,
}

/// A lane's part of a row.
#[derive(Debug)]
pub(super) struct Track<'l> {
    pub(super) name: String,
    /// Levels that heads stand on.
    pub(super) levels: usize,
    pub(super) runs: Vec<Run>,
    /// In order of time.
    pub(super) marks: Vec<Mark<'l>>,
    pub(super) groups: Vec<Group<'l>>,
}

/// What of an entry is in a row.
#[derive(Debug)]
pub(super) struct Mark<'l> {
    pub(super) entry: &'l Entry<'l>,
    pub(super) preempt: Option<Preempt>,
    /// `None` when it is dispatched in a later row.
    pub(super) stem: Option<Stem>,
}

/// The dispatch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stem {
    pub(super) x: f64,
    /// The level of its head, 0 is the lowest; `None` when it shares a counting head.
    pub(super) level: Option<usize>,
}

/// A counting head, for dispatches for which there was no level.
#[derive(Debug)]
pub(super) struct Group<'l> {
    pub(super) x: f64,
    pub(super) entries: Vec<&'l Entry<'l>>,
}

/// A horizontal extent from the axis's left end, in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Extent {
    pub(super) from: f64,
    pub(super) to: f64,
}

/// A stretch in which the CPU ran, from one entry up to the preemption of the next, and its whole
/// length.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) extent: Extent,
    pub(super) length: Ns,
}

/// The part of a preempted stretch that is in a row.
#[derive(Debug)]
pub(super) struct Preempt {
    pub(super) parts: Vec<(Part, Extent)>,
    pub(super) start: Start,
}

/// What the left end of a preempted stretch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// Where the preemption began.
    Whole,
    /// Cut off at the entry before: the waits say more.
    Clipped,
    /// Cut off by the row's end.
    Continued,
}

/// All rows.
pub(super) fn rows<'l>(lanes: &'l [Lane<'l>], windows: &[Window]) -> Vec<Row<'l>> {
    let first = lanes.iter().filter_map(|lane| Some(lane.entries.first()?.at)).min().unwrap_or(0);
    let mut end = None;
    let unit = Unit::of(windows, first);
    let row = |window: &Window| {
        let left_out = window.from - end.replace(window.to).unwrap_or(window.from);
        let ticks = ticks(*window, first, unit);
        let tracks = lanes.iter().map(|lane| track(lane, *window)).collect();
        Row { left_out, unit, ticks, tracks }
    };
    windows.iter().map(row).collect()
}

fn track<'l>(lane: &'l Lane<'l>, window: Window) -> Track<'l> {
    let first = lane.entries.partition_point(|entry| entry.at < window.from);
    // The entry after the row may have waited in it.
    let after = lane.entries.partition_point(|entry| entry.at < window.to);
    let shown = &lane.entries[first..(after + 1).min(lane.entries.len())];
    let run = |entry: &Entry<'_>| {
        let (from, to) = (entry.previous?, entry.preempted());
        Some(Run { extent: extent(from, to, window)?, length: to - from })
    };
    let mut heads = Heads::default();
    let marks = shown.iter().map(|entry| {
        let stem = window.contains(entry.at).then(|| heads.stem(entry, window.x(entry.at)));
        Mark { entry, preempt: preempt(entry, window), stem }
    });
    let marks: Vec<_> = marks.filter(|mark| mark.stem.is_some() || mark.preempt.is_some()).collect();
    let runs = shown.iter().filter_map(run).collect();
    Track { name: lane.name(), levels: heads.levels, runs, marks, groups: heads.groups }
}

/// What of a stretch of time is in the window; `None` when that is nothing.
fn extent(from: Ns, to: Ns, window: Window) -> Option<Extent> {
    let (from, to) = (from.max(window.from), to.min(window.to));
    (from < to).then(|| Extent { from: window.x(from), to: window.x(to) })
}

fn preempt(entry: &Entry<'_>, window: Window) -> Option<Preempt> {
    let parts = entry.parts().into_iter();
    let mut parts: Vec<(Part, Extent)> =
        parts.filter_map(|(part, from, to)| Some((part, extent(from, to, window)?))).collect();
    widen(&mut parts);
    let start = match entry.preempted() {
        begun if begun < window.from => Start::Continued,
        _ if entry.excess() > 0 => Start::Clipped,
        _ => Start::Whole,
    };
    // A wait for which there is no room at all is marked too.
    let marked = start == Start::Clipped && window.contains(entry.at);
    (!parts.is_empty() || marked).then_some(Preempt { parts, start })
}

/// Make parts that are too short to be seen longer, at the cost of the longest.
fn widen(parts: &mut [(Part, Extent)]) {
    let length = |extent: &Extent| extent.to - extent.from;
    let Some(end) = parts.last().map(|(_, extent)| extent.to) else { return };
    let mut lengths: Vec<f64> = parts.iter().map(|(_, extent)| length(extent)).collect();
    let longest = (0..lengths.len()).max_by(|a, b| lengths[*a].total_cmp(&lengths[*b])).unwrap_or(0);
    for at in (0..lengths.len()).filter(|at| *at != longest) {
        let missing = (LEAST - lengths[at]).max(0.0);
        if lengths[longest] - missing >= 2.0 * LEAST {
            lengths[at] += missing;
            lengths[longest] -= missing;
        }
    }
    let mut to = end;
    for ((_, extent), length) in parts.iter_mut().zip(lengths).rev() {
        *extent = Extent { from: to - length, to };
        to -= length;
    }
}

/// The places of heads so far.
#[derive(Default)]
struct Heads<'l> {
    /// Where each level's last head stands.
    last: [Option<f64>; LEVELS],
    levels: usize,
    groups: Vec<Group<'l>>,
}

impl<'l> Heads<'l> {
    /// Find a place for the next dispatch's head.
    fn stem(&mut self, entry: &'l Entry<'l>, x: f64) -> Stem {
        let is_near = |last: Option<f64>, width: u32| last.is_some_and(|last| x - last < f64::from(width));
        let level = self.last.iter().position(|last| !is_near(*last, HEAD));
        match (level, self.groups.last_mut()) {
            (Some(level), _) => self.last[level] = Some(x),
            (None, Some(group)) if is_near(Some(group.x), GROUP) => group.entries.push(entry),
            (None, _) => self.groups.push(Group { x, entries: vec![entry] }),
        }
        self.levels = self.levels.max(1 + level.unwrap_or(LEVELS));
        Stem { x, level }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::lane::lanes;
    use crate::plot::size::WIDTH;
    use crate::plot::testing::record;
    use formats::dispatch_log::DispatchSample;

    /// Looks at the one track of a window in which a nanosecond is a pixel.
    fn on_track(records: &[DispatchSample], from: Ns, look: impl FnOnce(&Track<'_>)) {
        let lanes = lanes(records, 1_000_000_000);
        let window = Window { from, to: from + Ns::from(WIDTH) };
        look(&rows(&lanes, &[window])[0].tracks[0]);
    }

    #[test]
    fn cpu_runs_between_a_dispatch_and_the_next_wait() {
        let records = [record(0, 100, [30, 0, 0]), record(0, 300, [50, 20, 10])];
        on_track(&records, 0, |track| {
            let runs: Vec<_> = track.runs.iter().map(|run| (run.extent, run.length)).collect();
            assert_eq!(runs, [(Extent { from: 100.0, to: 220.0 }, 120)]);
            let preempt = track.marks[1].preempt.as_ref().expect("it waited");
            assert_eq!(preempt.start, Start::Whole);
            let ends: Vec<_> = preempt.parts.iter().map(|(_, extent)| (extent.from, extent.to)).collect();
            assert_eq!(ends, [(220.0, 270.0), (270.0, 290.0), (290.0, 300.0)]);
        });
    }

    #[test]
    fn wait_is_cut_off_at_the_entry_before_and_at_the_row() {
        let records = [record(0, 100, [900, 0, 0]), record(0, 300, [900, 0, 0]), record(0, 300, [1, 0, 0])];
        on_track(&records, 0, |track| {
            let starts: Vec<_> =
                track.marks.iter().map(|mark| mark.preempt.as_ref().expect("it waited").start).collect();
            assert_eq!(starts, [Start::Continued, Start::Clipped, Start::Clipped]);
            assert!(track.marks[2].preempt.as_ref().is_some_and(|preempt| preempt.parts.is_empty()));
            assert!(track.runs.is_empty());
        });
    }

    #[test]
    fn wait_is_shown_in_each_row_that_it_touches() {
        let records = [record(0, 100, [0; 3]), record(0, 2000, [1000, 0, 0])];
        on_track(&records, 0, |track| {
            let mark = &track.marks[1];
            assert!(mark.stem.is_none());
            let parts = &mark.preempt.as_ref().expect("it waits").parts;
            assert_eq!(parts[0].1, Extent { from: 1000.0, to: 1200.0 });
        });
        on_track(&records, 1200, |track| {
            let mark = &track.marks[0];
            assert_eq!(mark.stem, Some(Stem { x: 800.0, level: Some(0) }));
            assert_eq!(mark.preempt.as_ref().expect("it waits").start, Start::Continued);
        });
    }

    #[test]
    fn short_part_is_visible_where_there_is_room() {
        let records = [record(0, 1000, [500, 1, 1])];
        on_track(&records, 0, |track| {
            let parts = &track.marks[0].preempt.as_ref().expect("it waited").parts;
            let ends: Vec<_> = parts.iter().map(|(_, extent)| (extent.from, extent.to)).collect();
            assert_eq!(ends, [(498.0, 996.0), (996.0, 998.0), (998.0, 1000.0)]);
        });
    }

    #[test]
    fn heads_that_would_overlap_stand_higher_and_then_share_one() {
        let times = [100, 101, 102, 103, 104, 113, 140, 400];
        let records = times.map(|time| record(0, time, [0; 3]));
        on_track(&records, 0, |track| {
            let levels: Vec<_> = track.marks.iter().map(|mark| mark.stem.and_then(|s| s.level)).collect();
            let expected = [Some(0), Some(1), Some(2), None, None, Some(0), Some(0), Some(0)];
            assert_eq!(levels, expected);
            let groups: Vec<_> = track.groups.iter().map(|group| (group.x, group.entries.len())).collect();
            assert_eq!((groups, track.levels), (vec![(103.0, 2)], LEVELS + 1));
        });
    }
}
