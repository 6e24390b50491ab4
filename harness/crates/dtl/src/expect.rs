//! What perf must print of the entries that were written.
//!
//! A golden says what a capture is, and a person has read it; this says what it must be, from the
//! entries themselves. One cannot be changed, or be wrong, without the other.

use std::collections::BTreeMap;
use std::fmt;

use formats::dispatch_log::{AuxRecord, DispatchSample, DumpEntry, ReadError, read_dump, read_script};
use formats::{Format, Violation};

use super::clock::shown;
use super::entry::LogEntry;
use super::reason::{DISPATCH, PREEMPT};
use super::written::Written;

/// Differences beyond these are counted and not shown.
const SHOWN_MAX: usize = 5;

/// How a capture differs from what was written, in order. Formats that show no entry of a log have
/// no difference.
pub fn violations(written: &Written, format: Format, capture: &[u8]) -> Vec<Violation> {
    let found = match format {
        Format::PerfScript => script(written, capture),
        Format::PerfDump => dump(written, capture),
        _ => Ok(Vec::new()),
    };
    let mut found =
        found.unwrap_or_else(|error| vec![Violation { line: error.line, message: error.to_string() }]);
    let more = found.len().saturating_sub(SHOWN_MAX);
    found.truncate(SHOWN_MAX);
    if let Some(last) = found.last_mut().filter(|_| more > 0) {
        last.message.push_str(&format!("\n{more} more entries differ"));
    }
    found
}

fn script(written: &Written, capture: &[u8]) -> Result<Vec<Violation>, ReadError> {
    let mut found: BTreeMap<u32, Vec<(usize, Shown)>> = BTreeMap::new();
    for record in read_script(capture)? {
        let cpu = record.cpu.unwrap_or_default();
        found.entry(cpu).or_default().push((record.line, Shown::of_record(&record)));
    }
    Ok(differences(written, &found, |entry| Shown::of_entry(written, entry)))
}

fn dump(written: &Written, capture: &[u8]) -> Result<Vec<Violation>, ReadError> {
    let mut found: BTreeMap<u32, Vec<(usize, Shown)>> = BTreeMap::new();
    for AuxRecord { cpu, entries, line, .. } in read_dump(capture)? {
        let entries = entries.into_iter().filter_map(|entry| match entry {
            DumpEntry::Dispatch { dispatch, preempt, waits, .. } => {
                Some((line, Shown { dispatch, preempt, waits, at: None }))
            }
            DumpEntry::Boot { .. } => None,
        });
        found.entry(cpu.unwrap_or_default()).or_default().extend(entries);
    }
    Ok(differences(written, &found, |entry| Shown { at: None, ..Shown::of_entry(written, entry) }))
}

fn differences(
    written: &Written,
    found: &BTreeMap<u32, Vec<(usize, Shown)>>,
    expected: impl Fn(&LogEntry) -> Shown,
) -> Vec<Violation> {
    let mut cpus: Vec<u32> = written.read.keys().chain(found.keys()).copied().collect();
    cpus.sort_unstable();
    cpus.dedup();
    let mut violations = Vec::new();
    for cpu in cpus {
        let wanted: Vec<Shown> = written.read.get(&cpu).into_iter().flatten().map(&expected).collect();
        let shown = found.get(&cpu).map(Vec::as_slice).unwrap_or_default();
        let last = shown.last().map_or(1, |(line, _)| *line);
        for (nth, wanted) in wanted.iter().enumerate() {
            let message = match shown.get(nth) {
                Some((_, shown)) if shown == wanted => continue,
                Some((_, shown)) => {
                    format!(
                        "entry {nth} of the log of CPU {cpu} differs\n  written: {wanted}\n  perf:    {shown}"
                    )
                }
                None => format!("entry {nth} of the log of CPU {cpu} is missing\n  written: {wanted}"),
            };
            violations.push(Violation { line: shown.get(nth).map_or(last, |(line, _)| *line), message });
        }
        violations.extend(shown.iter().skip(wanted.len()).map(|(line, shown)| Violation {
            line: *line,
            message: format!("extra entry of CPU {cpu}: {} were written\n  perf:    {shown}", wanted.len()),
        }));
    }
    violations.sort_by_key(|violation| violation.line);
    violations
}

/// What perf shows of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shown {
    dispatch: String,
    preempt: String,
    /// Until it was ready, until it was enqueued, until it was dispatched.
    waits: [u32; 3],
    /// What a dump leaves out.
    at: Option<At>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct At {
    timebase: u64,
    /// As perf shows it.
    time: String,
    processor: Option<u16>,
    address: Option<u64>,
}

impl Shown {
    fn of_entry(written: &Written, entry: &LogEntry) -> Shown {
        let name = |names: &[&str], code: u8| {
            names.get(usize::from(code)).map_or_else(|| format!("unknown({code})"), |name| (*name).to_owned())
        };
        Shown {
            dispatch: name(&DISPATCH, entry.dispatch),
            preempt: name(&PREEMPT, entry.preempt),
            waits: [entry.waiting_to_ready, entry.ready_to_enqueue, entry.enqueue_to_dispatch],
            at: Some(At {
                timebase: entry.timebase,
                time: shown(written.clock.time(entry.timebase)),
                processor: Some(entry.processor),
                address: Some(entry.srr0),
            }),
        }
    }

    fn of_record(record: &DispatchSample) -> Shown {
        Shown {
            dispatch: record.dispatch.clone(),
            preempt: record.preempt.clone(),
            waits: record.waits(),
            at: Some(At {
                timebase: record.timebase,
                time: shown(record.time_ns),
                processor: record.processor,
                address: record.address,
            }),
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown { dispatch, preempt, waits: [ready, enqueued, dispatched], at } = self;
        write!(f, "{dispatch}, {preempt}, {dispatched}, {enqueued}, {ready}")?;
        let Some(At { timebase, time, processor, address }) = at else { return Ok(()) };
        write!(f, ", timebase {timebase} at {time}")?;
        if let Some(processor) = processor {
            write!(f, ", processor {processor}")?;
        }
        if let Some(address) = address {
            write!(f, ", srr0 {address:#x}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::Clock;
    use super::*;

    const SCRIPT: &str = "            perf      55 [000]     2.000010: vpa-dtl: timebase: 1024005120 dispatch_reason:H_PROD, preempt_reason:H_CEDE,\n\
                          enqueue_to_dispatch_time:5, ready_to_enqueue_time:6,waiting_to_ready_time:7, processor_id: 3 c000000000000010 f+0x10 ([kernel.kallsyms])\n";
    const DUMP: &str = "0 0 0x39b10 [0x30]: PERF_RECORD_AUXTRACE size: 0x60  offset: 0  ref: 0  idx: 0  tid: -1  cpu: 0\n.\n\
                        . ... VPA DTL PMU data: size 96 bytes, entries is 2\n.  00000000: boot_tb: 0, tb_freq: 512000000\n\
                        .  00000030: dispatch_reason:H_PROD, preempt_reason:H_CEDE, enqueue_to_dispatch_time:5, ready_to_enqueue_time:6, waiting_to_ready_time:7\n";

    fn entry() -> LogEntry {
        LogEntry {
            dispatch: 2,
            preempt: 2,
            processor: 3,
            enqueue_to_dispatch: 5,
            ready_to_enqueue: 6,
            waiting_to_ready: 7,
            timebase: 1_024_005_120,
            fault_addr: 0,
            srr0: 0xc000_0000_0000_0010,
            srr1: 0,
        }
    }

    fn messages(entries: &[LogEntry], format: Format, capture: &str) -> Vec<String> {
        let written = Written {
            clock: Clock::new(0, 512_000_000, 0),
            read: BTreeMap::from([(0, entries.to_vec())]),
            lost: BTreeMap::new(),
            masked: 0,
        };
        let found = violations(&written, format, capture.as_bytes());
        found.into_iter().map(|violation| format!("{}: {}", violation.line, violation.message)).collect()
    }

    #[test]
    fn shown_entry_must_be_the_written_one() {
        for (format, capture) in [(Format::PerfScript, SCRIPT), (Format::PerfDump, DUMP)] {
            assert_eq!(messages(&[entry()], format, capture), Vec::<String>::new());
            let extra = messages(&[], format, capture);
            assert!(
                extra.len() == 1 && extra[0].contains("extra entry of CPU 0: 0 were written"),
                "{extra:?}"
            );
            let missing = messages(&[entry(), entry()], format, capture);
            assert!(
                missing.len() == 1 && missing[0].contains("entry 1 of the log of CPU 0 is missing"),
                "{missing:?}"
            );
            assert_eq!(messages(&[LogEntry { waiting_to_ready: 8, ..entry() }], format, capture).len(), 1);
            assert_eq!(messages(&[LogEntry { dispatch: 200, ..entry() }], format, capture).len(), 1);
        }
        assert_eq!(messages(&[], Format::Plain, SCRIPT), Vec::<String>::new());
    }

    #[test]
    fn each_field_of_a_sample_is_compared() {
        let wrong = [
            LogEntry { timebase: 1_024_005_121, ..entry() },
            LogEntry { processor: 4, ..entry() },
            LogEntry { srr0: 0, ..entry() },
            LogEntry { preempt: 0, ..entry() },
        ];
        for entry in wrong {
            assert_eq!(messages(&[entry], Format::PerfScript, SCRIPT).len(), 1, "{entry:?}");
        }
        let found = messages(&[LogEntry { waiting_to_ready: 8, ..entry() }], Format::PerfScript, SCRIPT);
        assert_eq!(
            found,
            [
                "1: entry 0 of the log of CPU 0 differs\n  written: H_PROD, H_CEDE, 5, 6, 8, timebase 1024005120 at \
                 2.000010, processor 3, srr0 0xc000000000000010\n  perf:    H_PROD, H_CEDE, 5, 6, 7, timebase \
                 1024005120 at 2.000010, processor 3, srr0 0xc000000000000010"
            ]
        );
    }

    #[test]
    fn only_the_first_differences_are_shown() {
        let found = messages(&[entry(); 100], Format::PerfDump, DUMP);
        assert_eq!(found.len(), SHOWN_MAX);
        assert!(found[SHOWN_MAX - 1].ends_with("\n94 more entries differ"), "{found:?}");
    }
}
