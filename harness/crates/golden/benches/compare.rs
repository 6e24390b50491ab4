//! `goldtrace bench compare`.
//!
//! Each measurement has a process of its own, as a process' peak of memory never falls. The
//! comparison is measured from bytes in memory and a golden that is read, as a run has them; `diff`
//! from its start to its end, with files that are in the page cache.

use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use serde::{Deserialize, Serialize};

use super::super::status::{ExitStatus, Stop};
use super::sample::{FORMAT, Sample};
use super::{median, spread};
use golden::{Bindings, Edit, Facts, Golden, compare};

#[derive(Debug, Args)]
pub(super) struct CompareBench {
    /// How many lines the capture has
    #[arg(long, default_value = "1000000", value_parser = clap::value_parser!(u32).range(1000..=10_000_000))]
    lines: u32,
    /// How often each measurement is made; the median counts
    #[arg(long, default_value = "5", value_parser = clap::value_parser!(u16).range(1..=100))]
    rounds: u16,
    /// Measure one comparison in this process: the golden and the capture
    #[arg(long, hide = true, num_args = 2, value_names = ["GOLDEN", "CAPTURE"])]
    measure: Option<Vec<Utf8PathBuf>>,
}

/// Lines that are changed, one by one and all over the capture.
const CHANGED: usize = 100;
/// Lines that are reversed in the middle of the capture.
const REVERSED: usize = 10_000;

/// What one process has measured. Times in seconds, memory in bytes.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Measured {
    parse: f64,
    compare: f64,
    /// What the comparison took at its peak, beyond the golden and the capture in memory.
    memory: u64,
    /// What the whole process took at its peak: the golden as text and as patterns, the capture, and
    /// the comparison.
    whole: u64,
    passes: bool,
    same: usize,
    missing: usize,
    unexpected: usize,
}

impl CompareBench {
    pub(super) fn run(&self) -> Result<ExitStatus, Stop> {
        if let Some([golden, capture]) = self.measure.as_deref() {
            let measured = measure(golden, capture).map_err(Stop::Infrastructure)?;
            anstream::println!("{}", serde_json::to_string(&measured).map_err(io::Error::from)?);
            return Ok(ExitStatus::Success);
        }
        self.all().map_err(Stop::Infrastructure)?;
        Ok(ExitStatus::Success)
    }

    fn all(&self) -> anyhow::Result<()> {
        let dir = tempfile::tempdir()?;
        let dir = Utf8Path::from_path(dir.path()).context("a temporary folder has a UTF-8 name")?;
        let sample = Sample::new(self.lines as usize);
        let (golden, original) = (dir.join("golden"), dir.join("original"));
        std::fs::write(&golden, &sample.golden)?;
        std::fs::write(&original, sample.capture.concat())?;
        let mut lines = sample.capture;
        let same = dir.join("same");
        std::fs::write(&same, lines.concat())?;

        let step = lines.len() / CHANGED.min(lines.len());
        let changed = dir.join("changed");
        let kept = lines.clone();
        for line in lines.iter_mut().skip(step / 2).step_by(step).take(CHANGED) {
            line.insert_str(line.len() - 1, " changed");
        }
        std::fs::write(&changed, lines.concat())?;

        lines = kept;
        let half = REVERSED.min(lines.len() / 2) / 2;
        let middle = lines.len() / 2;
        lines[middle - half..middle + half].reverse();
        let reversed = dir.join("reversed");
        std::fs::write(&reversed, lines.concat())?;
        drop(lines);

        let sizes = [std::fs::metadata(&golden)?.len(), std::fs::metadata(&original)?.len()];
        let multiple = |bytes: u64| bytes as f64 / (sizes[0] + sizes[1]) as f64;
        anstream::println!(
            "{} lines, a golden of {:.1} MB and a capture of {:.1} MB; median of {} (min, max)",
            self.lines,
            megabytes(sizes[0]),
            megabytes(sizes[1]),
            self.rounds
        );
        anstream::println!(
            "{:24} {:>24} {:>8} {:>24} {:>8} {:>7} {:>7}  lines missing, unexpected",
            "capture",
            "compare (s)",
            "MB/s",
            "diff -u (s)",
            "ratio",
            "memory",
            "whole"
        );
        let mut parse = Vec::new();
        let rows = [("matching", same), ("100 lines changed", changed), ("10,000 lines reversed", reversed)];
        for (name, capture) in rows {
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            let mut last = None;
            // The two alternate, so that a change in the host's load meets both. The first round
            // fills the page cache and does not count.
            for round in 0..=self.rounds {
                let measured = in_a_process(&golden, &capture)?;
                let diff = diff(&original, &capture)?;
                if round > 0 {
                    parse.push(Duration::from_secs_f64(measured.parse));
                    ours.push(Duration::from_secs_f64(measured.compare));
                    theirs.push(diff);
                }
                last = Some(measured);
            }
            let Some(last) = last else { continue };
            anyhow::ensure!(
                last.passes == (name == "matching"),
                "the verdict on {name:?} is wrong: {last:?}"
            );
            let (our, their) = (median(&mut ours), median(&mut theirs));
            anstream::println!(
                "{name:24} {:>24} {:>8.0} {:>24} {:>8.2} {:>6.2}x {:>6.2}x  {}, {}",
                spread(&mut ours),
                megabytes(sizes[1]) / our.as_secs_f64(),
                spread(&mut theirs),
                our.as_secs_f64() / their.as_secs_f64(),
                multiple(last.memory),
                multiple(last.whole),
                last.missing,
                last.unexpected
            );
        }
        anstream::println!("reading the golden takes {} s before that", spread(&mut parse));
        anstream::println!(
            "MB/s are of the capture; memory is what the comparison adds at its peak, whole is the peak of the\n\
             process that reads both files and compares them, each as a multiple of both files' size"
        );
        Ok(())
    }
}

fn measure(golden: &Utf8Path, capture: &Utf8Path) -> anyhow::Result<Measured> {
    let (text, capture) = (std::fs::read(golden)?, std::fs::read(capture)?);
    let start = Instant::now();
    let golden = Golden::parse(golden, text)
        .map_err(|faults| anyhow::anyhow!("the golden has {} faults", faults.len()))?;
    let parse = start.elapsed().as_secs_f64();
    // From here on the peak is that of the comparison alone (proc(5)).
    let reading = peak()?;
    std::fs::write("/proc/self/clear_refs", "5").context("failed to reset the peak of memory")?;
    let before = peak()?;
    let start = Instant::now();
    let found = compare(&golden, &capture, FORMAT, &Facts::default(), &mut Bindings::new());
    let time = start.elapsed().as_secs_f64();
    let comparing = peak()?;
    let count = |wanted: fn(&Edit) -> bool| found.edits.iter().filter(|edit| wanted(edit)).count();
    Ok(Measured {
        parse,
        compare: time,
        memory: comparing - before,
        whole: reading.max(comparing),
        passes: found.passes(),
        same: count(|edit| matches!(edit, Edit::Same { .. })),
        missing: count(|edit| matches!(edit, Edit::Missing { .. })),
        unexpected: count(|edit| matches!(edit, Edit::Unexpected { .. })),
    })
}

/// The most memory that this process has had at once, in bytes.
fn peak() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM in proc")?;
    let kib = line.trim().trim_end_matches(" kB").parse::<u64>().context("VmHWM is no number")?;
    Ok(kib * 1024)
}

fn in_a_process(golden: &Utf8Path, capture: &Utf8Path) -> anyhow::Result<Measured> {
    let program = std::env::current_exe().context("failed to find this program's own file")?;
    let output = Command::new(program)
        .args(["bench", "compare", "--measure"])
        .args([golden, capture])
        .stderr(Stdio::inherit())
        .output()
        .context("failed to start the measurement")?;
    anyhow::ensure!(output.status.success(), "the measurement ended with {}", output.status);
    serde_json::from_slice(&output.stdout).context("failed to read the measurement")
}

/// From the start of `diff -u` to its end.
fn diff(old: &Utf8Path, new: &Utf8Path) -> anyhow::Result<Duration> {
    let start = Instant::now();
    let mut child = Command::new("diff")
        .arg("-u")
        .args([old, new])
        .stdout(Stdio::piped())
        .spawn()
        .context("failed to start diff")?;
    if let Some(mut text) = child.stdout.take() {
        io::copy(&mut text, &mut io::sink())?;
    }
    let status = child.wait()?;
    let time = start.elapsed();
    // 1 says that the files differ (diff(1)).
    anyhow::ensure!(matches!(status.code(), Some(0 | 1)), "diff ended with {status}");
    Ok(time)
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
