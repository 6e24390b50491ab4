//! Finding splats in a console that arrives in pieces.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::block::Block;
use super::phrase;
use super::{Splat, SplatKind};

/// A line longer than this is judged in parts: a console without line ends must not fill memory.
const LINE_MAX: usize = 1 << 16;
/// How much of a part is judged again with the next one, so that a phrase across the cut is found.
const OVERLAP: usize = 1 << 12;
/// How many splats are kept. As many panics are kept besides.
const SPLATS_MAX: usize = 256;

/// `<4>[    1.234567][    T1] `: the level when it is printed, the time, the task or CPU when it is printed.
static STAMP: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:<\d+>)?\[ *\d+\.\d{6}\](?:\[ *[TC]\d+\])? ?").expect("the pattern is valid")
});
/// Terminal control sequences, which firmware prints before the kernel's first line.
static CONTROL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\x1b(\[[0-9;?=]*[A-Za-z]|c)|\r").expect("the pattern is valid"));

/// Finds splats in a console that arrives in pieces of any size.
#[derive(Debug, Default)]
pub struct SplatScanner {
    /// What has come of a line that has not ended.
    line: Vec<u8>,
    /// A part of this line was judged and had a splat: the rest of the line is not judged.
    judged: bool,
    /// Splats of which no more lines come.
    done: Vec<Splat>,
    open: Option<Block>,
}

impl SplatScanner {
    /// Take more of the console.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.push(&rest[..end]);
            self.end_line();
            rest = &rest[end + 1..];
        }
        self.push(rest);
    }

    /// The console has ended: judge what is left.
    pub fn finish(&mut self) {
        self.end_line();
        self.close();
    }

    /// The splats so far, in the order in which they began.
    pub fn splats(&self) -> impl Iterator<Item = &Splat> {
        self.done.iter().chain(self.open.as_ref().map(Block::splat))
    }

    /// The splats so far, in the order in which they began.
    pub fn into_splats(mut self) -> Vec<Splat> {
        self.close();
        self.done
    }

    fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (part, rest) = bytes.split_at(bytes.len().min(LINE_MAX - self.line.len()));
            self.line.extend(part);
            bytes = rest;
            if self.line.len() == LINE_MAX {
                self.judged = self.judged || self.judge_line();
                self.line.drain(..LINE_MAX - OVERLAP);
            }
        }
    }

    fn end_line(&mut self) {
        if !self.judged {
            self.judge_line();
        }
        self.judged = false;
        self.line.clear();
    }

    /// Judge what has come of a line; whether it has a phrase.
    fn judge_line(&mut self) -> bool {
        let line = CONTROL.replace_all(&self.line, &b""[..]);
        let Some(found) = phrase::find(&line) else {
            if let Some(block) = &mut self.open {
                block.take(text(after_stamp(&line, line.len())));
            }
            return false;
        };
        let line = text(after_stamp(&line, found.at));
        if self.open.as_mut().is_some_and(|block| block.take_phrase(found, &line)) {
            return true;
        }
        self.close();
        let max = if found.kind == SplatKind::Panic { 2 * SPLATS_MAX } else { SPLATS_MAX };
        if self.done.len() < max {
            self.open = Some(Block::new(found, line));
        }
        true
    }

    fn close(&mut self) {
        self.done.extend(self.open.take().map(Block::into_splat));
    }
}

/// The line from after the last time stamp that begins before `at`. Before it may be text of a process that had no
/// line end.
fn after_stamp(line: &[u8], at: usize) -> &[u8] {
    let stamp = STAMP.find_iter(line).take_while(|stamp| stamp.start() < at).last();
    &line[stamp.map_or(0, |stamp| stamp.end())..]
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).trim_end().to_owned()
}
