//! What is said of an entry when one points at it.

use super::axis::decimal;
use super::lane::{Entry, Ns, Part};

/// Everything that the entry says, in lines.
pub(super) fn entry(entry: &Entry<'_>) -> String {
    let record = entry.record;
    let mut lines = vec![
        format!("dispatch: {}", record.dispatch),
        format!("preempt: {}", record.preempt),
        format!("time: {} s, timebase: {}", seconds(entry.at), record.timebase),
    ];
    let waits = Part::ALL.into_iter().zip(entry.waits).zip(record.waits());
    lines.extend(
        waits.map(|((part, ns), ticks)| format!("{}: {} us ({ticks} ticks)", part.name(), decimal(ns, 1000))),
    );
    if entry.excess() > 0 {
        lines.push(format!(
            "the waits begin {} us before the entry before: drawn from there",
            decimal(entry.excess(), 1000)
        ));
    }
    lines
        .push(format!("processor: {}", record.processor.map_or("not shown".to_owned(), |id| id.to_string())));
    let address = record.address.map(|address| format!("{address:016x} "));
    if address.is_some() || record.symbol.is_some() {
        let symbol = record.symbol.as_deref().unwrap_or("[unknown]");
        lines.push(format!("at: {}{symbol}", address.unwrap_or_default()));
    }
    lines.push(format!("line {}", record.line));
    lines.join("\n")
}

/// A time since boot in seconds.
pub(super) fn seconds(at: Ns) -> String {
    format!("{}.{:09}", at / 1_000_000_000, at % 1_000_000_000)
}
