//! One pass over the capture that keeps every place of the program at which it could be.
//!
//! For a golden of plain lines that is one place, so the pass is linear; where a golden leaves a
//! choice there are a few. How each place was reached is kept, so that the alignment can be read
//! back. Of two ways to one place the first counts: operations are looked at in order.

use std::collections::BTreeMap;

use super::any_order::assign;
use super::program::{Op, Program};
use super::select::Row;
use super::{Alignment, Lines};

/// An index of an arrival; of none, at the start.
type ArrivalAt = usize;
const START: ArrivalAt = usize::MAX;

/// How a place was reached.
#[derive(Debug)]
struct Arrival<'g> {
    before: ArrivalAt,
    /// What was taken since then.
    taken: Taken<'g>,
}

#[derive(Debug)]
enum Taken<'g> {
    /// Plain lines one after the other, from an operation and a line on.
    Lines {
        op: usize,
        line: usize,
        count: usize,
    },
    Passed(usize),
    /// A line where there was a choice.
    One(Row<'g>, usize),
    Block(Vec<(Row<'g>, usize)>),
}

/// Operations that could come next, each with how it was reached.
type Places = Vec<(usize, ArrivalAt)>;

struct Follower<'p, 'g, 'c> {
    program: &'p Program<'g>,
    lines: &'p Lines<'c>,
    arrivals: Vec<Arrival<'g>>,
    /// Places at the line after this one.
    next: Places,
    /// Places at lines further on, behind blocks.
    later: BTreeMap<usize, Places>,
    /// For each operation, and the end, the last line (and 1) at which it was a place.
    seen: Vec<usize>,
}

/// Append an alignment in which no line is left over to that of the first `head` lines; whether
/// there is one.
pub(super) fn follow<'g>(
    program: &Program<'g>,
    lines: &Lines<'_>,
    head: usize,
    found: &mut Alignment<'g>,
) -> bool {
    let over = head == lines.len();
    if over && head == program.ops.len() {
        return true;
    }
    if program.plain(head).is_some() || (!over && head == program.ops.len()) {
        return false;
    }
    let mut follower = Follower {
        program,
        lines,
        arrivals: Vec::new(),
        next: Vec::new(),
        later: BTreeMap::new(),
        seen: vec![0; program.ops.len() + 1],
    };
    let Some(mut at) = follower.run(head) else { return false };
    let mut back = Vec::new();
    while at != START {
        back.push(at);
        at = follower.arrivals[at].before;
    }
    for at in back.into_iter().rev() {
        match &follower.arrivals[at].taken {
            Taken::Lines { op, line, count } => {
                let rows = (0..*count).filter_map(|i| Some((*program.plain(op + i)?, line + i)));
                rows.for_each(|(row, line)| found.both(row, line));
            }
            Taken::Passed(line) => found.ignored(*line),
            Taken::One(row, line) => found.both(*row, *line),
            Taken::Block(pairs) => pairs.iter().for_each(|(row, line)| found.both(*row, *line)),
        }
    }
    true
}

impl Follower<'_, '_, '_> {
    /// From one place on to the end of both.
    fn run(&mut self, head: usize) -> Option<ArrivalAt> {
        let mut line = head;
        let mut reached = vec![(head, START)];
        loop {
            self.spread(&mut reached, line);
            if let ([(op, arrival)], true) = (reached.as_slice(), self.later.is_empty()) {
                if let Some((count, arrival)) = self.run_ahead(*op, *arrival, line) {
                    let op = *op + count;
                    line += count;
                    reached.clear();
                    reached.push((op, arrival));
                    continue;
                }
            }
            if line == self.lines.len() {
                let end = self.program.ops.len();
                return reached.iter().find(|(op, _)| *op == end).map(|(_, arrival)| *arrival);
            }
            self.next.clear();
            if let Some(places) = self.later.remove(&(line + 1)) {
                self.next = places;
                self.next.iter().for_each(|(op, _)| self.seen[*op] = line + 2);
            }
            for (op, arrival) in reached.drain(..) {
                self.take(op, arrival, line);
            }
            line += 1;
            std::mem::swap(&mut reached, &mut self.next);
            if reached.is_empty() {
                (line, reached) = self.later.pop_first()?;
            }
        }
    }

    /// Add every place that can be reached without taking a line.
    fn spread(&mut self, reached: &mut Places, line: usize) {
        reached.sort_unstable_by_key(|(op, _)| *op);
        reached.iter().for_each(|(op, _)| self.seen[*op] = line + 1);
        let jumps = |op: usize| match self.program.ops.get(op) {
            Some(Op::Optional(_) | Op::OneOrNone | Op::Some) => [Some(op + 1), None],
            Some(Op::Enter { end }) => [Some(op + 1), Some(*end)],
            Some(Op::Again { start }) => [Some(op + 1), Some(*start)],
            _ => [None, None],
        };
        if reached.iter().all(|(op, _)| jumps(*op) == [None, None]) {
            return;
        }
        let mut open = reached.clone();
        while let Some((op, arrival)) = open.pop() {
            for target in jumps(op).into_iter().flatten() {
                if self.seen[target] != line + 1 {
                    self.seen[target] = line + 1;
                    reached.push((target, arrival));
                    open.push((target, arrival));
                }
            }
        }
        reached.sort_unstable_by_key(|(op, _)| *op);
    }

    /// While there is one place and it is a plain line that fits, there is nothing to choose.
    fn run_ahead(&mut self, op: usize, arrival: ArrivalAt, line: usize) -> Option<(usize, ArrivalAt)> {
        let mut tokens = Vec::new();
        let fits = |at: &usize| {
            let row = self.program.plain(op + at);
            row.is_some_and(|row| self.lines.fits_with(row, line + at, &mut tokens))
        };
        let count = (0..self.lines.len() - line).take_while(fits).count();
        (count > 0).then(|| (count, self.arrive(arrival, Taken::Lines { op, line, count })))
    }
}

impl<'g> Follower<'_, 'g, '_> {
    fn arrive(&mut self, before: ArrivalAt, taken: Taken<'g>) -> ArrivalAt {
        self.arrivals.push(Arrival { before, taken });
        self.arrivals.len() - 1
    }

    /// Take what the operation takes, from `line` on.
    fn take(&mut self, op: usize, arrival: ArrivalAt, line: usize) {
        let (next_op, next_line, taken) = match self.program.ops.get(op) {
            Some(Op::Line(row) | Op::Optional(row)) if self.lines.fits(row, line) => {
                (op + 1, line + 1, Taken::One(*row, line))
            }
            Some(Op::One(_) | Op::OneOrNone) => (op + 1, line + 1, Taken::Passed(line)),
            Some(Op::Some) => (op, line + 1, Taken::Passed(line)),
            Some(Op::Unordered(rows)) if line + rows.len() <= self.lines.len() => {
                let lines = line..line + rows.len();
                let row_of: Option<Vec<usize>> =
                    assign(rows, lines.clone(), self.lines).into_iter().collect();
                let Some(row_of) = row_of else { return };
                let pairs = row_of.into_iter().map(|row| rows[row]).zip(lines).collect();
                (op + 1, line + rows.len(), Taken::Block(pairs))
            }
            _ => return,
        };
        if next_line == line + 1 {
            if self.seen[next_op] != next_line + 1 {
                self.seen[next_op] = next_line + 1;
                let arrival = self.arrive(arrival, taken);
                self.next.push((next_op, arrival));
            }
            return;
        }
        let known = self.later.get(&next_line).is_some_and(|places| places.iter().any(|p| p.0 == next_op));
        if !known {
            let arrival = self.arrive(arrival, taken);
            self.later.entry(next_line).or_default().push((next_op, arrival));
        }
    }
}
