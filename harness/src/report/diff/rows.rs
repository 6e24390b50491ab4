//! The lines of a golden and of a capture side by side.

use golden::Edit;

/// Which side has a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// Both, and they belong together.
    Both,
    /// The golden alone.
    Golden,
    /// The capture alone.
    Capture,
    /// The capture, and the golden ignores it.
    Ignored,
}

/// A line of one side or a pair of lines. Numbers count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) sign: Sign,
    pub(super) golden: Option<usize>,
    pub(super) capture: Option<usize>,
}

impl Sign {
    pub(super) fn differs(self) -> bool {
        matches!(self, Sign::Golden | Sign::Capture)
    }

    /// As a column of the diff has it.
    pub(super) fn char(self) -> char {
        match self {
            Sign::Both => ' ',
            Sign::Golden => '-',
            Sign::Capture => '+',
            Sign::Ignored => '.',
        }
    }
}

impl From<Edit> for Row {
    fn from(edit: Edit) -> Row {
        let (sign, golden, capture) = match edit {
            Edit::Same { golden, capture } => (Sign::Both, Some(golden), Some(capture)),
            Edit::Missing { golden } => (Sign::Golden, Some(golden), None),
            Edit::Unexpected { capture } => (Sign::Capture, None, Some(capture)),
            Edit::Ignored { capture } => (Sign::Ignored, None, Some(capture)),
        };
        Row { sign, golden, capture }
    }
}

/// The golden's line where the first difference is, or after which it is.
pub(super) fn first_difference(rows: &[Row]) -> Option<usize> {
    let at = rows.iter().position(|row| row.sign.differs())?;
    // Line 1 is the golden's head, which every golden has.
    Some(rows[..=at].iter().rev().find_map(|row| row.golden).unwrap_or(1))
}

/// For each row of the golden alone the row of the capture alone that stands for it: in a block of
/// such rows the first belongs to the first, and so on.
pub(super) fn pairs(rows: &[Row], shown: impl IntoIterator<Item = usize>) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    let (mut golden, mut capture) = (Vec::new(), Vec::new());
    let mut end = |golden: &mut Vec<usize>, capture: &mut Vec<usize>| {
        // Those without a partner go, too.
        pairs.extend(golden.drain(..).zip(capture.drain(..)));
    };
    for at in shown {
        match rows[at].sign {
            Sign::Golden => golden.push(at),
            Sign::Capture => capture.push(at),
            Sign::Both | Sign::Ignored => end(&mut golden, &mut capture),
        }
    }
    end(&mut golden, &mut capture);
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(edits: &[Edit]) -> Vec<Row> {
        edits.iter().copied().map(Row::from).collect()
    }

    #[test]
    fn first_difference_is_placed_in_the_golden() {
        let same = Edit::Same { golden: 4, capture: 1 };
        let more = Edit::Unexpected { capture: 2 };
        assert_eq!(first_difference(&rows(&[same])), None);
        assert_eq!(first_difference(&rows(&[same, more])), Some(4));
        assert_eq!(first_difference(&rows(&[more, same])), Some(1));
        assert_eq!(first_difference(&rows(&[same, Edit::Missing { golden: 9 }])), Some(9));
    }

    #[test]
    fn lines_of_a_block_are_paired_in_order() {
        let (minus, plus) = (Edit::Missing { golden: 2 }, Edit::Unexpected { capture: 1 });
        let same = Edit::Same { golden: 3, capture: 2 };
        let block = rows(&[minus, minus, plus, same, plus, plus, minus]);
        assert_eq!(pairs(&block, 0..block.len()), [(0, 2), (6, 4)]);
        assert_eq!(pairs(&block, [0, 1]), []);
    }
}
