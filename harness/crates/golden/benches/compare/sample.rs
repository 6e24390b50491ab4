//! A long capture like that of `perf script`, and the golden that it matches.
//!
//! The lines are made after those of a ppc64le guest with two CPUs. The same number of lines is
//! always the same text.

use std::fmt::Write as _;

use formats::Format;
use golden::{HEADER, Pattern};

/// The format that the capture is compared in.
pub(super) const FORMAT: Format = Format::PerfScript;

/// Tasks, with their process ids.
const TASKS: [(&str, u32); 9] = [
    ("swapper", 0),
    ("rcu_sched", 15),
    ("migration/1", 22),
    ("ksoftirqd/0", 14),
    ("kworker/u4:2", 41),
    ("kcompactd0", 35),
    ("perf", 311),
    ("dd", 461),
    ("jbd2/vda-8", 97),
];

/// Why a virtual CPU was dispatched, and why it was preempted before.
const REASONS: [(&str, &str); 4] = [
    ("decrementer_interrupt", "H_CEDE"),
    ("priv_doorbell", "H_CEDE"),
    ("H_PROD", "H_CONFER"),
    ("external_interrupt", "preempted"),
];

/// A capture and its golden.
pub(super) struct Sample {
    pub(super) golden: String,
    pub(super) capture: Vec<String>,
}

impl Sample {
    /// `lines` lines, each with its newline.
    pub(super) fn new(lines: usize) -> Sample {
        let mut sample = Sample { golden: format!("{HEADER}\n"), capture: Vec::with_capacity(lines) };
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut time = 233_835_822;
        while sample.capture.len() < lines {
            time += random.below(40);
            sample.add(&mut random, time);
        }
        // The last entry may be of two lines.
        if sample.capture.len() > lines {
            sample.capture.truncate(lines);
            let last = sample.golden.trim_end().rfind('\n').map_or(0, |at| at + 1);
            sample.golden.truncate(last);
        }
        sample
    }

    /// One event, `time` in microseconds.
    fn add(&mut self, random: &mut Random, time: u64) {
        let task = |random: &mut Random| TASKS[random.below(TASKS.len() as u64) as usize];
        let (name, pid) = task(random);
        let (other, other_pid) = task(random);
        let cpu = random.below(4);
        let (seconds, micros) = (time / 1_000_000, time % 1_000_000);
        let mut line = format!("{name:>16} {pid:>7} [{cpu:03}] {seconds:>5}.{micros:06}: ");
        let golden = &mut self.golden;
        // A hole covers the padding of its column.
        golden.push_str("{{comm}} {{pid}} [{{cpu}}] {{ts}}: ");
        let mut both = |text: &str, volatile: Option<u32>, after: &str| {
            let _ = write!(line, "{text}");
            golden.push_str(&Pattern::literal(text).to_string());
            if let Some(number) = volatile {
                let _ = write!(line, "{number}");
                golden.push_str("{{n}}");
            }
            let _ = write!(line, "{after}");
            golden.push_str(after);
        };
        match random.below(8) {
            0 => {
                let (dispatch, preempt) = REASONS[random.below(4) as usize];
                let timebase = 21_120_064_057 + time * 512;
                both(
                    &format!(
                        "vpa-dtl: timebase: {timebase} dispatch_reason:{dispatch}, preempt_reason:{preempt},\n\
                         enqueue_to_dispatch_time:{}, ready_to_enqueue_time:16,waiting_to_ready_time:{}, processor_id: ",
                        random.below(64) * 16,
                        random.below(4) * 1024,
                    ),
                    Some(cpu as u32),
                    " c0000000000f8094 plpar_hcall_norets_notrace+0x18 ([kernel.kallsyms])\n",
                );
            }
            1 | 2 => {
                both(&format!("sched:sched_switch: prev_comm={name} prev_pid="), Some(pid), " prev_prio=120");
                both(&format!(" prev_state=S ==> next_comm={other} next_pid="), Some(other_pid), "");
                both(" next_prio=120\n", None, "");
            }
            kind => {
                let event = if kind < 6 { "sched_waking" } else { "sched_wakeup" };
                both(&format!("sched:{event}: comm={other} pid="), Some(other_pid), " prio=120");
                both(&format!(" target_cpu={:03}\n", random.below(4)), None, "");
            }
        }
        self.capture.extend(line.split_inclusive('\n').map(str::to_owned));
    }
}

/// Numbers without a pattern that is worth the name (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) % limit
    }
}
