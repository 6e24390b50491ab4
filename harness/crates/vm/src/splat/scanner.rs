//! Finding splats in a console that arrives in pieces.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::block::Block;
use super::known::KnownMessages;
use super::line::{Line, split};
use super::phrase::{self, Found};
use super::{Splat, SplatKind};
use crate::END_OF_REQUEST;

/// A line longer than this is judged in parts: a console without line ends must not fill memory.
const LINE_MAX: usize = 1 << 16;
/// How much of a part is judged again with the next one, so that a phrase across the cut is found.
const OVERLAP: usize = 1 << 12;
/// The longest prefix of a record, which may lie across the cut.
const PREFIX_MAX: usize = 64;
/// How many splats are kept. As many panics are kept besides.
const SPLATS_MAX: usize = 256;

/// What the kernel prints before a record when the ones before it were overwritten (`console_prepend_dropped`,
/// kernel/printk/printk.c:2992) or did not fit (`setup_log_buf`, 1255).
static LOST: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\*\* (\d{1,18}) printk messages dropped \*\*$|^printk: dropped (\d{1,18}) messages$")
        .expect("the pattern is valid")
});
static MARK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(&format!("^{END_OF_REQUEST}([0-9a-f]{{16}})$")).expect("the pattern is valid")
});

/// Finds splats in a console that arrives in pieces of any size.
#[derive(Debug, Default)]
pub struct SplatScanner {
    known: KnownMessages,
    /// The known messages that have come, by their number in the guest's list.
    seen: BTreeSet<usize>,
    /// What has come of a line that has not ended.
    line: Vec<u8>,
    /// What begins before this in `line` has been judged.
    judged: usize,
    /// Splats of which no more lines come.
    done: Vec<Splat>,
    open: Option<Block>,
    lost: u64,
    mark: Option<u64>,
}

impl SplatScanner {
    /// A scanner to which the guest's known messages are no splats.
    pub fn new(known: KnownMessages) -> SplatScanner {
        SplatScanner { known, ..SplatScanner::default() }
    }

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

    /// The known messages that have come, by their number in the guest's list.
    pub fn seen(&self) -> &BTreeSet<usize> {
        &self.seen
    }

    /// How many messages the kernel says that the console does not have.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The request whose end the console has last shown: its nonce. 0 is the agent's greeting.
    pub fn mark(&self) -> Option<u64> {
        self.mark
    }

    fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (part, rest) = bytes.split_at(bytes.len().min(LINE_MAX - self.line.len()));
            self.line.extend(part);
            bytes = rest;
            if self.line.len() == LINE_MAX {
                self.judge_line(false);
                self.line.drain(..LINE_MAX - OVERLAP);
                self.judged = self.judged.saturating_sub(LINE_MAX - OVERLAP);
            }
        }
    }

    fn end_line(&mut self) {
        self.judge_line(true);
        self.judged = 0;
        self.line.clear();
    }

    /// Judge what has come of a line of the console. Of one that has not ended, text of unknown origin is judged again
    /// with what follows, unless it is a splat already.
    fn judge_line(&mut self, is_whole: bool) {
        let console = std::mem::take(&mut self.line);
        let lines = split(&console);
        let (last, judged) = (lines.len() - 1, self.judged);
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.start >= judged) {
            let is_whole = is_whole || at < last;
            if is_whole || line.is_logged() || phrase::find(&line.text).is_some() {
                self.judge(line);
                if !is_whole {
                    self.judged = console.len() - PREFIX_MAX;
                }
            }
        }
        drop(lines);
        self.line = console;
    }

    fn judge(&mut self, line: &Line<'_>) {
        if let Some(count) = LOST.captures(&line.text) {
            let count = count.get(1).or(count.get(2)).and_then(|count| count.as_str().parse().ok());
            self.lost = self.lost.saturating_add(count.unwrap_or(1));
            return;
        }
        if !line.is_logged() {
            // A process, or firmware. Its words may be what is left of a line of the kernel's: they are a splat, but
            // neither begin nor end a block.
            if let Some(found) = phrase::find(&line.text).filter(|found| !found.announces) {
                let splat = self.new_block(found, line).map(Block::into_splat);
                self.done.extend(splat);
            }
            return;
        }
        if let Some(mark) = MARK.captures(&line.text).filter(|_| line.of_process) {
            self.mark = u64::from_str_radix(&mark[1], 16).ok();
            return;
        }
        if !line.is_severe() {
            if let Some(block) = &mut self.open {
                block.take_beside(line);
            }
            return;
        }
        let known: Vec<usize> = self.known.matches(&line.text).collect();
        if !known.is_empty() {
            self.seen.extend(known);
            return;
        }
        let found = phrase::find(&line.text);
        let is_taken = self.open.as_mut().is_some_and(|block| match found {
            Some(found) => block.take_phrase(found, line),
            None => block.take(line),
        });
        if !is_taken && !line.text.is_empty() {
            self.close();
            let found = found.unwrap_or(Found { kind: SplatKind::Message, announces: false });
            self.open = self.new_block(found, line);
        }
    }

    fn new_block(&self, found: Found, line: &Line<'_>) -> Option<Block> {
        let max = if found.kind == SplatKind::Panic { 2 * SPLATS_MAX } else { SPLATS_MAX };
        (self.done.len() < max).then(|| Block::new(found, line, self.mark))
    }

    fn close(&mut self) {
        self.done.extend(self.open.take().map(Block::into_splat));
    }
}
