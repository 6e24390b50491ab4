//! One pass over the capture that keeps every place of the program at which it could be.
//!
//! For a golden of plain lines that is one place, so the pass is linear; where a golden leaves a
//! choice there are a few. How each place was reached is kept, so that the alignment can be read
//! back.

use std::collections::BTreeMap;

use super::program::{Op, Program};
use super::{Lines, Step, assign};
use crate::golden::select::Row;

/// How a place was reached.
#[derive(Debug, Clone)]
struct Arrival<'g> {
    /// The arrival before it, as an index of `arrivals`; `None` at the start.
    before: Option<usize>,
    /// What was taken since then.
    taken: Taken<'g>,
}

#[derive(Debug, Clone)]
enum Taken<'g> {
    Nothing,
    Line(Row<'g>, usize),
    Passed(usize),
    Block(Vec<(Row<'g>, usize)>),
}

struct Follower<'p, 'g, 'c> {
    program: &'p Program<'g>,
    lines: &'p Lines<'c>,
    arrivals: Vec<Arrival<'g>>,
    /// Places reached after so many lines, for lines that are not yet looked at: operation to arrival.
    later: BTreeMap<usize, BTreeMap<usize, usize>>,
}

/// An alignment in which no line is left over; `None` when there is none.
pub(super) fn follow<'g>(program: &Program<'g>, lines: &Lines<'_>) -> Option<Vec<Step<'g>>> {
    // The common start of plain lines leaves no choice, and needs no bookkeeping.
    let head =
        (0..lines.len()).take_while(|at| program.plain(*at).is_some_and(|row| lines.fits(row, *at))).count();
    if head < lines.len() && program.plain(head).is_some() {
        return None;
    }
    let mut follower = Follower { program, lines, arrivals: Vec::new(), later: BTreeMap::new() };
    follower.later.entry(head).or_default().insert(head, usize::MAX);
    let mut last = None;
    while let Some((line, places)) = follower.later.pop_first() {
        let mut reached = places;
        follower.spread(&mut reached);
        if reached.len() == 1 && follower.later.is_empty() {
            if let Some((line, op, arrival)) = follower.run_ahead(&reached, line) {
                follower.later.entry(line).or_default().insert(op, arrival);
                continue;
            }
        }
        if line == lines.len() {
            last = reached.get(&program.ops.len()).copied();
            break;
        }
        for (op, arrival) in reached {
            follower.take(op, arrival, line);
        }
    }
    let mut at = last?;
    let mut back = Vec::new();
    while at != usize::MAX {
        let Arrival { before, taken } = &follower.arrivals[at];
        match taken {
            Taken::Nothing => {}
            Taken::Line(row, line) => back.push(Step::Both(*row, *line)),
            Taken::Passed(line) => back.push(Step::Passed(*line)),
            Taken::Block(pairs) => back.extend(pairs.iter().rev().map(|(row, line)| Step::Both(*row, *line))),
        }
        at = before.unwrap_or(usize::MAX);
    }
    let start = (0..head).filter_map(|at| Some(Step::Both(*program.plain(at)?, at)));
    Some(start.chain(back.into_iter().rev()).collect())
}

impl<'g> Follower<'_, 'g, '_> {
    /// Add every place that can be reached without taking a line.
    fn spread(&mut self, reached: &mut BTreeMap<usize, usize>) {
        let mut open: Vec<(usize, usize)> = reached.iter().map(|(op, arrival)| (*op, *arrival)).collect();
        while let Some((op, arrival)) = open.pop() {
            let targets: &[usize] = match self.program.ops.get(op) {
                Some(Op::Optional(_) | Op::OneOrNone | Op::Some) => &[op + 1],
                Some(Op::Enter { end }) => &[op + 1, *end],
                Some(Op::Again { start }) => &[op + 1, *start],
                _ => &[],
            };
            for target in targets {
                if !reached.contains_key(target) {
                    let arrival = self.arrive(arrival, Taken::Nothing);
                    reached.insert(*target, arrival);
                    open.push((*target, arrival));
                }
            }
        }
    }

    /// While there is one place and it is a plain line that fits, there is nothing to choose.
    fn run_ahead(&mut self, reached: &BTreeMap<usize, usize>, from: usize) -> Option<(usize, usize, usize)> {
        let (mut op, mut arrival) = reached.first_key_value().map(|(op, arrival)| (*op, *arrival))?;
        let mut line = from;
        while line < self.lines.len() {
            let Some(row) = self.program.plain(op).filter(|row| self.lines.fits(row, line)) else { break };
            arrival = self.arrive(arrival, Taken::Line(*row, line));
            op += 1;
            line += 1;
        }
        (line > from).then_some((line, op, arrival))
    }

    fn arrive(&mut self, before: usize, taken: Taken<'g>) -> usize {
        let before = Some(before).filter(|at| *at != usize::MAX);
        self.arrivals.push(Arrival { before, taken });
        self.arrivals.len() - 1
    }

    /// Take what the operation takes, from `line` on.
    fn take(&mut self, op: usize, arrival: usize, line: usize) {
        let (next_op, next_line, taken) = match self.program.ops.get(op) {
            Some(Op::Line(row) | Op::Optional(row)) if self.lines.fits(row, line) => {
                (op + 1, line + 1, Taken::Line(*row, line))
            }
            Some(Op::One(_) | Op::OneOrNone) => (op + 1, line + 1, Taken::Passed(line)),
            Some(Op::Some) => (op, line + 1, Taken::Passed(line)),
            Some(Op::Unordered(rows)) if line + rows.len() <= self.lines.len() => {
                let assigned: Option<Vec<usize>> =
                    assign(rows, line, line + rows.len(), self.lines).into_iter().collect();
                let Some(assigned) = assigned else { return };
                let mut pairs: Vec<(Row<'g>, usize)> = rows.iter().copied().zip(assigned).collect();
                pairs.sort_by_key(|(_, line)| *line);
                (op + 1, line + rows.len(), Taken::Block(pairs))
            }
            _ => return,
        };
        let places = self.later.entry(next_line).or_default();
        if !places.contains_key(&next_op) {
            let arrival = self.arrive(arrival, taken);
            self.later.entry(next_line).or_default().insert(next_op, arrival);
        }
    }
}
