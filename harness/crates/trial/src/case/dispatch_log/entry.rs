//! One entry of a log, and the words for its fields.

use diagnostic::did_you_mean;
use dtl::{Address, PlannedEntry, When, reason};
use yaml::{Fields, Node, Reader};

/// The keys of an entry.
pub(super) const ENTRY_KEYS: [&str; 11] = [
    "at",
    "timebase",
    "dispatch",
    "preempt",
    "processor_id",
    "enqueue_to_dispatch",
    "ready_to_enqueue",
    "waiting_to_ready",
    "fault_addr",
    "srr0",
    "srr1",
];

/// The word for the time at which entries are written.
const NOW: &str = "now";

/// An entry of which the file says nothing.
pub(super) fn default_entry() -> PlannedEntry {
    PlannedEntry {
        when: When::FromStart(0),
        dispatch: 0,
        preempt: 0,
        processor: None,
        enqueue_to_dispatch: 0,
        ready_to_enqueue: 0,
        waiting_to_ready: 0,
        fault_addr: Address::Number(0),
        srr0: Address::Number(0),
        srr1: 0,
    }
}

/// Read an entry, or what the entries of a burst have in common. A field without a key is as in `like`.
pub(super) fn entry(r: &mut Reader, f: &Fields<'_>, like: &PlannedEntry) -> Option<PlannedEntry> {
    let when = when(r, f, like.when);
    let dispatch = f.optional(r, "dispatch", |r, node| reason_code(r, node, &reason::DISPATCH));
    let preempt = f.optional(r, "preempt", |r, node| reason_code(r, node, &reason::PREEMPT));
    let processor =
        f.optional(r, "processor_id", |r, node| u16::try_from(r.number(node, 0..=u64::from(u16::MAX))?).ok());
    let enqueue_to_dispatch = f.optional(r, "enqueue_to_dispatch", wait);
    let ready_to_enqueue = f.optional(r, "ready_to_enqueue", wait);
    let waiting_to_ready = f.optional(r, "waiting_to_ready", wait);
    let fault_addr = f.optional(r, "fault_addr", address);
    let srr0 = f.optional(r, "srr0", address);
    let srr1 = f.optional(r, "srr1", |r, node| r.number(node, 0..=u64::MAX));
    Some(PlannedEntry {
        when: when?,
        dispatch: dispatch?.unwrap_or(like.dispatch),
        preempt: preempt?.unwrap_or(like.preempt),
        processor: processor?.or(like.processor),
        enqueue_to_dispatch: enqueue_to_dispatch?.unwrap_or(like.enqueue_to_dispatch),
        ready_to_enqueue: ready_to_enqueue?.unwrap_or(like.ready_to_enqueue),
        waiting_to_ready: waiting_to_ready?.unwrap_or(like.waiting_to_ready),
        fault_addr: fault_addr?.unwrap_or_else(|| like.fault_addr.clone()),
        srr0: srr0?.unwrap_or_else(|| like.srr0.clone()),
        srr1: srr1?.unwrap_or(like.srr1),
    })
}

/// What each repetition of a burst adds to its entries.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Added {
    /// To their times, in nanoseconds. A time that is a value of the timebase stays.
    at: i64,
    /// To the wait that marks them, in timebase ticks.
    enqueue_to_dispatch: u32,
}

impl Added {
    /// `{at: TIME, enqueue_to_dispatch: TICKS}`
    pub(super) fn read(r: &mut Reader, node: Node<'_>) -> Option<Added> {
        let f = r.fields(node, &["at", "enqueue_to_dispatch"])?;
        let at = f.optional(r, "at", Reader::signed_duration);
        let enqueue_to_dispatch = f.optional(r, "enqueue_to_dispatch", wait);
        Some(Added {
            at: at?.unwrap_or_default(),
            enqueue_to_dispatch: enqueue_to_dispatch?.unwrap_or_default(),
        })
    }

    /// Make `entry` that of repetition `index`, from 0.
    pub(super) fn add(self, index: usize, entry: &mut PlannedEntry) {
        entry.when = after(entry.when, self.at.saturating_mul(i64::try_from(index).unwrap_or(i64::MAX)));
        let ticks = self.enqueue_to_dispatch.wrapping_mul(u32::try_from(index).unwrap_or(u32::MAX));
        entry.enqueue_to_dispatch = entry.enqueue_to_dispatch.wrapping_add(ticks);
    }
}

/// A time that is later by `nanoseconds`. A value of the timebase stays.
pub(super) fn after(when: When, nanoseconds: i64) -> When {
    match when {
        When::FromStart(at) => When::FromStart(at.saturating_add(nanoseconds)),
        When::FromNow(at) => When::FromNow(at.saturating_add(nanoseconds)),
        When::Timebase(timebase) => When::Timebase(timebase),
    }
}

/// `at: TIME`, `at: now` or `timebase: TICKS`
fn when(r: &mut Reader, f: &Fields<'_>, like: When) -> Option<When> {
    match (f.get("at"), f.get("timebase")) {
        (None, None) => Some(like),
        (Some(at), None) if at.text() == Some(NOW) => Some(When::FromNow(0)),
        (Some(at), None) => r.signed_duration(&at).map(When::FromStart),
        (None, Some(timebase)) => r.number(&timebase, 0..=u64::MAX).map(When::Timebase),
        (Some(_), Some(timebase)) => {
            r.report(timebase.key_error("an entry has either `at` or `timebase`"));
            None
        }
    }
}

/// A wait, in timebase ticks.
fn wait(r: &mut Reader, node: &Node<'_>) -> Option<u32> {
    u32::try_from(r.number(node, 0..=u64::from(u32::MAX))?).ok()
}

/// A reason by its name, or by its code.
fn reason_code(r: &mut Reader, node: &Node<'_>, names: &[&str]) -> Option<u8> {
    let Some(name) = node.text() else { return u8::try_from(r.number(node, 0..=255)?).ok() };
    let found = reason::code(names, name);
    if found.is_none() {
        let help = did_you_mean(name, names.iter().copied());
        let help = help.unwrap_or_else(|| format!("write a code, or one of {}", names.join(", ")));
        r.report(node.error(format!("unknown reason `{name}`")).with_help(help));
    }
    found
}

/// A number, or `symbol` or `symbol+0x18`.
fn address(r: &mut Reader, node: &Node<'_>) -> Option<Address> {
    let Some(text) = node.text() else { return r.number(node, 0..=u64::MAX).map(Address::Number) };
    let (name, offset) = match text.split_once("+0x") {
        Some((name, hex)) => (name, u64::from_str_radix(hex, 16).ok()),
        None => (text, Some(0)),
    };
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.$".contains(c));
    match offset.filter(|_| is_name && !name.starts_with(|c: char| c.is_ascii_digit())) {
        Some(offset) => Some(Address::Symbol { name: name.to_owned(), offset }),
        None => {
            let error = node.error(format!("`{text}` is not an address"));
            r.report(error.with_help("write a number, or a symbol and its offset such as plpar_hcall+0x18"));
            None
        }
    }
}
