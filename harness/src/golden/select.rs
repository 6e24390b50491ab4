//! What a golden expects of one guest: its conditions decided, its blocks in a row.

use super::condition::Facts;
use super::pattern::Pattern;
use super::tree::{Expression, Golden, Node, NodeKind};

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
    /// Lines one after the other, as nodes that are lines.
    Lines(&'g [Node]),
    Optional(Row<'g>),
    Any {
        line: usize,
        least: usize,
        most: Option<usize>,
    },
    Repeat {
        least: usize,
        rows: Vec<Row<'g>>,
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
}

/// Decide the conditions of a golden for a guest.
pub(super) fn select<'g>(golden: &'g Golden, facts: &Facts) -> Selected<'g> {
    let mut selected = Selected::default();
    add(&golden.nodes, facts, &mut selected);
    selected
}

fn add<'g>(nodes: &'g [Node], facts: &Facts, selected: &mut Selected<'g>) {
    for run in nodes.chunk_by(|a, b| row(a).is_some() && row(b).is_some()) {
        let [Node { line, kind, .. }, ..] = run else { continue };
        match kind {
            NodeKind::Line(_) => selected.slots.push(Slot::Lines(run)),
            NodeKind::Optional { pattern, .. } => {
                selected.slots.push(Slot::Optional(Row { line: line + 1, pattern }));
            }
            NodeKind::If { condition, then, otherwise } => {
                let chosen = if condition.holds(facts) { then } else { otherwise.as_ref().unwrap_or(&EMPTY) };
                add(chosen, facts, selected);
            }
            NodeKind::Any { least, most } => any(*line, *least, *most, selected),
            NodeKind::Repeat { least, block } => {
                let rows = rows(block, facts);
                if !rows.is_empty() {
                    selected.slots.push(Slot::Repeat { least: *least, rows });
                }
            }
            NodeKind::Unordered { block, .. } => {
                let rows = rows(block, facts);
                if !rows.is_empty() {
                    selected.slots.push(Slot::Unordered { rows });
                }
            }
            NodeKind::Absent(expression) => selected.absent.push((*line, expression)),
        }
    }
}

static EMPTY: Vec<Node> = Vec::new();

/// Conditions can bring two `any` together that do not stand in a row: they are one.
fn any(line: usize, least: usize, most: Option<usize>, selected: &mut Selected<'_>) {
    if let Some(Slot::Any { least: before, most: before_most, .. }) = selected.slots.last_mut() {
        *before += least;
        *before_most = before_most.zip(most).map(|(a, b)| a + b);
    } else {
        selected.slots.push(Slot::Any { line, least, most });
    }
}

/// The lines of a block, whose nodes are lines and conditions only.
fn rows<'g>(block: &'g [Node], facts: &Facts) -> Vec<Row<'g>> {
    let mut selected = Selected::default();
    add(block, facts, &mut selected);
    let rows = |slot| match slot {
        Slot::Lines(nodes) => nodes,
        _ => &[],
    };
    selected.slots.into_iter().flat_map(rows).filter_map(row).collect()
}

/// The row of a node that is a line.
pub(super) fn row(node: &Node) -> Option<Row<'_>> {
    match &node.kind {
        NodeKind::Line(pattern) => Some(Row { line: node.line, pattern }),
        _ => None,
    }
}
