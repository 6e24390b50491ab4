//! `cargo bench -p goldtrace-golden --bench compare [-- LINES]`: the comparison of a long capture
//! with its golden, a hole in every line, beside `diff -u` of two such captures.
//!
//! The comparison is measured from bytes in memory and a parsed golden, as a run has them, in the time
//! that its one thread had a CPU; `diff` from its start to its exit, with files in the page cache.

mod sample;

use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use golden::{Bindings, Comparison, Edit, Facts, Golden, compare};

use sample::{FORMAT, Sample};

const LINES: usize = 1_000_000;
/// How often each measurement is made; the median counts.
const ROUNDS: usize = 5;
/// Lines that are changed, one by one and all over the capture.
const CHANGED: usize = 100;
/// Lines that are reversed in the middle of the capture.
const REVERSED: usize = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo adds `--bench`; the only argument of ours is a number.
    let number = std::env::args().skip(1).find(|argument| argument != "--bench");
    let lines = number.map_or(Ok(LINES), |number| number.parse())?;
    let sample = Sample::new(lines);
    let start = Instant::now();
    let golden = Golden::parse(Utf8Path::new("sample.golden"), sample.golden.as_bytes())
        .map_err(|errors| format!("the sample's golden has {} errors", errors.len()))?;
    let parsing = start.elapsed();

    let dir = tempfile::tempdir()?;
    let original = dir.path().join("original");
    let matching = sample.capture.concat();
    std::fs::write(&original, &matching)?;
    println!(
        "{lines} lines, a golden of {:.1} MB (parsed in {:.2} s) and a capture of {:.1} MB; median of {ROUNDS} (min, max)",
        megabytes(sample.golden.len()),
        parsing.as_secs_f64(),
        megabytes(matching.len()),
    );
    println!(
        "{:22} {:>22} {:>6} {:>22} {:>9}  lines missing, extra",
        "capture", "compare (s)", "MB/s", "diff -u (s)", "peak (MB)"
    );
    let changes: [(&str, Change); 3] =
        [("matching", |_| ()), ("100 lines changed", change), ("10,000 lines reversed", reverse)];
    for (name, edit) in changes {
        let mut capture = sample.capture.clone();
        edit(&mut capture);
        let capture = capture.concat();
        let other = dir.path().join("other");
        std::fs::write(&other, &capture)?;
        let (mut ours, mut theirs, mut peaks) = (Vec::new(), Vec::new(), Vec::new());
        let mut found = None;
        // Both alternate, so that a change in the machine's load meets both.
        for _ in 0..ROUNDS {
            drop(found.take());
            let (time, peak, comparison) = measure(&golden, capture.as_bytes())?;
            ours.push(time);
            peaks.push(peak);
            theirs.push(diff(&original, &other)?);
            found = Some(comparison);
        }
        let found = found.ok_or("no round was made")?;
        if found.passes() != (name == "matching") {
            return Err(format!("wrong verdict on the capture `{name}`").into());
        }
        let count = |wanted: fn(&Edit) -> bool| found.edits.iter().filter(|edit| wanted(edit)).count();
        println!(
            "{name:22} {:>22} {:>6.0} {:>22} {:>9.0}  {}, {}",
            spread(&mut ours),
            megabytes(capture.len()) / ours[ROUNDS / 2].as_secs_f64(),
            spread(&mut theirs),
            megabytes(peaks.into_iter().max().unwrap_or_default()),
            count(|edit| matches!(edit, Edit::Missing { .. })),
            count(|edit| matches!(edit, Edit::Unexpected { .. })),
        );
    }
    println!("MB/s are of the capture; the peak is what the comparison adds to the memory of the process");
    Ok(())
}

/// A change of a capture.
type Change = fn(&mut [String]);

fn change(lines: &mut [String]) {
    let step = lines.len() / CHANGED.min(lines.len());
    for line in lines.iter_mut().skip(step / 2).step_by(step).take(CHANGED) {
        line.insert_str(line.len() - 1, " changed");
    }
}

fn reverse(lines: &mut [String]) {
    let (middle, half) = (lines.len() / 2, REVERSED.min(lines.len() / 2) / 2);
    lines[middle - half..middle + half].reverse();
}

/// The CPU time that a comparison takes, the most memory that it adds in bytes, and what it finds.
fn measure(golden: &Golden, capture: &[u8]) -> Result<(Duration, usize, Comparison), Box<dyn Error>> {
    // From here on the peak is that of the comparison alone (proc(5)).
    std::fs::write("/proc/self/clear_refs", "5")?;
    let before = peak()?;
    let start = cpu_time()?;
    let found = black_box(compare(golden, capture, FORMAT, &Facts::default(), &mut Bindings::new()));
    Ok((cpu_time()?.saturating_sub(start), peak()?.saturating_sub(before), found))
}

/// The time that this thread has had a CPU (the first number of schedstat, in nanoseconds).
fn cpu_time() -> Result<Duration, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    Ok(Duration::from_nanos(text.split(' ').next().unwrap_or_default().parse()?))
}

/// The most memory that this process has had at once since the last reset, in bytes.
fn peak() -> Result<usize, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM in proc")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<usize>()? * 1024)
}

/// From the start of `diff -u` to its exit.
fn diff(old: &Path, new: &Path) -> Result<Duration, Box<dyn Error>> {
    let start = Instant::now();
    let status = Command::new("diff").arg("-u").args([old, new]).stdout(Stdio::null()).status()?;
    // 1 says that the files differ (diff(1)).
    match status.code() {
        Some(0 | 1) => Ok(start.elapsed()),
        _ => Err(format!("diff failed: {status}").into()),
    }
}

/// The median, the least and the greatest, in seconds; sorts the times.
fn spread(times: &mut [Duration]) -> String {
    times.sort();
    let seconds = |at: usize| times[at].as_secs_f64();
    format!("{:.3} ({:.3}, {:.3})", seconds(times.len() / 2), seconds(0), seconds(times.len() - 1))
}

fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}
