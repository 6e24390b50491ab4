//! Which stretch of time goes into which row.
//!
//! A recording is cut where nothing happens for so long that all else would share a hundredth of the
//! width; each piece has a scale of its own. A piece wraps into as many rows of equal time as it
//! takes for most dispatches to have a place of their own. Rows without a dispatch are left out.

use super::lane::{Lane, Ns};
use super::size::{HEAD, WIDTH};

/// A gap at least this many times longer than all the rest is cut out.
const GAP: Ns = 100;
/// Rows of a lane, over all lanes.
const MOST_LANE_ROWS: usize = 240;
/// As many dispatches in a row need no more room, however close they are.
const FEW: usize = 12;
/// One dispatch in this many may be too near to the one before.
const CROWDED: usize = 10;

/// The time that a row shows: from its start until before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) from: Ns,
    pub(super) to: Ns,
}

impl Window {
    pub(super) fn contains(&self, at: Ns) -> bool {
        self.from <= at && at < self.to
    }

    pub(super) fn span(&self) -> Ns {
        self.to - self.from
    }

    /// Where a time is, in pixels from the axis's left end.
    pub(super) fn x(&self, at: Ns) -> f64 {
        (at - self.from) as f64 * f64::from(WIDTH) / self.span().max(1) as f64
    }
}

/// The rows that have dispatches, in order.
pub(super) fn windows(lanes: &[Lane<'_>]) -> Vec<Window> {
    let mut times: Vec<Ns> = lanes.iter().flat_map(|lane| lane.entries.iter().map(|e| e.at)).collect();
    times.sort_unstable();
    let mut pieces = Vec::new();
    cut(&times, &mut pieces);
    let mut windows: Vec<Window> = Vec::new();
    let ends = pieces.iter().skip(1).map(|piece| Some(piece[0])).chain([None]);
    for (piece, end) in pieces.iter().zip(ends) {
        let rows = row_count(piece, lanes);
        let between = (windows.last().map(|window| window.to), end);
        let whole = with_margins(piece, rows, lanes, between);
        let step = ceiling(whole.span(), rows);
        let starts = (0..rows).map(|row| whole.from + step * row);
        let all = starts.map(|from| Window { from, to: (from + step).min(whole.to) });
        windows.extend(all.filter(|window| {
            let first = piece.partition_point(|at| *at < window.from);
            piece.get(first).is_some_and(|at| window.contains(*at))
        }));
    }
    windows
}

/// The pieces of sorted times between the gaps that are cut out.
fn cut<'t>(times: &'t [Ns], pieces: &mut Vec<&'t [Ns]>) {
    let mut rest = vec![times];
    while let Some(piece) = rest.pop() {
        let [first, .., last] = piece else {
            pieces.extend((!piece.is_empty()).then_some(piece));
            continue;
        };
        let gaps = piece.windows(2).enumerate().map(|(at, pair)| (pair[1] - pair[0], at + 1));
        let (gap, at) = gaps.max().expect("there are two times");
        let others = last - first - gap;
        if others > 0 && gap > GAP * others {
            rest.extend([&piece[at..], &piece[..at]]);
        } else {
            pieces.push(piece);
        }
    }
}

/// The time to show around a piece: a part of what its first entries waited, and a little on both
/// sides, within what the pieces before and after leave.
fn with_margins(piece: &[Ns], rows: Ns, lanes: &[Lane<'_>], between: (Option<Ns>, Option<Ns>)) -> Window {
    let (first, last) = (piece[0], piece[piece.len() - 1]);
    let row = (last - first) / rows;
    let opening = lanes.iter().filter_map(|lane| lane.entries.iter().find(|entry| entry.at >= first));
    let waited = opening.map(|entry| first - entry.preempted()).max().unwrap_or(0).max(0);
    let shown = if row == 0 { waited } else { waited.min(row / 6) };
    let margin = (row + shown) / 50 + 1;
    let (from, to) = (first - shown - margin, last + margin + 1);
    Window {
        from: between.0.map_or(from, |end| from.max(end)),
        to: between.1.map_or(to, |start| to.min(start)),
    }
}

/// How many rows a piece takes.
fn row_count(piece: &[Ns], lanes: &[Lane<'_>]) -> Ns {
    let whole = Window { from: piece[0], to: piece[piece.len() - 1] + 1 };
    let within = |lane: &Lane<'_>| -> Vec<Ns> {
        lane.entries.iter().map(|entry| entry.at).filter(|at| whole.contains(*at)).collect()
    };
    let times: Vec<Vec<Ns>> = lanes.iter().map(within).collect();
    let longest = times.iter().map(Vec::len).max().unwrap_or(0);
    let most = longest.div_ceil(FEW).clamp(1, (MOST_LANE_ROWS / lanes.len().max(1)).max(1));
    let crowded = |rows: usize| -> usize {
        let near = Ns::from(HEAD) * ceiling(whole.span(), Ns::try_from(rows).unwrap_or(1));
        let is_near = |pair: &&[Ns]| (pair[1] - pair[0]) * Ns::from(WIDTH) < near;
        times.iter().map(|times| times.windows(2).filter(is_near).count()).sum()
    };
    // A gap that no number of rows splits does not add rows.
    let bearable = crowded(most) + piece.len() / CROWDED;
    let rows = (1..=most).find(|rows| crowded(*rows) <= bearable).unwrap_or(most);
    Ns::try_from(rows).unwrap_or(1)
}

fn ceiling(dividend: Ns, divisor: Ns) -> Ns {
    (dividend + divisor - 1) / divisor
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::lane::lanes;
    use crate::plot::testing::record;
    use formats::dispatch_log::DispatchSample;

    fn of(records: &[DispatchSample]) -> Vec<Window> {
        windows(&lanes(records, 1_000_000_000))
    }

    #[test]
    fn few_dispatches_share_a_row() {
        let records: Vec<_> = (0..12).map(|n| record(n % 2, 1000 + u64::from(n), [0; 3])).collect();
        assert_eq!(of(&records), [Window { from: 999, to: 1013 }]);
        assert_eq!(of(&[]), []);
    }

    #[test]
    fn many_wrap_into_rows_of_equal_time() {
        let records: Vec<_> = (0..1000).map(|n| record(0, 1_000_000 * n, [0; 3])).collect();
        let rows = of(&records);
        assert_eq!(rows.len(), 11);
        assert!(rows.windows(2).all(|pair| pair[0].to == pair[1].from));
        // All at once stay together, however many.
        let records: Vec<_> = (0..1000).map(|_| record(0, 7, [0; 3])).collect();
        assert_eq!(of(&records).len(), 1);
    }

    #[test]
    fn long_idle_time_is_cut_out() {
        let at = |time| record(0, time, [0; 3]);
        let rows = of(&[at(100), at(200), at(u64::MAX)]);
        assert_eq!(rows.len(), 2);
        assert!(rows[0].span() < 110 && rows[1].span() < 10, "{rows:?}");
        assert_eq!(of(&[at(100), at(200), at(10_000)]).len(), 1);
        assert_eq!(of(&[at(100), at(u64::MAX)]).len(), 1);
    }

    #[test]
    fn pieces_do_not_overlap_however_long_a_wait_is() {
        let records = [
            record(0, 5_000_000_000, [4_000_000_000, 0, 0]),
            record(0, 5_000_001_000, [0; 3]),
            record(0, 5_000_001_001, [0; 3]),
        ];
        let rows = of(&records);
        assert_eq!(rows.len(), 2);
        assert!(rows[0].to <= rows[1].from && rows[0].from < 1_000_000_000, "{rows:?}");
    }
}
