//! A golden seen from one guest: the lines that its capture has, those that it lacks, and new ones.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use formats::Format;

use super::Observed;
use super::line::{New, new_line};
use super::names::{GuestNames, Namer};
use crate::{Edit, Golden, Passage, PassageKind, Seen, compare, split_lines};

/// A golden seen from one guest.
pub(super) struct View {
    pub(super) fits: bool,
    pub(super) kept: BTreeSet<usize>,
    pub(super) dropped: BTreeSet<usize>,
    /// Lines to add, by the golden's line after which they come.
    pub(super) added: BTreeMap<usize, Vec<New>>,
}

impl View {
    pub(super) fn new(
        golden: &Golden,
        format: Format,
        seen: &Observed<'_>,
        namer: &mut Namer,
        names: &mut GuestNames,
    ) -> Result<View, String> {
        // What this golden binds itself counts for the lines that it lacks.
        let mut bound = names.bindings.clone();
        let found = compare(golden, seen.capture, format, seen.facts, &mut bound);
        if let Some(violation) = found.violations.first() {
            let at = violation.line;
            return Err(format!(
                "line {at} of the capture of {} breaks a rule: {}",
                seen.facts.arch, violation.message
            ));
        }
        if found.missing_final_newline {
            return Err(format!("the last line of the capture of {} has no newline", seen.facts.arch));
        }
        if let Some(bug) = found.known_bugs.iter().find(|bug| bug.seen == Seen::Neither) {
            return Err(format!(
                "the capture of {} has neither part of the known bug in line {} of the golden",
                seen.facts.arch, bug.line
            ));
        }
        let blocks = Blocks::of(golden);
        let mut view = View {
            fits: found.passes(),
            kept: BTreeSet::new(),
            dropped: BTreeSet::new(),
            added: BTreeMap::new(),
        };
        // A line whose name has come to mean something else is written anew.
        let renamed: BTreeSet<usize> = found.conflicts.iter().map(|c| c.here().golden_line).collect();
        let (lines, _) = split_lines(seen.capture);
        let mut anchor = 1;
        let mut ignored = false;
        for edit in &found.edits {
            let (drop, add) = match *edit {
                Edit::Same { golden, capture } if renamed.contains(&golden) => (Some(golden), Some(capture)),
                Edit::Same { golden, .. } => {
                    view.kept.insert(golden);
                    anchor = golden;
                    ignored = false;
                    continue;
                }
                Edit::Ignored { .. } => {
                    ignored = true;
                    continue;
                }
                Edit::Missing { golden } => (Some(golden), None),
                Edit::Unexpected { capture } => (None, Some(capture)),
            };
            if ignored {
                return Err("it differs next to an `any`".to_owned());
            }
            if let Some(line) = drop {
                if let Some(block) = blocks.name_at(line) {
                    return Err(format!("line {line} of the golden, in {block}, would have to change"));
                }
                view.dropped.insert(line);
                anchor = anchor.max(line);
            }
            if let Some(line) = add {
                let new =
                    new_line(lines[line - 1], format, namer, &bound, &mut names.fresh).ok_or_else(|| {
                        format!("line {line} of the capture of {} is not UTF-8 text", seen.facts.arch)
                    })?;
                view.added.entry(blocks.end_at(anchor)).or_default().push(new);
            }
        }
        Ok(view)
    }
}

/// The blocks that are matched as a whole, and so are not edited.
struct Blocks {
    ranges: Vec<(RangeInclusive<usize>, &'static str)>,
}

impl Blocks {
    fn of(golden: &Golden) -> Blocks {
        let mut ranges = Vec::new();
        Blocks::collect(&golden.passages, &mut ranges);
        Blocks { ranges }
    }

    fn collect(passages: &[Passage], ranges: &mut Vec<(RangeInclusive<usize>, &'static str)>) {
        for passage in passages {
            let name = match &passage.kind {
                PassageKind::If { then, otherwise, .. } => {
                    Blocks::collect(then, ranges);
                    Blocks::collect(otherwise.as_deref().unwrap_or_default(), ranges);
                    continue;
                }
                PassageKind::Repeat { .. } => "a `repeat`",
                PassageKind::Unordered { .. } => "an `unordered`",
                PassageKind::Any(_) => "an `any`",
                PassageKind::Optional { .. } => "an `optional`",
                PassageKind::Xfail(_) => "an `xfail`",
                PassageKind::Lines(_) | PassageKind::Absent(_) => continue,
            };
            ranges.push((passage.line..=passage.end, name));
        }
    }

    fn name_at(&self, line: usize) -> Option<&'static str> {
        self.ranges.iter().find(|(range, _)| range.contains(&line)).map(|(_, name)| *name)
    }

    /// The line after which something can be added when it comes after `line`.
    fn end_at(&self, line: usize) -> usize {
        self.ranges.iter().find(|(range, _)| range.contains(&line)).map_or(line, |(range, _)| *range.end())
    }
}
