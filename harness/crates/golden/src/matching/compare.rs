//! A golden against a capture.

use std::ops::Range;

use formats::{Format, Violation};

use super::align::align;
use super::alignment::{Alignment, Edit, Followed, Seen, TakenPart};
use super::bindings::{BindingSite, Bindings, Conflict};
use super::lines::Lines;
use super::program::Program;
use super::rules;
use super::select::select;
use crate::language::condition::Facts;
use crate::language::tree::Golden;

/// A `#@ xfail` of the golden that may apply to the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownBug {
    /// The golden's line of its `#@ xfail`, from 1.
    pub line: usize,
    /// Its reason.
    pub reason: String,
    /// What the capture has.
    pub seen: Seen,
    /// The capture's lines that belong to the part, from 1; empty for an empty part.
    pub capture: Range<usize>,
}

/// What a comparison found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// Every line of both, in order.
    pub edits: Vec<Edit>,
    /// No line is left over.
    pub same_shape: bool,
    /// Names and values that do not go together.
    pub conflicts: Vec<Conflict>,
    /// Rules of the format that the capture breaks, and lines that the golden forbids. A broken rule
    /// at a line of an actual part that was seen is that bug's, and not listed.
    pub violations: Vec<Violation>,
    /// The capture's last line has no newline.
    pub missing_final_newline: bool,
    /// The known bugs whose condition holds, in the order of the golden.
    pub known_bugs: Vec<KnownBug>,
}

impl Comparison {
    /// Whether a line of the capture, from 1, is one that a known bug prints, and no other line.
    pub fn is_in_actual_part(&self, line: usize) -> bool {
        is_in_actual_part(&self.known_bugs, line)
    }

    /// Whether the capture is what the golden says, whichever part of known bugs it has.
    pub fn passes(&self) -> bool {
        self.same_shape
            && self.conflicts.is_empty()
            && self.violations.is_empty()
            && !self.missing_final_newline
    }
}

/// The lines of a capture without their newlines, and whether the last one has none.
pub fn split_lines(capture: &[u8]) -> (Vec<&[u8]>, bool) {
    let mut lines = Vec::new();
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', capture) {
        lines.push(&capture[start..end]);
        start = end + 1;
    }
    let last = &capture[start..];
    lines.extend(Some(last).filter(|last| !last.is_empty()));
    (lines, !last.is_empty())
}

/// Compare a capture with its golden, for a guest with these facts. Names keep their meaning in
/// `bindings` from one capture of a trial to the next.
pub fn compare(
    golden: &Golden,
    capture: &[u8],
    format: Format,
    facts: &Facts,
    bindings: &mut Bindings,
) -> Comparison {
    let (texts, missing_final_newline) = split_lines(capture);
    let selected = select(golden, facts);
    let program = Program::new(&selected.slots);
    let lines = Lines::new(&texts, format);
    let found = align(&program, &lines);
    let known_bugs: Vec<KnownBug> =
        found.parts.iter().map(|part| known_bug(&program, &found, part)).collect();
    let mut same_shape = found.followed == Followed::Fits;
    let mut violations = rules::broken(golden, &selected, format, &texts, &found.edits, |line| {
        is_in_actual_part(&known_bugs, line)
    });
    if found.followed == Followed::TooManyWays {
        // What was found for showing may be an alignment all the same.
        same_shape = !found.edits.iter().any(Edit::is_left_over);
        let message = "this golden leaves more ways open than can be followed: narrow its `any` and `repeat`";
        violations.extend((!same_shape).then(|| Violation { line: 1, message: message.to_owned() }));
    }
    let mut conflicts = Vec::new();
    for (row, line) in found.named {
        let site = BindingSite { golden: golden.file.clone(), golden_line: row.line, capture_line: line + 1 };
        let text = lines.text(line);
        let spans = row.pattern.hole_spans(text, &lines.tokens(line)).unwrap_or_default();
        for (hole, span) in row.pattern.holes().zip(spans) {
            conflicts.extend(bindings.bind_or_check(hole, text[span].trim_ascii(), &site).err().map(|c| *c));
        }
    }
    Comparison { edits: found.edits, same_shape, conflicts, violations, missing_final_newline, known_bugs }
}

fn is_in_actual_part(known_bugs: &[KnownBug], line: usize) -> bool {
    known_bugs.iter().any(|bug| bug.seen == Seen::Actual && bug.capture.contains(&line))
}

fn known_bug(program: &Program<'_>, found: &Alignment<'_>, part: &TakenPart) -> KnownBug {
    let bug = program.bugs[part.bug];
    let edits = found.pairs_of(part).unwrap_or(0..0);
    let lines = || found.edits[edits.clone()].iter().filter_map(Edit::capture_line);
    KnownBug {
        line: bug.line,
        reason: bug.xfail.reason.clone(),
        seen: found.seen(part),
        capture: lines().next().map_or(0..0, |first| first..lines().next_back().unwrap_or(first) + 1),
    }
}
