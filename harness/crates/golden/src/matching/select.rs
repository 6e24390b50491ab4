//! What a golden expects of one guest: its conditions decided, its blocks in order.

use std::ops::RangeInclusive;

use crate::language::condition::Facts;
use crate::language::pattern::Pattern;
use crate::language::tree::{Counts, Expression, Golden, Passage, PassageKind, Xfail};

/// A line that is expected.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'g> {
    /// Its line in the golden, from 1.
    pub(super) line: usize,
    pub(super) pattern: &'g Pattern,
}

/// A part of what is expected.
#[derive(Debug, Clone)]
pub(super) enum Slot<'g> {
    /// Lines one after the other, from one of the golden's on.
    Lines {
        line: usize,
        patterns: &'g [Pattern],
    },
    Optional(Row<'g>),
    Any {
        line: usize,
        counts: Counts,
    },
    Repeat {
        counts: Counts,
        rows: Vec<Row<'g>>,
    },
    /// A known bug that this guest's kernel may have; `line` is that of its directive.
    Xfail {
        line: usize,
        xfail: &'g Xfail,
    },
    Unordered {
        rows: Vec<Row<'g>>,
    },
}

/// What is expected of one guest.
#[derive(Debug, Default)]
pub(super) struct Selected<'g> {
    pub(super) slots: Vec<Slot<'g>>,
    /// Lines that must not be there, with the golden's lines that say so.
    pub(super) absent: Vec<(usize, &'g Expression)>,
    /// The lines of each `#@ unordered by /re/`, with its expression.
    pub(super) streams: Vec<(RangeInclusive<usize>, &'g Expression)>,
}

/// Decide the conditions of a golden for a guest.
pub(super) fn select<'g>(golden: &'g Golden, facts: &Facts) -> Selected<'g> {
    let mut selected = Selected::default();
    add(&golden.passages, facts, &mut selected);
    selected
}

fn add<'g>(passages: &'g [Passage], facts: &Facts, selected: &mut Selected<'g>) {
    for Passage { line, end, kind } in passages {
        match kind {
            PassageKind::Lines(patterns) => selected.slots.push(Slot::Lines { line: *line, patterns }),
            PassageKind::Optional { pattern, .. } => {
                selected.slots.push(Slot::Optional(Row { line: line + 1, pattern }));
            }
            PassageKind::If { condition, then, otherwise } => {
                let chosen = if condition.holds(facts) { then } else { otherwise.as_ref().unwrap_or(&EMPTY) };
                add(chosen, facts, selected);
            }
            PassageKind::Any(counts) => any(*line, *counts, selected),
            PassageKind::Xfail(xfail) if xfail.condition.as_ref().is_none_or(|c| c.holds(facts)) => {
                selected.slots.push(Slot::Xfail { line: *line, xfail });
            }
            PassageKind::Xfail(xfail) => {
                selected.slots.push(Slot::Lines { line: line + 1, patterns: &xfail.right });
            }
            PassageKind::Repeat { counts, block } => {
                let rows = rows(block, facts);
                if !rows.is_empty() {
                    selected.slots.push(Slot::Repeat { counts: *counts, rows });
                }
            }
            PassageKind::Unordered { by, block } => {
                selected.streams.extend(by.iter().map(|by| (*line..=*end, by)));
                let rows = rows(block, facts);
                if !rows.is_empty() {
                    selected.slots.push(Slot::Unordered { rows });
                }
            }
            PassageKind::Absent(expression) => selected.absent.push((*line, expression)),
        }
    }
}

static EMPTY: Vec<Passage> = Vec::new();

/// Conditions can bring two `any` together that are not adjacent in the golden: they are one.
fn any(line: usize, counts: Counts, selected: &mut Selected<'_>) {
    if let Some(Slot::Any { counts: before, .. }) = selected.slots.last_mut() {
        before.least = before.least.saturating_add(counts.least);
        before.most = before.most.zip(counts.most).map(|(a, b)| a.saturating_add(b));
    } else {
        selected.slots.push(Slot::Any { line, counts });
    }
}

/// The lines of a block, whose passages are lines and conditions only.
fn rows<'g>(block: &'g [Passage], facts: &Facts) -> Vec<Row<'g>> {
    let mut selected = Selected::default();
    add(block, facts, &mut selected);
    let slots = selected.slots.iter();
    let lines = |slot: &Slot<'g>| match slot {
        Slot::Lines { line, patterns } => Some((*line, *patterns)),
        _ => None,
    };
    slots.filter_map(lines).flat_map(|(line, patterns)| rows_from(line, patterns)).collect()
}

/// The rows of lines one after the other.
pub(super) fn rows_from<'g>(line: usize, patterns: &'g [Pattern]) -> impl Iterator<Item = Row<'g>> + use<'g> {
    (line..).zip(patterns).map(|(line, pattern)| Row { line, pattern })
}
