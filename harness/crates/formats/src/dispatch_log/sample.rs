//! Entries of the dispatch trace log in what `perf script` prints.
//!
//! perf 7.2 breaks a vpa-dtl sample into two lines after the preempt reason
//! (tools/perf/builtin-script.c, `perf_sample__fprintf_synth_vpadtl`); the kernel's documents show
//! it in one line, with other spaces, and one of them without a processor's id. All are read. What
//! looks like an entry and cannot be read is an error: a picture without it would be a lie.

use memchr::memmem;

use super::fields::{ReadError, comma, is_space, reason, waits};
use crate::cursor::{Cursor, is_hex};
use crate::number;
use crate::sample_head::SampleHead;
use crate::units::Timestamp;

/// How an entry begins after what all samples have.
const ENTRY: &[u8] = b"vpa-dtl: timebase:";
/// How the second line of an entry begins.
const SECOND: &[u8] = b"enqueue_to_dispatch_time:";

/// A dispatch of a virtual processor, and what came before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispatchSample {
    /// The CPU, unless perf was asked to leave it out.
    pub cpu: Option<u32>,
    /// When it was dispatched, in nanoseconds since boot; perf shows whole microseconds unless asked
    /// for more.
    pub time_ns: u64,
    /// The same as the timebase says, in ticks.
    pub timebase: u64,
    /// Why it was dispatched, as printed.
    pub dispatch: String,
    /// Why it had been preempted before, as printed.
    pub preempt: String,
    /// From being enqueued to the dispatch, in ticks of the timebase.
    pub enqueue_to_dispatch: u32,
    /// From being ready to being enqueued, in ticks of the timebase.
    pub ready_to_enqueue: u32,
    /// From the preemption to being ready, in ticks of the timebase.
    pub waiting_to_ready: u32,
    /// The physical processor's id, where it is printed.
    pub processor: Option<u16>,
    /// The address of the instruction at which it was preempted.
    pub address: Option<u64>,
    /// The symbol of that address with its offset, where perf knows it.
    pub symbol: Option<String>,
    /// The line on which the entry begins, from 1.
    pub line: usize,
}

impl DispatchSample {
    /// The waits in ticks, in the order in which they passed: until it was ready, until it was
    /// enqueued, until it was dispatched.
    pub fn waits(&self) -> [u32; 3] {
        [self.waiting_to_ready, self.ready_to_enqueue, self.enqueue_to_dispatch]
    }
}

/// Read all vpa-dtl samples of what `perf script` has printed; other lines are skipped.
///
/// # Errors
/// The first line that is of such a sample and cannot be read.
pub fn read_script(text: &[u8]) -> Result<Vec<DispatchSample>, ReadError> {
    let mut found = Vec::new();
    let mut lines = text.split(|b| *b == b'\n').enumerate().map(|(at, line)| (at + 1, line));
    while let Some((at, line)) = lines.next() {
        let error = |(line, text): (usize, &[u8]), what: String| ReadError {
            line,
            what,
            text: String::from_utf8_lossy(text).into_owned(),
        };
        if line.starts_with(SECOND) {
            let what = "the first line of the sample is missing".to_owned();
            return Err(error((at, line), what));
        }
        let Some(head) = SampleHead::read(line).filter(|head| head.dispatch(line).is_some()) else {
            if memmem::find(line, ENTRY).is_some() {
                let what = "expected `COMM PID [CPU] SECONDS.DECIMALS: vpa-dtl: `".to_owned();
                return Err(error((at, line), what));
            }
            continue;
        };
        let mut record = first(line, &head).map_err(|what| error((at, line), what))?;
        record.record.line = at;
        let rest = if record.rest == line.len() {
            lines.next().ok_or_else(|| error((at, line), "the sample's second line is missing".to_owned()))?
        } else {
            (at, line)
        };
        let start = if rest.0 == at { record.rest } else { 0 };
        let record = second(Cursor::new(rest.1, start), record.record).map_err(|what| error(rest, what))?;
        found.push(record);
    }
    Ok(found)
}

/// An entry of which the first half is read.
struct Half {
    record: DispatchSample,
    /// Where in the line the second half begins; the line's end when it is on the next one.
    rest: usize,
}

fn first(line: &[u8], head: &SampleHead) -> Result<Half, String> {
    let cpu = head.cpu.clone().map(|span| number(&line[span]).and_then(|cpu| u32::try_from(cpu).ok()));
    if cpu == Some(None) {
        return Err("the CPU's number has more than 32 bits".to_owned());
    }
    let time = Timestamp::read(line[head.time.clone()].trim_ascii_start()).and_then(Timestamp::nanoseconds);
    let time_ns = time.ok_or("the time in nanoseconds has more than 64 bits")?;
    let mut cursor = Cursor::new(line, head.dispatch(line).unwrap_or(line.len()));
    cursor.eat(b"timebase:").ok_or("expected `timebase: TICKS`")?;
    cursor.run(is_space);
    let timebase = cursor.digits().and_then(|span| number(&line[span]));
    let timebase = timebase.ok_or("expected `timebase: TICKS`, a number of 64 bits")?;
    cursor.run(is_space);
    let dispatch = reason(&mut cursor, "dispatch_reason:")?;
    let preempt = reason(&mut cursor, "preempt_reason:")?;
    let record = DispatchSample {
        cpu: cpu.flatten(),
        time_ns,
        timebase,
        dispatch,
        preempt,
        enqueue_to_dispatch: 0,
        ready_to_enqueue: 0,
        waiting_to_ready: 0,
        processor: None,
        address: None,
        symbol: None,
        line: 0,
    };
    Ok(Half { record, rest: cursor.at })
}

fn second(mut cursor: Cursor<'_>, record: DispatchSample) -> Result<DispatchSample, String> {
    let [waiting_to_ready, ready_to_enqueue, enqueue_to_dispatch] = waits(&mut cursor)?;
    let processor = if cursor.rest().first() == Some(&b',') {
        comma(&mut cursor)?;
        cursor.eat(b"processor_id:").ok_or("expected `processor_id: NUMBER`")?;
        cursor.run(is_space);
        let start = cursor.rest();
        let digits = cursor.digits().map_or(&start[..0], |span| &start[..span.len()]);
        let id = number(digits).and_then(|id| u16::try_from(id).ok());
        Some(id.ok_or("expected `processor_id: NUMBER`, a number of 16 bits")?)
    } else {
        None
    };
    let (address, symbol) = place(cursor)?;
    let waits = DispatchSample { waiting_to_ready, ready_to_enqueue, enqueue_to_dispatch, ..record };
    Ok(DispatchSample { processor, address, symbol, ..waits })
}

/// `ADDRESS SYMBOL (OBJECT)`, of which `-F` can leave out the end, or all.
fn place(mut cursor: Cursor<'_>) -> Result<(Option<u64>, Option<String>), String> {
    let whole = cursor.rest();
    if whole.trim_ascii().is_empty() {
        return Ok((None, None));
    }
    let wrong = "expected an address and a symbol";
    cursor.some(is_space).ok_or(wrong)?;
    let start = cursor.rest();
    let digits = cursor.some(is_hex).map(|span| &start[..span.len()]).ok_or(wrong)?;
    let digits = std::str::from_utf8(digits).map_err(|_| wrong)?;
    let address = u64::from_str_radix(digits, 16).map_err(|_| wrong)?;
    let name = cursor.rest().trim_ascii();
    // A demangled name has brackets of its own, the object's come last.
    let end = memmem::rfind(name, b" (").filter(|_| name.ends_with(b")"));
    let name = end.map_or(name, |end| &name[..end]);
    let known = !matches!(name, b"" | b"[unknown]");
    Ok((Some(address), known.then(|| String::from_utf8_lossy(name).into_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<DispatchSample> {
        read_script(text.as_bytes()).expect("readable")
    }

    #[track_caller]
    fn refused(text: &str) -> (usize, String) {
        let error = read_script(text.as_bytes()).expect_err("not readable");
        (error.line, error.what)
    }

    #[test]
    fn sample_of_7_2_takes_two_lines() {
        let records = read(include_str!("../testdata/dispatch.perf_script"));
        let first = DispatchSample {
            cpu: Some(0),
            time_ns: 41_250_113_000,
            timebase: 21_120_064_057,
            dispatch: "decrementer_interrupt".to_owned(),
            preempt: "H_CEDE".to_owned(),
            enqueue_to_dispatch: 512,
            ready_to_enqueue: 16,
            waiting_to_ready: 1_024_000,
            processor: Some(3),
            address: Some(0xc000_0000_000f_8094),
            symbol: Some("plpar_hcall_norets_notrace+0x18".to_owned()),
            line: 3,
        };
        assert_eq!(records[0], first);
        let second = &records[1];
        assert_eq!((second.waits(), second.processor), ([u32::MAX, 0, 77], Some(u16::MAX)));
        assert_eq!(
            (second.cpu, second.address, &second.symbol),
            (Some(1), Some(0xc000_0000_000f_cd28), &None)
        );
        let lines: Vec<usize> = records.iter().map(|record| record.line).collect();
        assert_eq!((lines, records[2].address), (vec![3, 5, 7], Some(0)));
    }

    /// Documentation/arch/powerpc/vpa-dtl.rst, and the message of the commit that added the event.
    #[test]
    fn sample_of_the_documents_takes_one_line() {
        let records = read(concat!(
            "            :256     256 [016] 105373.359913:                                vpa-dtl: timebase: 21403600706628832 dispatch_reason:decrementer interrupt, preempt_reason:H_CEDE, enqueue_to_dispatch_time:4854,                        ready_to_enqueue_time:139, waiting_to_ready_time:511842115 c0000000000fcd28 plpar_hcall_norets_notrace+0x18 ([kernel.kallsyms])\n",
            " swapper     0 [002]   233.835822:   vpa-dtl: timebase: 338954486062657 dispatch_reason:decrementer_interrupt, preempt_reason:H_CEDE, enqueue_to_dispatch_time:435,\t\t\tready_to_enqueue_time:0, waiting_to_ready_time:34775058, processor_id: 202 c0000000000f8094 plpar_hcall_norets_notrace+0x18 ([kernel.kallsyms])\n",
        ));
        assert_eq!(records[0].dispatch, "decrementer interrupt");
        assert_eq!((records[0].cpu, records[0].time_ns), (Some(16), 105_373_359_913_000));
        assert_eq!((records[0].waits(), records[0].processor), ([511_842_115, 139, 4854], None));
        assert_eq!((records[1].waits(), records[1].processor), ([34_775_058, 0, 435], Some(202)));
        assert_eq!(records[1].symbol.as_deref(), Some("plpar_hcall_norets_notrace+0x18"));
    }

    #[test]
    fn sample_may_lack_or_add_fields() {
        let head = "perf 7 3.000000001:  1  vpa-dtl: timebase: 1 dispatch_reason:a, preempt_reason:b, ";
        let tail = "enqueue_to_dispatch_time:1, ready_to_enqueue_time:2,waiting_to_ready_time:3";
        let records = read(&format!(
            "{head}{tail}\n{head}\r\n{tail}, processor_id: 9 1f\n{head}{tail} 1f f(int (*)()) const+0x1 (/a b)\n"
        ));
        assert_eq!((records[0].cpu, records[0].time_ns, records[0].address), (None, 3_000_000_001, None));
        assert_eq!((records[1].processor, records[1].address), (Some(9), Some(0x1f)));
        assert_eq!(records[2].symbol.as_deref(), Some("f(int (*)()) const+0x1"));
    }

    #[test]
    fn unreadable_sample_is_an_error_with_its_line() {
        let head = "\nperf 7 [001] 3.000001: vpa-dtl: timebase: 1 dispatch_reason:a, preempt_reason:b,";
        let tail = "enqueue_to_dispatch_time:1, ready_to_enqueue_time:2,waiting_to_ready_time:3";
        assert_eq!(refused(tail).0, 1);
        assert_eq!(refused(head), (2, "the sample's second line is missing".to_owned()));
        assert_eq!(refused(&format!("{head}\nx")).0, 3);
        assert_eq!(refused(&format!("{head}\n{tail}, processor_id: 65536")).0, 3);
        assert_eq!(refused(&format!("{head}\n{tail}x")).0, 3);
        assert_eq!(refused(&format!("{head}\n{tail} +")).0, 3);
        assert_eq!(refused("perf 7 vpa-dtl: timebase: 1").0, 1);
        assert_eq!(refused("perf 7 [001] 3.000001: vpa-dtl: ").0, 1);
        assert_eq!(refused(&head.replace("3.", "99999999999.")).0, 2);
        assert_eq!(refused(&head.replace("001", "4294967296")).0, 2);
        assert!(refused(&head.replace(" 1 dis", " -1 dis")).1.contains("timebase"));
        let wrong = refused(&head.replace("preempt_reason:b", "preempt_reason:"));
        assert_eq!(wrong, (2, "expected `preempt_reason:REASON,`".to_owned()));
    }
}
