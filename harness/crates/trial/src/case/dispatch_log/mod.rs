//! `dispatch_log:` of a step: what the hypervisor writes while the step's command records.
//!
//! This module gives the actions in the order in which they are done, repetitions written out. It
//! knows no memory and no kernel.

mod burst;
mod entry;

use dtl::{LogAction, LogPlan, UNREAD_MAX};
use yaml::{Node, Reader};

use super::renamed;
use burst::burst;
use entry::Added;

/// What can be waited for, by name.
const WAITS: [(&str, LogAction); 2] =
    [("drained", LogAction::WaitDrained), ("output", LogAction::WaitOutput)];

const ACTIONS: &str =
    "entries (`cpu: N` and more), `wait: drained`, `wait: output`, `repeat: N` or `leave_unread: true`";

/// The most times that actions are repeated.
const REPEAT_MAX: u64 = 1_000;
/// The most entries of a log. The kernel and perf get through this many in a few seconds.
const ENTRIES_MAX: usize = 100_000;

/// Read the log; `None` when it has errors.
pub(super) fn plan(r: &mut Reader, node: &Node<'_>) -> Option<LogPlan> {
    let list = r.list(node)?;
    let (list, leaves_unread) = match list.split_last() {
        Some((last, list)) if last.has("leave_unread") => (list, leave_unread(r, last.clone())),
        _ => (list.as_slice(), Some(false)),
    };
    let read: Vec<Option<Vec<LogAction>>> = list.iter().map(|node| actions(r, node)).collect();
    let items = read.into_iter().collect::<Option<Vec<_>>>()?.concat();
    let plan = LogPlan { items, leaves_unread: leaves_unread? };
    let entries = entries(&plan.items);
    if entries == 0 {
        r.report(node.key_error("the log has no entries").with_help(format!("write {ACTIONS}")));
        return None;
    }
    if entries > ENTRIES_MAX {
        r.report(node.key_error(format!("the log has {entries} entries, more than {ENTRIES_MAX}")));
        return None;
    }
    if let Some(burst) = plan.ambiguous() {
        let message = format!(
            "more than {UNREAD_MAX} entries may be unread after those of line {}: which are lost would depend on when \
             the guest looks",
            burst.line
        );
        let help = "write them as one burst, or put `wait: drained` in between";
        r.report(node.key_error(message).with_help(help));
        return None;
    }
    Some(plan)
}

/// One item of the list. That is several actions when it repeats them.
fn actions(r: &mut Reader, node: &Node<'_>) -> Option<Vec<LogAction>> {
    if let Some(word) = node.text() {
        let error = match renamed::LOG_ACTION.iter().find(|(old, _)| *old == word) {
            Some((_, new)) => {
                node.error(format!("`{word}` has been renamed")).with_help(format!("write {new}"))
            }
            None => node
                .error(format!("unknown dispatch_log action `{word}`"))
                .with_help(format!("write {ACTIONS}")),
        };
        r.report(error);
        return None;
    }
    if node.has("repeat") {
        return repeat(r, node.clone());
    }
    if node.has("leave_unread") {
        leave_unread(r, node.clone());
        let error = node.error("`leave_unread` ends the recording");
        r.report(error.with_help("make it the last item of `dispatch_log`"));
        return None;
    }
    Some(vec![once(r, node.clone())?])
}

/// An action that is not repeated.
fn once(r: &mut Reader, node: Node<'_>) -> Option<LogAction> {
    if node.has("wait") {
        let f = r.fields(node, &["wait"])?;
        let node = f.need(r, "wait")?;
        return r.choice(&node, "wait", &WAITS);
    }
    burst(r, node).map(LogAction::Write)
}

/// `repeat: N` with its `actions:`, and with what is added to the entries each time.
fn repeat(r: &mut Reader, node: Node<'_>) -> Option<Vec<LogAction>> {
    let f = r.fields(node, &["repeat", "add", "actions"])?;
    let times = f.need(r, "repeat").and_then(|node| r.number(&node, 1..=REPEAT_MAX));
    let added = f.optional(r, "add", |r, node| Added::read(r, node.clone()));
    let actions = f.need(r, "actions").and_then(|node| {
        r.each(&node, |r, node| {
            if node.has("repeat") || node.has("leave_unread") {
                r.report(node.error("only entries and `wait` can be repeated"));
                return None;
            }
            once(r, node)
        })
    });
    let (times, added, actions) = (usize::try_from(times?).ok()?, added?.unwrap_or_default(), actions?);
    if entries(&actions).saturating_mul(times) > ENTRIES_MAX {
        r.report(f.node().error(format!("this repeats more than {ENTRIES_MAX} entries")));
        return None;
    }
    let mut all = Vec::new();
    for time in 0..times {
        for action in &actions {
            let mut action = action.clone();
            if let LogAction::Write(burst) = &mut action {
                burst.entries.iter_mut().for_each(|entry| added.add(time, entry));
            }
            all.push(action);
        }
    }
    Some(all)
}

/// `leave_unread: true`
fn leave_unread(r: &mut Reader, node: Node<'_>) -> Option<bool> {
    let f = r.fields(node, &["leave_unread"])?;
    let node = f.need(r, "leave_unread")?;
    let value = r.boolean(&node)?;
    if !value {
        r.report(
            node.error("without `leave_unread: true`, the guest reads all entries").with_help("remove it"),
        );
        return None;
    }
    Some(value)
}

fn entries(items: &[LogAction]) -> usize {
    let counts = items.iter().map(|item| match item {
        LogAction::Write(burst) => burst.entries.len(),
        LogAction::WaitDrained | LogAction::WaitOutput => 0,
    });
    counts.sum()
}

#[cfg(test)]
mod tests;
