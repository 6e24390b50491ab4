//! Showing tokens, for the tests of this module.

use super::{Format, Piece, TokenKind};

/// The line with its tokens as `<kind:text>`.
pub(super) fn show(format: Format, line: &str) -> String {
    let shown = format.pieces(line.as_bytes()).into_iter().map(|piece| {
        let text = &line[piece.span()];
        match piece {
            Piece::Literal(_) => text.to_owned(),
            Piece::Token(token) => format!("<{}:{text}>", name(token.kind)),
        }
    });
    shown.collect()
}

fn name(kind: TokenKind) -> &'static str {
    match kind {
        TokenKind::Ptr => "ptr",
        TokenKind::Pid => "pid",
        TokenKind::Cpu => "cpu",
        TokenKind::Ts => "ts",
        TokenKind::Comm => "comm",
        TokenKind::Sym => "sym",
        TokenKind::Number => "number",
        TokenKind::Hex => "hex",
        TokenKind::Flags => "flags",
    }
}

/// The rules that a capture breaks, as `LINE: MESSAGE`.
pub(super) fn messages(format: Format, text: &str) -> Vec<String> {
    let lines: Vec<&[u8]> = text.lines().map(str::as_bytes).collect();
    format.violations(&lines).into_iter().map(|v| format!("{}: {}", v.line, v.message)).collect()
}
