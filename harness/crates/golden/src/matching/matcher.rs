//! One pass over the capture that keeps every operation at which it could be.
//!
//! For a golden of plain lines that is one operation, so the pass is linear; where a golden leaves a
//! choice there are a few. How each was reached is kept, so that the alignment can be read back. Of
//! two ways to one operation the one with fewer known bugs counts: an actual part is taken only
//! where the right one does not fit. Of ways that are equal in that the first one counts.

use std::collections::BTreeMap;

use super::alignment::{Alignment, Followed};
use super::any_order::assign;
use super::lines::Lines;
use super::program::{Op, Program};
use super::select::Row;

/// The most steps of all ways that are kept, some 50 bytes each. A golden that leaves more open is
/// not matched.
const STEPS_MAX: usize = 8_000_000;

/// An index of a step; of none, at the start.
type StepAt = usize;
const START: StepAt = usize::MAX;

/// What was taken on a way, after the steps before.
#[derive(Debug)]
struct Step<'g> {
    before: StepAt,
    /// The actual parts of known bugs on the way so far.
    actual_parts: u32,
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
    Ignored(usize),
    /// A line where there was a choice.
    One(Row<'g>, usize),
    Block(Vec<(Row<'g>, usize)>),
    Entered {
        bug: usize,
        is_actual: bool,
    },
    Left,
}

/// Operations that could come next, each with the last step of the way to it.
type States = Vec<(usize, StepAt)>;

struct Follower<'p, 'g, 'c> {
    program: &'p Program<'g>,
    lines: &'p Lines<'c>,
    steps: Vec<Step<'g>>,
    /// States at the line after this one.
    next: States,
    /// States at lines further on, after blocks of any order.
    later: BTreeMap<usize, States>,
    /// For each operation, and the end, the last line (and 1) at which it was a state, and the way.
    seen: Vec<(usize, StepAt)>,
}

/// Append an alignment in which no line is left over to that of the first `start` lines, if there
/// is one.
pub(super) fn follow<'g>(
    program: &Program<'g>,
    lines: &Lines<'_>,
    start: usize,
    found: &mut Alignment<'g>,
) -> Followed {
    let is_over = start == lines.len();
    if is_over && start == program.ops.len() {
        return Followed::Fits;
    }
    if program.plain(start).is_some() || (!is_over && start == program.ops.len()) {
        return Followed::Differs;
    }
    let mut follower = Follower {
        program,
        lines,
        steps: Vec::new(),
        next: Vec::new(),
        later: BTreeMap::new(),
        seen: vec![(0, START); program.ops.len() + 1],
    };
    let Some(mut at) = follower.run(start) else {
        return if follower.is_full() { Followed::TooManyWays } else { Followed::Differs };
    };
    let mut back = Vec::new();
    while at != START {
        back.push(at);
        at = follower.steps[at].before;
    }
    for at in back.into_iter().rev() {
        match &follower.steps[at].taken {
            Taken::Lines { op, line, count } => {
                let rows = (0..*count).filter_map(|i| Some((*program.plain(op + i)?, line + i)));
                rows.for_each(|(row, line)| found.both(row, line));
            }
            Taken::Ignored(line) => found.ignored(*line),
            Taken::One(row, line) => found.both(*row, *line),
            Taken::Block(pairs) => pairs.iter().for_each(|(row, line)| found.both(*row, *line)),
            Taken::Entered { bug, is_actual } => found.enter(*bug, *is_actual),
            Taken::Left => found.leave(),
        }
    }
    Followed::Fits
}

impl<'g> Follower<'_, 'g, '_> {
    fn is_full(&self) -> bool {
        self.steps.len() >= STEPS_MAX
    }

    /// From one state on to the end of both.
    fn run(&mut self, start: usize) -> Option<StepAt> {
        let mut line = start;
        let mut reached = vec![(start, START)];
        while !self.is_full() {
            self.spread(&mut reached, line);
            if let ([(op, step)], true) = (reached.as_slice(), self.later.is_empty()) {
                if let Some((count, step)) = self.run_ahead(*op, *step, line) {
                    let op = *op + count;
                    line += count;
                    reached.clear();
                    reached.push((op, step));
                    continue;
                }
            }
            if line == self.lines.len() {
                let end = self.program.ops.len();
                return reached.iter().find(|(op, _)| *op == end).map(|(_, step)| *step);
            }
            self.next.clear();
            if let Some(states) = self.later.remove(&(line + 1)) {
                self.next = states;
                self.next.iter().for_each(|(op, step)| self.seen[*op] = (line + 2, *step));
            }
            for (op, step) in reached.drain(..) {
                self.take(op, step, line);
            }
            line += 1;
            std::mem::swap(&mut reached, &mut self.next);
            // A better way to a state may have been found after it was listed.
            reached.iter_mut().for_each(|(op, step)| *step = self.seen[*op].1);
            if reached.is_empty() {
                (line, reached) = self.later.pop_first()?;
            }
        }
        None
    }

    /// Add every state that can be reached without taking a line.
    fn spread(&mut self, reached: &mut States, line: usize) {
        reached.sort_unstable_by_key(|(op, _)| *op);
        reached.iter().for_each(|(op, step)| self.seen[*op] = (line + 1, *step));
        let is_choice = |op: usize| {
            !matches!(self.program.ops.get(op), None | Some(Op::Line(_) | Op::One(_) | Op::Unordered(_)))
        };
        if !reached.iter().any(|(op, _)| is_choice(*op)) {
            return;
        }
        let mut open = reached.clone();
        while let Some((op, step)) = open.pop() {
            if self.seen[op].1 != step {
                continue;
            }
            // Of two targets that are equal the first one counts.
            let targets = match self.program.ops.get(op) {
                Some(Op::Optional(_) | Op::OneOrNone | Op::Some | Op::Join) => [Some((op + 1, step)), None],
                Some(Op::Enter { end }) => [Some((op + 1, step)), Some((*end, step))],
                Some(Op::Again { start }) => [Some((op + 1, step)), Some((*start, step))],
                Some(Op::Jump { to }) => [Some((*to, step)), None],
                Some(Op::Leave) => [Some((op + 1, self.step(step, Taken::Left))), None],
                Some(Op::Fork { bug, right }) => {
                    let mut enter = |is_actual| self.step(step, Taken::Entered { bug: *bug, is_actual });
                    [Some((*right, enter(false))), Some((op + 1, enter(true)))]
                }
                _ => [None, None],
            };
            for (target, step) in targets.into_iter().flatten() {
                match self.reach(target, step, line) {
                    Reached::First => reached.push((target, step)),
                    Reached::Better => {}
                    Reached::Known => continue,
                }
                open.push((target, step));
            }
        }
        reached.iter_mut().for_each(|(op, step)| *step = self.seen[*op].1);
        reached.sort_unstable_by_key(|(op, _)| *op);
    }

    /// Note that an operation is a state at `line`.
    fn reach(&mut self, op: usize, step: StepAt, line: usize) -> Reached {
        let (last, known) = self.seen[op];
        let result = if last != line + 1 {
            Reached::First
        } else if self.actual_parts(step) < self.actual_parts(known) {
            Reached::Better
        } else {
            return Reached::Known;
        };
        self.seen[op] = (line + 1, step);
        result
    }

    fn actual_parts(&self, step: StepAt) -> u32 {
        self.steps.get(step).map_or(0, |step| step.actual_parts)
    }

    /// While there is one state and it is a plain line that fits, there is nothing to choose.
    fn run_ahead(&mut self, op: usize, step: StepAt, line: usize) -> Option<(usize, StepAt)> {
        let mut tokens = Vec::new();
        let fits = |at: &usize| {
            let row = self.program.plain(op + at);
            row.is_some_and(|row| self.lines.fits_with(row, line + at, &mut tokens))
        };
        let count = (0..self.lines.len() - line).take_while(fits).count();
        (count > 0).then(|| (count, self.step(step, Taken::Lines { op, line, count })))
    }

    fn step(&mut self, before: StepAt, taken: Taken<'g>) -> StepAt {
        let entered = matches!(taken, Taken::Entered { is_actual: true, .. });
        let actual_parts = self.actual_parts(before) + u32::from(entered);
        self.steps.push(Step { before, actual_parts, taken });
        self.steps.len() - 1
    }

    /// Take what the operation takes, from `line` on.
    fn take(&mut self, op: usize, step: StepAt, line: usize) {
        let (next_op, next_line, taken) = match self.program.ops.get(op) {
            Some(Op::Line(row) | Op::Optional(row)) if self.lines.fits(row, line) => {
                (op + 1, line + 1, Taken::One(*row, line))
            }
            Some(Op::One(_) | Op::OneOrNone) => (op + 1, line + 1, Taken::Ignored(line)),
            Some(Op::Some) => (op, line + 1, Taken::Ignored(line)),
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
        let fewer = |this: &Self, known| this.actual_parts(step) < this.actual_parts(known);
        if next_line == line + 1 {
            let (last, known) = self.seen[next_op];
            let is_known = last == next_line + 1;
            if is_known && !fewer(self, known) {
                return;
            }
            let step = self.step(step, taken);
            self.seen[next_op] = (next_line + 1, step);
            if !is_known {
                self.next.push((next_op, step));
            }
            return;
        }
        let states = self.later.get(&next_line);
        let known = states.and_then(|states| states.iter().position(|state| state.0 == next_op));
        let known_step = known.zip(states).map(|(at, states)| states[at].1);
        if known_step.is_some_and(|known| !fewer(self, known)) {
            return;
        }
        let step = self.step(step, taken);
        let states = self.later.entry(next_line).or_default();
        match known {
            Some(at) => states[at].1 = step,
            None => states.push((next_op, step)),
        }
    }
}

/// How an operation was reached at a line.
enum Reached {
    First,
    /// On a way with fewer known bugs than the one before.
    Better,
    Known,
}
