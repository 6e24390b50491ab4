//! `dispatch_log:` of a step: what the hypervisor writes while the step's command records.

use diagnostic::did_you_mean;
use dtl::{Address, Burst, LogAction, LogPlan, PlannedEntry, UNREAD_MAX, When, reason};
use formats::units::{DURATION_HELP, parse_signed_duration};
use yaml::{Fields, Node, Reader};

const POLL: &str = "poll";
const OUTPUT: &str = "output";
const END_UNREAD: &str = "end unread";
const NOW: &str = "now";

const ENTRY_KEYS: [&str; 11] = [
    "at",
    "timebase",
    "dispatch",
    "preempt",
    "processor",
    "enqueue_to_dispatch",
    "ready_to_enqueue",
    "waiting_to_ready",
    "fault_addr",
    "srr0",
    "srr1",
];

/// The most entries of a burst.
const BURST_MAX: u64 = 10_000;
/// How much later the next entry is when nothing is said, in nanoseconds.
const EVERY: i64 = 10_000;

/// Read the plan; `None` when it has faults.
pub(super) fn plan(r: &mut Reader, node: &Node<'_>) -> Option<LogPlan> {
    let list = r.list(node)?;
    let mut leaves_unread = false;
    let mut items = Vec::new();
    let mut good = true;
    let last = list.len().saturating_sub(1);
    for (at, item) in list.into_iter().enumerate() {
        match item.text() {
            Some(POLL) => items.push(LogAction::WaitDrained),
            Some(OUTPUT) => items.push(LogAction::WaitOutput),
            Some(END_UNREAD) if at == last => leaves_unread = true,
            Some(END_UNREAD) => {
                r.report(item.error("nothing can come after the recording's end"));
                good = false;
            }
            Some(word) => {
                let help = did_you_mean(word, [POLL, OUTPUT, END_UNREAD]);
                let help = help.unwrap_or_else(|| {
                    format!("write entries of a `cpu:`, `{POLL}`, `{OUTPUT}` or `{END_UNREAD}`")
                });
                r.report(item.error(format!("`{word}` cannot be done to a log")).with_help(help));
                good = false;
            }
            None => match burst(r, item) {
                Some(burst) => items.push(LogAction::Write(burst)),
                None => good = false,
            },
        }
    }
    let plan = LogPlan { items, leaves_unread };
    if good && plan.cpus().is_empty() {
        r.report(node.error("no entry is written"));
        return None;
    }
    if let Some(burst) = plan.ambiguous().filter(|_| good) {
        let message = format!(
            "with the entries in line {} more than {UNREAD_MAX} may be unread, and which are lost would depend on when \
             the guest looks",
            burst.line
        );
        let help = format!("write them as one burst, or put `{POLL}` in between");
        r.report(node.key_error(message).with_help(help));
        return None;
    }
    good.then_some(plan)
}

fn burst(r: &mut Reader, node: Node<'_>) -> Option<Burst> {
    let line = node.line();
    let keys: Vec<&str> = ["cpu", "count", "every", "entries"].into_iter().chain(ENTRY_KEYS).collect();
    let f = r.fields(node, &keys)?;
    let cpu = f.need(r, "cpu").and_then(|node| r.number(&node, 0..=63));
    let every = f.get("every").map_or(Some(EVERY), |node| time(r, &node));
    let count = f.get("count").map(|node| (r.number(&node, 1..=BURST_MAX), node));
    let common = entry(
        r,
        &f,
        &PlannedEntry {
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
        },
    );
    let after = |nth: usize| every.unwrap_or(EVERY).saturating_mul(i64::try_from(nth).unwrap_or(i64::MAX));
    let later = |entry: &PlannedEntry, nth: usize| match entry.when {
        When::FromStart(at) => When::FromStart(at.saturating_add(after(nth))),
        When::FromNow(at) => When::FromNow(at.saturating_add(after(nth))),
        When::Timebase(timebase) => When::Timebase(timebase),
    };
    let mut entries = match (f.get("entries"), count) {
        (Some(list), None) => {
            let list = r.list(&list)?;
            let read = list.into_iter().enumerate().map(|(nth, node)| {
                let f = r.fields(node, &ENTRY_KEYS)?;
                let common = common.as_ref()?;
                entry(r, &f, &PlannedEntry { when: later(common, nth), ..common.clone() })
            });
            // All of them are read before any is given up, so that all faults are told.
            let read: Vec<Option<PlannedEntry>> = read.collect();
            read.into_iter().collect::<Option<Vec<PlannedEntry>>>()?
        }
        (None, Some((count, _))) => {
            let common = common?;
            // Each counts on, so that it can be told from the others.
            let nth = |nth: usize| PlannedEntry {
                when: later(&common, nth),
                enqueue_to_dispatch: common.enqueue_to_dispatch.wrapping_add(u32::try_from(nth).unwrap_or(0)),
                ..common.clone()
            };
            (0..usize::try_from(count?).unwrap_or(0)).map(nth).collect()
        }
        (Some(_), Some((_, node))) => {
            r.report(
                node.key_error("`count` makes entries that differ in their times: it excludes `entries`"),
            );
            return None;
        }
        (None, None) => {
            r.report(f.node().error("a burst needs `entries`, or their `count`"));
            return None;
        }
    };
    every?;
    // The last one is now, and those before it are before.
    let last = after(entries.len().saturating_sub(1));
    for entry in &mut entries {
        if let When::FromNow(at) = &mut entry.when {
            *at = at.saturating_sub(last);
        }
    }
    if entries.is_empty() {
        r.report(f.node().error("a burst of no entry"));
        return None;
    }
    Some(Burst { line, cpu: u32::try_from(cpu?).ok()?, entries })
}

/// An entry, or what is common to all of a burst. What is not said is as in `like`.
fn entry(r: &mut Reader, f: &Fields<'_>, like: &PlannedEntry) -> Option<PlannedEntry> {
    let when = match (f.get("at"), f.get("timebase")) {
        (None, None) => Some(like.when),
        (Some(at), None) if at.text() == Some(NOW) => Some(When::FromNow(0)),
        (Some(at), None) => time(r, &at).map(When::FromStart),
        (None, Some(timebase)) => r.number(&timebase, 0..=u64::MAX).map(When::Timebase),
        (Some(_), Some(timebase)) => {
            r.report(timebase.key_error("an entry has `at` or a `timebase`, not both"));
            None
        }
    };
    let dispatch = f.get("dispatch").map_or(Some(like.dispatch), |node| code(r, &node, &reason::DISPATCH));
    let preempt = f.get("preempt").map_or(Some(like.preempt), |node| code(r, &node, &reason::PREEMPT));
    let processor = f.get("processor").map_or(Some(like.processor), |node| {
        Some(Some(u16::try_from(r.number(&node, 0..=u64::from(u16::MAX))?).ok()?))
    });
    let mut wait = |key: &str, like: u32| {
        f.get(key).map_or(Some(like), |node| u32::try_from(r.number(&node, 0..=u64::from(u32::MAX))?).ok())
    };
    let waits = (
        wait("enqueue_to_dispatch", like.enqueue_to_dispatch),
        wait("ready_to_enqueue", like.ready_to_enqueue),
        wait("waiting_to_ready", like.waiting_to_ready),
    );
    let fault_addr = f.get("fault_addr").map_or(Some(like.fault_addr.clone()), |node| address(r, &node));
    let srr0 = f.get("srr0").map_or(Some(like.srr0.clone()), |node| address(r, &node));
    let srr1 = f.get("srr1").map_or(Some(like.srr1), |node| r.number(&node, 0..=u64::MAX));
    Some(PlannedEntry {
        when: when?,
        dispatch: dispatch?,
        preempt: preempt?,
        processor: processor?,
        enqueue_to_dispatch: waits.0?,
        ready_to_enqueue: waits.1?,
        waiting_to_ready: waits.2?,
        fault_addr: fault_addr?,
        srr0: srr0?,
        srr1: srr1?,
    })
}

/// A reason by its name, or by its code.
fn code(r: &mut Reader, node: &Node<'_>, names: &[&str]) -> Option<u8> {
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
            let fault = node.error(format!("`{text}` is no address"));
            r.report(fault.with_help("write a number, or a symbol with its offset such as plpar_hcall+0x18"));
            None
        }
    }
}

/// A duration that may be negative, such as `10us` or `-5ms`, in nanoseconds.
fn time(r: &mut Reader, node: &Node<'_>) -> Option<i64> {
    let Some(text) = node.text() else {
        r.report(node.error("expected a duration").with_help(DURATION_HELP));
        return None;
    };
    parse_signed_duration(text)
        .map_err(|error| r.report(node.error(error.to_string()).with_help(DURATION_HELP)))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use yaml::Document;

    fn read(text: &str) -> Result<LogPlan, Vec<String>> {
        let document = Document::parse("c.yaml", text).expect("valid YAML");
        let mut reader = Reader::new();
        let plan = plan(&mut reader, &document.root());
        let faults = reader.into_errors();
        let shown = |f: &diagnostic::Diagnostic| {
            format!("{}:{} {} | {}", f.span.line, f.span.column, f.message, f.help.as_deref().unwrap_or("-"))
        };
        plan.filter(|_| faults.is_empty()).ok_or_else(|| faults.iter().map(shown).collect())
    }

    fn bursts(plan: &LogPlan) -> Vec<&Burst> {
        let bursts = plan.items.iter().filter_map(|item| match item {
            LogAction::Write(burst) => Some(burst),
            LogAction::WaitDrained | LogAction::WaitOutput => None,
        });
        bursts.collect()
    }

    #[test]
    fn entries_take_what_their_burst_says() {
        let text = "- cpu: 1\n  at: 1ms\n  every: 5us\n  preempt: H_CEDE\n  srr0: f+0x18\n  entries:\n  - {dispatch: H_PROD}\n  \
                    - {dispatch: 200, at: -2.5ms, waiting_to_ready: 7}\n  - {timebase: 9}\n- poll\n- cpu: 0\n  count: 3\n- end unread\n";
        let plan = read(text).expect("good");
        assert!(plan.leaves_unread && plan.items[1] == LogAction::WaitDrained && plan.items.len() == 3);
        let all = bursts(&plan);
        let entries = &all[0].entries;
        let times: Vec<When> = entries.iter().map(|entry| entry.when).collect();
        assert_eq!(times, [When::FromStart(1_000_000), When::FromStart(-2_500_000), When::Timebase(9)]);
        let codes: Vec<(u8, u8)> = entries.iter().map(|entry| (entry.dispatch, entry.preempt)).collect();
        assert_eq!(codes, [(2, 2), (200, 2), (0, 2)]);
        assert_eq!(entries[1].waiting_to_ready, 7);
        assert_eq!(entries[2].srr0, Address::Symbol { name: "f".to_owned(), offset: 0x18 });
        let series: Vec<(When, u32)> =
            all[1].entries.iter().map(|entry| (entry.when, entry.enqueue_to_dispatch)).collect();
        let expected = [(0, 0), (10_000, 1), (20_000, 2)].map(|(at, mark)| (When::FromStart(at), mark));
        assert_eq!(series, expected);
        let plan = read("- {cpu: 0, count: 3, at: now}\n").expect("good");
        let times: Vec<When> = bursts(&plan)[0].entries.iter().map(|entry| entry.when).collect();
        assert_eq!(times, [-20_000, -10_000, 0].map(When::FromNow));
    }

    #[test]
    fn faults_have_places_and_advice() {
        let faults = |text: &str| read(text).expect_err("faulty");
        assert_eq!(faults("- pol\n"), ["1:3 `pol` cannot be done to a log | did you mean `poll`?"]);
        assert_eq!(faults("- poll\n"), ["1:1 no entry is written | -"]);
        let found = faults("- {cpu: 0, dispatch: h_prod, srr0: 'f 1', every: 5, count: 1}\n");
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].ends_with("unknown reason `h_prod` | did you mean `H_PROD`?"), "{found:?}");
        let help = "such as 10us, 1.5ms or 60s";
        assert!(found[2].contains("expected a duration") && found[2].contains(help), "{found:?}");
        let found = faults("- {cpu: 0, every: 5h, count: 1}\n");
        assert!(found[0].contains("`5h` is not a duration: unknown unit"), "{found:?}");
        assert!(faults("- {cpu: 0}\n")[0].contains("a burst needs `entries`, or their `count`"));
        assert!(faults("- end unread\n- {cpu: 0, count: 1}\n")[0].contains("after the recording's end"));
        assert!(faults("- {cpu: 0, count: 1, at: 1us, timebase: 1}\n")[0].contains("not both"));
        let found = faults("- {cpu: 0, count: 80}\n- {cpu: 0, count: 5}\n");
        assert!(found[0].contains("line 2 more than 84 may be unread"), "{found:?}");
        assert!(read("- {cpu: 0, count: 80}\n- poll\n- {cpu: 0, count: 5}\n").is_ok());
    }
}
