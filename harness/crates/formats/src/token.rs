//! Tokens, and a line in pieces: its tokens and the text between them, with nothing left out.

use std::ops::Range;

/// What a token stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TokenKind {
    /// A pointer as `%p` prints it.
    Ptr,
    /// A process or thread id.
    Pid,
    /// A CPU's number.
    Cpu,
    /// A time: seconds with 6 or 9 decimals, or a whole number where the clock or the tool counts
    /// something else (nanoseconds in perf's dump, a timebase's ticks).
    Ts,
    /// A task's name.
    Comm,
    /// A kernel symbol, with its offset and the function's size where they are printed, and with its
    /// address where one stands beside it. A module's or object's name beside it is literal.
    Sym,
    /// A decimal number.
    Number,
    /// A hexadecimal number with its `0x` that depends on the recording: a place in perf's file, or
    /// an instruction's address that perf prints without a symbol. It is not hashed as a pointer is.
    Hex,
    /// The state of the CPU beside an event of the trace: whether interrupts are off, whether the task
    /// is about to be preempted, what it was interrupted by, and depths.
    Flags,
}

/// A span of a line that varies by nature. Padding belongs to it where the format pads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// Its first byte in the line.
    pub start: usize,
    /// The byte after its last.
    pub end: usize,
    /// What it stands for.
    pub kind: TokenKind,
}

impl Token {
    /// A token that covers `span`.
    pub(crate) fn new(span: Range<usize>, kind: TokenKind) -> Token {
        Token { start: span.start, end: span.end, kind }
    }

    /// Its value: its text without padding.
    pub fn value<'l>(&self, line: &'l [u8]) -> &'l [u8] {
        line[self.start..self.end].trim_ascii()
    }
}

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text that does not vary: its bytes in the line. Never empty.
    Literal(Range<usize>),
    /// A span that varies by nature. Never empty.
    Token(Token),
}

impl Piece {
    /// Its bytes in the line.
    pub fn span(&self) -> Range<usize> {
        match self {
            Piece::Literal(span) => span.clone(),
            Piece::Token(token) => token.start..token.end,
        }
    }
}
