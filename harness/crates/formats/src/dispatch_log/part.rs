//! Parts of perf's dump that a case may capture in place of all of it.

use std::collections::BTreeMap;

use crate::dump_line::{BOOT, DumpRecord, EntryLine};
use crate::number;

/// The label of an AUXTRACE record's CPU, at its end.
const CPU: &[u8] = b"cpu: ";

/// The AUXTRACE records of a dump, each with the log that it carries, without the lines between them.
pub fn auxtrace_part(dump: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut inside = false;
    for line in dump.split_inclusive(|b| *b == b'\n') {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let begins = DumpRecord::read(text).is_some_and(|record| record.name == b"AUXTRACE");
        inside = begins || (inside && text.starts_with(b"."));
        if inside {
            kept.extend_from_slice(line);
        }
    }
    kept
}

/// The hypervisor's entries in the AUXTRACE records of a dump, by CPU and in order, as lines of `CPU N: `
/// and the entry's text. Into how many records perf parts them, and which CPU's come first, depends on
/// when it was woken up.
pub fn log_entries(dump: &[u8]) -> Vec<u8> {
    let part = auxtrace_part(dump);
    let mut by_cpu: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    let mut cpu = None;
    for line in part.split(|b| *b == b'\n') {
        if let Some(record) = DumpRecord::read(line) {
            let text = &line[record.text..];
            let start = text.windows(CPU.len()).rposition(|w| w == CPU).map(|at| at + CPU.len());
            cpu = start.and_then(|start| number(&text[start..]));
        } else if let (Some(cpu), Some(entry)) = (cpu, EntryLine::read(line)) {
            let text = &line[entry.text..];
            if !text.starts_with(BOOT) {
                let kept = by_cpu.entry(cpu).or_default();
                kept.extend_from_slice(format!("CPU {cpu}: ").as_bytes());
                kept.extend_from_slice(text);
                kept.push(b'\n');
            }
        }
    }
    by_cpu.into_values().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_has_the_auxtrace_records_or_their_entries() {
        let log = "0 0 0x8 [0x30]: PERF_RECORD_AUXTRACE size: 0x30  offset: 0  ref: 0  idx: 0  tid: -1  cpu: 0\n.\n\
                   . ... VPA DTL PMU data: size 48 bytes, entries is 1\n.  00000000: boot_tb: 1, tb_freq: 2\n";
        let dump = format!(
            "0 0 0x258 [0x18]: PERF_RECORD_AUXTRACE_INFO type: 7\n\n0x8@perf.data [0x30]: event: 71\n.\n. ... raw\n\n\
             {log}\n0 0 0x9 [0x8]: PERF_RECORD_FINISHED_ROUND\n.  0000:  44\n{log}"
        );
        let part = auxtrace_part(dump.as_bytes());
        assert_eq!(String::from_utf8_lossy(&part), format!("{log}{log}"));
        assert!(auxtrace_part(b"").is_empty());
        let entry = |record: &str, mark: u8| {
            format!("{log}.  00000030: dispatch_reason:{mark}\n").replace("cpu: 0", record)
        };
        let dump = [entry("cpu: 1", 1), entry("cpu: 0", 2), entry("cpu: 1", 3)].concat();
        let expected = "CPU 0: dispatch_reason:2\nCPU 1: dispatch_reason:1\nCPU 1: dispatch_reason:3\n";
        assert_eq!(String::from_utf8_lossy(&log_entries(dump.as_bytes())), expected);
    }
}
