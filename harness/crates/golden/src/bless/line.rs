//! A line of a capture as a careful person would write it into a golden.

use std::collections::BTreeMap;

use formats::{Format, TokenKind};

use super::names::Namer;
use crate::{Bindings, Hole, Namespace, Pattern, PatternBuilder};

/// A line that no golden has, as it would be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct New {
    /// With its numbers.
    pub(super) strict: Pattern,
    /// With holes for them.
    pub(super) masked: Pattern,
}

/// A line of a capture as a golden would have it; `None` when it is not text.
pub(super) fn new_line(
    line: &[u8],
    format: Format,
    namer: &mut Namer,
    bound: &Bindings,
    fresh: &mut BTreeMap<String, usize>,
) -> Option<New> {
    let text = std::str::from_utf8(line).ok()?;
    let (mut strict, mut masked) = (PatternBuilder::default(), PatternBuilder::default());
    let mut at = 0;
    for token in format.tokens(line) {
        strict.literal(&text[at..token.start]);
        masked.literal(&text[at..token.start]);
        at = token.end;
        let hole = |name| Hole::Token { kind: token.kind, name };
        match token.kind {
            TokenKind::Number if format.numbers_are_significant() => {
                strict.literal(&text[token.start..token.end]);
                masked.hole(hole(None));
            }
            TokenKind::Ptr => {
                let value = std::str::from_utf8(token.value(line)).ok()?;
                let name = bound.name(Namespace::Token(TokenKind::Ptr), value.as_bytes()).map(str::to_owned);
                let name = name.unwrap_or_else(|| {
                    let next = fresh.len();
                    namer.fresh(*fresh.entry(value.to_owned()).or_insert(next))
                });
                strict.hole(hole(Some(name.clone())));
                masked.hole(hole(Some(name)));
            }
            _ => {
                strict.hole(hole(None));
                masked.hole(hole(None));
            }
        }
    }
    strict.literal(&text[at..]);
    masked.literal(&text[at..]);
    Some(New { strict: strict.take(), masked: masked.take() })
}
