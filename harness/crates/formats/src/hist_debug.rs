//! The `hist_debug` file of an event (CONFIG_HIST_TRIGGERS_DEBUG).
//!
//! It prints two pointers, both with `%p` (kernel/trace/trace_events_hist.c,
//! `hist_trigger_debug_show` and `hist_field_debug_show`, Linux 7.2): the address of a histogram
//! after `hist_data: `, and that of a variable's histogram after `var.hist_data: `. `%p` hashes an
//! address to 32 bits and prints 16 hexadecimal digits; before the hash key is there, a fixed text.

use super::{Token, TokenKind, Violation, number};

const MARKS: [&[u8]; 2] = [b"hist_data: ", b"var.hist_data: "];
const DIGITS: usize = 16;
/// What `%p` prints while there is no hash key yet (lib/vsprintf.c).
const NOT_READY: &[u8] = b"(____ptrval____)";

pub(super) fn tokens(line: &[u8], found: &mut Vec<Token>) {
    let hashed =
        pointer(line).filter(|(_, text)| text.len() == DIGITS && text.iter().all(u8::is_ascii_hexdigit));
    found.extend(hashed.map(|(at, text)| Token::new(at..at + text.len(), TokenKind::Ptr)));
}

/// What stands where a pointer belongs, with its place in the line.
fn pointer(line: &[u8]) -> Option<(usize, &[u8])> {
    let indent = line.iter().take_while(|b| **b == b' ').count();
    let mark = MARKS.iter().find(|mark| line[indent..].starts_with(mark))?;
    let at = indent + mark.len();
    Some((at, &line[at..]))
}

pub(super) fn violations(lines: &[&[u8]]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut counts = FieldCounts::default();
    for (at, line) in lines.iter().enumerate() {
        let at = at + 1;
        if let Some((_, text)) = pointer(line) {
            if let Some(message) = wrong_pointer(text) {
                found.push(Violation { line: at, message });
            }
        }
        if let Some(message) = counts.take(line) {
            found.push(Violation { line: at, message });
        }
    }
    found
}

fn wrong_pointer(text: &[u8]) -> Option<String> {
    let shown = String::from_utf8_lossy(text);
    if text == NOT_READY {
        return Some(format!("the kernel had no key to hash pointers with yet: `{shown}`"));
    }
    if text.len() != DIGITS || !text.iter().all(u8::is_ascii_hexdigit) {
        return Some(format!("a pointer is 16 hexadecimal digits, found `{shown}`"));
    }
    if !text.starts_with(b"00000000") {
        return Some(format!("a hashed pointer has 8 leading zeros, found `{shown}`: an address has leaked"));
    }
    None
}

/// The counts of one histogram: values and keys are all its fields.
#[derive(Default)]
struct FieldCounts {
    vals: Option<u64>,
    keys: Option<u64>,
}

impl FieldCounts {
    fn take(&mut self, line: &[u8]) -> Option<String> {
        let count = |name: &[u8]| number(line.strip_prefix(name)?);
        if let Some(vals) = count(b"n_vals: ") {
            *self = FieldCounts { vals: Some(vals), keys: None };
        } else if let Some(keys) = count(b"n_keys: ") {
            self.keys = Some(keys);
        } else if let Some(fields) = count(b"n_fields: ") {
            let (vals, keys) = (self.vals?, self.keys?);
            if vals.checked_add(keys) != Some(fields) {
                return Some(format!("n_vals {vals} and n_keys {keys} are not n_fields {fields}"));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

    #[test]
    fn both_pointers_are_tokens_and_nothing_else_is() {
        let span = |line: &str| {
            let tokens = Format::HistDebug.tokens(line.as_bytes());
            tokens.first().map(|t| line[t.start..t.end].to_owned())
        };
        assert_eq!(span("hist_data: 000000009536f554").as_deref(), Some("000000009536f554"));
        assert_eq!(span("      var.hist_data: 000000009536f554").as_deref(), Some("000000009536f554"));
        for line in [
            "",
            "n_vals: 3",
            "hist_data: (____ptrval____)",
            "hist_data: 9536f554",
            "x hist_data: 000000009536f554",
        ] {
            assert_eq!(span(line), None, "{line}");
        }
    }

    fn messages(text: &str) -> Vec<String> {
        let lines: Vec<&[u8]> = text.lines().map(str::as_bytes).collect();
        violations(&lines).into_iter().map(|v| format!("{}: {}", v.line, v.message)).collect()
    }

    #[test]
    fn rules() {
        assert_eq!(
            messages("hist_data: 000000009536f554\nn_vals: 3\nn_keys: 2\nn_fields: 5\n"),
            Vec::<String>::new()
        );
        assert_eq!(
            messages("n_vals: 3\nn_keys: 2\nn_fields: 6"),
            ["3: n_vals 3 and n_keys 2 are not n_fields 6"]
        );
        assert!(messages("hist_data: (____ptrval____)")[0].contains("no key"));
        assert!(messages("hist_data: c000000002a53800")[0].contains("leaked"));
        assert!(messages("hist_data: 12")[0].contains("16 hexadecimal digits"));
    }
}
