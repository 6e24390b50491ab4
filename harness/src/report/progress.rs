//! The progress of builds: a spinner on a terminal, plain lines elsewhere.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use image::ProgressSink;

use super::print::note;
use super::text::ReportText;

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Spinners that move.
    Terminal,
    /// A line for each begin and end, and now and then one for a long step.
    Lines,
}

/// How often a long step is mentioned in plain lines.
const EVERY: Duration = Duration::from_secs(30);

struct Step {
    bar: Option<ProgressBar>,
    start: Instant,
    lines: u64,
    mentioned: Instant,
}

/// Shows a build's progress on standard error.
pub struct Progress {
    style: Style,
    bars: MultiProgress,
    steps: Mutex<BTreeMap<String, Step>>,
}

impl Progress {
    /// Spinners where standard error is a terminal.
    pub fn to_stderr() -> Progress {
        Progress::new(if std::io::stderr().is_terminal() { Style::Terminal } else { Style::Lines })
    }

    /// Show in a given style.
    pub fn new(style: Style) -> Progress {
        Progress { style, bars: MultiProgress::new(), steps: Mutex::default() }
    }

    fn say(&self, text: &str) {
        match self.style {
            // A line printed past the spinners would be overwritten by them.
            Style::Terminal => drop(self.bars.println(shown(text))),
            Style::Lines => note(&ReportText::of(format_args!("{text}\n"))),
        }
    }
}

fn shown(text: &str) -> String {
    ReportText::of(format_args!("{text}")).to_string()
}

impl ProgressSink for Progress {
    fn begin(&self, step: &str) {
        let now = Instant::now();
        let bar = (self.style == Style::Terminal).then(|| {
            let bar = self.bars.add(ProgressBar::new_spinner());
            let style =
                ProgressStyle::with_template("{spinner} {prefix}  {elapsed}  {pos} lines  {wide_msg}");
            bar.set_style(style.expect("the template is valid"));
            bar.set_prefix(shown(step));
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        if bar.is_none() {
            self.say(&format!("{step}: begun"));
        }
        let entry = Step { bar, start: now, lines: 0, mentioned: now };
        self.steps.lock().expect("no panic while held").insert(step.to_owned(), entry);
    }

    fn line(&self, step: &str, line: &str) {
        let mention = {
            let mut steps = self.steps.lock().expect("no panic while held");
            let Some(entry) = steps.get_mut(step) else { return };
            entry.lines += 1;
            if let Some(bar) = &entry.bar {
                bar.set_position(entry.lines);
                bar.set_message(shown(line.trim()));
                return;
            }
            if entry.mentioned.elapsed() < EVERY {
                return;
            }
            entry.mentioned = Instant::now();
            format!(
                "{step}: {} s, {} lines of output, now: {}",
                entry.start.elapsed().as_secs(),
                entry.lines,
                line.trim()
            )
        };
        self.say(&mention);
    }

    fn end(&self, step: &str, success: bool, elapsed: Duration) {
        let entry = self.steps.lock().expect("no panic while held").remove(step);
        if let Some(bar) = entry.and_then(|entry| entry.bar) {
            bar.finish_and_clear();
        }
        let word = if success { "done" } else { "failed" };
        self.say(&format!("{step}: {word} in {:.1} s", elapsed.as_secs_f64()));
    }

    fn notice(&self, text: &str) {
        self.say(text);
    }
}
