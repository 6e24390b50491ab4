//! A burst: entries of one CPU that are published at once.

use dtl::{Burst, PlannedEntry, When};
use yaml::{Fields, Node, Reader};

use super::entry::{ENTRY_KEYS, after, default_entry, entry};
use crate::case::renamed;

/// The keys of a burst besides those of an entry. The first three are keys of other actions, which
/// are not read here; they are known so that a misspelt one is.
const KEYS: [&str; 7] = ["wait", "repeat", "leave_unread", "cpu", "count", "every", "entries"];

/// The most entries of a burst.
const COUNT_MAX: u64 = 10_000;
/// How much later an entry is than the one before when the file does not say, in nanoseconds.
const EVERY: i64 = 10_000;

/// Read a burst. What its entries have in common is beside `entries`.
pub(super) fn burst(r: &mut Reader, node: Node<'_>) -> Option<Burst> {
    let line = node.line();
    let keys: Vec<&str> = KEYS.into_iter().chain(ENTRY_KEYS).collect();
    let f = r.fields_with_renames(node, &keys, &renamed::LOG_ENTRY)?;
    let cpu = f.need(r, "cpu").and_then(|node| r.number(&node, 0..=63));
    let every = f.optional(r, "every", Reader::signed_duration).map(|every| every.unwrap_or(EVERY));
    let common = entry(r, &f, &default_entry());
    let like = common.clone().unwrap_or_else(default_entry);
    let mut entries = entries(r, &f, &like, every.unwrap_or(EVERY))?;
    common?;
    if entries.is_empty() {
        r.report(f.node().error("a burst without entries"));
        return None;
    }
    // `now` is the time of the last one.
    let span = nth(every?, entries.len() - 1);
    for entry in &mut entries {
        if let When::FromNow(at) = &mut entry.when {
            *at = at.saturating_sub(span);
        }
    }
    Some(Burst { line, cpu: u32::try_from(cpu?).ok()?, entries })
}

/// The entries of a burst: those that `entries` lists, or as many as `count` says.
fn entries(r: &mut Reader, f: &Fields<'_>, common: &PlannedEntry, every: i64) -> Option<Vec<PlannedEntry>> {
    match (f.get("entries"), f.get("count")) {
        (Some(list), None) => {
            let mut index = 0;
            r.each(&list, |r, node| {
                let f = r.fields_with_renames(node, &ENTRY_KEYS, &renamed::LOG_ENTRY)?;
                let like = PlannedEntry { when: after(common.when, nth(every, index)), ..common.clone() };
                index += 1;
                entry(r, &f, &like)
            })
        }
        (None, Some(count)) => {
            let count = r.number(&count, 1..=COUNT_MAX)?;
            // Each is marked by its wait, so that entries that are lost can be named.
            let entry = |index: u32| PlannedEntry {
                when: after(common.when, nth(every, index as usize)),
                enqueue_to_dispatch: common.enqueue_to_dispatch.wrapping_add(index),
                ..common.clone()
            };
            Some((0..u32::try_from(count).ok()?).map(entry).collect())
        }
        (Some(_), Some(count)) => {
            r.report(count.key_error("a burst has either `entries` or `count`"));
            None
        }
        (None, None) => {
            r.report(f.node().error("a burst needs `entries` or `count`"));
            None
        }
    }
}

/// The time of an entry after the first one's, in nanoseconds.
fn nth(every: i64, index: usize) -> i64 {
    every.saturating_mul(i64::try_from(index).unwrap_or(i64::MAX))
}
