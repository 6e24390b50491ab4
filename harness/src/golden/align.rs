//! Which line of a golden belongs to which line of a capture.
//!
//! The alignment is the one with the fewest lines left over, found by dynamic programming over
//! what remains between the common start and the common end. It is decided by shape alone.

use super::parse::Item;
use crate::normalise::Token;

/// A line of a capture with its tokens.
#[derive(Debug)]
pub(super) struct Line<'c> {
    pub(super) text: &'c [u8],
    pub(super) tokens: Vec<Token>,
}

/// One step of an alignment. Numbers are indices of items and lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The item and the line belong together.
    Both(usize, usize),
    /// Nothing in the capture belongs to the item.
    ItemOnly(usize),
    /// Nothing in the golden belongs to the line.
    LineOnly(usize),
}

/// The largest table; beyond it, what remains is told as one replaced block.
const CELLS_MAX: usize = 1 << 24;

/// One row of the table: an item that comes once, or any number of times.
#[derive(Debug, Clone, Copy)]
struct Slot {
    item: usize,
    many: bool,
}

pub(super) fn align(items: &[Item], lines: &[Line<'_>]) -> Vec<Step> {
    let slots = slots(items);
    let fits = |slot: usize, line: usize| {
        items[slots[slot].item].pattern.shape(lines[line].text, &lines[line].tokens).is_some()
    };
    // A repeated line may take any number of lines, so the common start and end stop before one.
    let head = (0..slots.len().min(lines.len())).take_while(|at| !slots[*at].many && fits(*at, *at)).count();
    let (slots_left, lines_left) = (slots.len() - head, lines.len() - head);
    let tail = (0..slots_left.min(lines_left))
        .take_while(|at| {
            let slot = slots.len() - 1 - at;
            !slots[slot].many && fits(slot, lines.len() - 1 - at)
        })
        .count();
    let middle_slots = head..slots.len() - tail;
    let middle_lines = head..lines.len() - tail;
    let mut steps: Vec<Step> = (0..head).map(|at| Step::Both(slots[at].item, at)).collect();
    steps.extend(middle(&slots, middle_slots.clone(), middle_lines.clone(), fits));
    steps.extend((0..tail).map(|at| Step::Both(slots[middle_slots.end + at].item, middle_lines.end + at)));
    steps
}

/// A line that comes at least N times is N lines that come once and one that comes any number of
/// times.
fn slots(items: &[Item]) -> Vec<Slot> {
    let mut slots = Vec::new();
    for (item, Item { repeat, .. }) in items.iter().enumerate() {
        let once = repeat.unwrap_or(1);
        slots.extend(std::iter::repeat_n(Slot { item, many: false }, once));
        if repeat.is_some() {
            slots.push(Slot { item, many: true });
        }
    }
    slots
}

fn middle(
    slots: &[Slot],
    rows: std::ops::Range<usize>,
    columns: std::ops::Range<usize>,
    fits: impl Fn(usize, usize) -> bool,
) -> Vec<Step> {
    let (n, m) = (rows.len(), columns.len());
    let width = m + 1;
    if (n + 1).saturating_mul(width) > CELLS_MAX {
        let items = rows.filter(|row| !slots[*row].many).map(|row| Step::ItemOnly(slots[row].item));
        return items.chain(columns.map(Step::LineOnly)).collect();
    }
    // cost[i][j]: lines left over when slots from i and lines from j on are aligned.
    let mut cost = vec![0_u32; (n + 1) * width];
    let mut fit = vec![false; (n + 1) * width];
    for i in (0..=n).rev() {
        for j in (0..=m).rev() {
            let at = i * width + j;
            if i == n {
                cost[at] = u32::try_from(m - j).unwrap_or(u32::MAX);
                continue;
            }
            let slot = slots[rows.start + i];
            let skip = cost[at + width] + u32::from(!slot.many);
            if j == m {
                cost[at] = skip;
                continue;
            }
            fit[at] = fits(rows.start + i, columns.start + j);
            let take = if !fit[at] {
                u32::MAX
            } else if slot.many {
                cost[at + 1]
            } else {
                cost[at + width + 1]
            };
            cost[at] = take.min(skip).min(cost[at + 1] + 1);
        }
    }
    let mut steps = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < n || j < m {
        let at = i * width + j;
        let line = columns.start + j;
        if i == n {
            steps.push(Step::LineOnly(line));
            j += 1;
            continue;
        }
        let slot = slots[rows.start + i];
        let next = if slot.many { at + 1 } else { at + width + 1 };
        if j < m && fit[at] && cost[at] == cost[next] {
            steps.push(Step::Both(slot.item, line));
            j += 1;
            i += usize::from(!slot.many);
        } else if cost[at] == cost[at + width] + u32::from(!slot.many) {
            if !slot.many {
                steps.push(Step::ItemOnly(slot.item));
            }
            i += 1;
        } else {
            steps.push(Step::LineOnly(line));
            j += 1;
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::super::parse::Golden;
    use super::*;
    use crate::normalise::Format;

    fn steps(golden: &str, capture: &[&str]) -> String {
        let golden =
            Golden::parse(Utf8Path::new("g"), format!("#@ golden v1\n{golden}").as_bytes()).expect("valid");
        let lines: Vec<Line<'_>> = capture
            .iter()
            .map(|text| Line { text: text.as_bytes(), tokens: Format::Hist.tokens(text.as_bytes()) })
            .collect();
        align(&golden.items, &lines)
            .iter()
            .map(|step| match step {
                Step::Both(..) => '=',
                Step::ItemOnly(_) => '-',
                Step::LineOnly(_) => '+',
            })
            .collect()
    }

    #[test]
    fn an_extra_block_costs_its_own_lines() {
        assert_eq!(steps("a\nb\nc\n", &["x", "y", "a", "b", "c"]), "++===");
        assert_eq!(steps("a\nb\nc\n", &["a", "x", "b", "c"]), "=+==");
        assert_eq!(steps("a\nb\nc\n", &["a", "c"]), "=-=");
        assert_eq!(steps("a\nb\nc\n", &["a", "B", "c"]), "=-+=");
    }

    #[test]
    fn a_repeated_line_takes_what_fits() {
        let row = "{ pid:          1 } hitcount:          1";
        let golden = "a\n#@ repeat 1..\n{ pid: {{n}} } hitcount: {{n}}\n#@ end\nz\n";
        assert_eq!(steps(golden, &["a", row, "z"]), "===");
        assert_eq!(steps(golden, &["a", row, row, row, "z"]), "=====");
        assert_eq!(steps(golden, &["a", "z"]), "=-=");
        assert_eq!(steps(golden, &["a", row, "?", row, "z"]), "==+==");
        assert_eq!(steps("#@ repeat 0..\nx\n#@ end\n", &[]), "");
        assert_eq!(steps("#@ repeat 3..\nx\n#@ end\n", &["x", "x"]), "==-");
    }

    #[test]
    fn nothing_against_something() {
        assert_eq!(steps("", &["a"]), "+");
        assert_eq!(steps("a\n", &[]), "-");
        assert_eq!(steps("", &[]), "");
    }
}
