//! The `hist_debug` file of an event (CONFIG_HIST_TRIGGERS_DEBUG).
//!
//! It prints two pointers, both with `%p` (kernel/trace/trace_events_hist.c,
//! `hist_trigger_debug_show` and `hist_field_debug_show`, Linux 7.2): the address of a histogram
//! after `hist_data: `, and that of a variable's histogram after `var.hist_data: `. `%p` hashes an
//! address to 32 bits and prints 16 hexadecimal digits; before the hash key is there, a fixed text. A null pointer it does
//! not hash: neither of the two can be one.

use super::row::FormatRow;
use super::{Token, TokenKind, Violation, number};

pub(super) const FORMAT: FormatRow = FormatRow {
    name: "hist_debug",
    files: &["hist_debug"],
    tokens: Some(tokens),
    violations: Some(violations),
    numbers_are_significant: true,
};

const MARKS: [&[u8]; 2] = [b"hist_data: ", b"var.hist_data: "];
const DIGITS: usize = 16;
/// What `%p` prints of a null pointer, in all runs (lib/vsprintf.c, `ptr_to_id`).
const NULL: &[u8] = b"0000000000000000";
/// What `%p` prints before there is a hash key (lib/vsprintf.c).
const NOT_READY: &[u8] = b"(____ptrval____)";

fn tokens(line: &[u8], found: &mut Vec<Token>) {
    let hashed = pointer(line)
        .filter(|(_, text)| text.len() == DIGITS && text.iter().all(u8::is_ascii_hexdigit) && *text != NULL);
    found.extend(hashed.map(|(at, text)| Token::new(at..at + text.len(), TokenKind::Ptr)));
}

/// The text in the place of a pointer, with its first byte in the line.
fn pointer(line: &[u8]) -> Option<(usize, &[u8])> {
    let indent = line.iter().take_while(|b| **b == b' ').count();
    let mark = MARKS.iter().find(|mark| line[indent..].starts_with(mark))?;
    let at = indent + mark.len();
    Some((at, &line[at..]))
}

fn violations(lines: &[&[u8]]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut counts = FieldCounts::default();
    for (at, line) in lines.iter().enumerate() {
        let at = at + 1;
        if let Some((_, text)) = pointer(line) {
            if let Some(message) = wrong_pointer(text) {
                found.push(Violation { line: at, message });
            }
        }
        if let Some(message) = counts.add(line) {
            found.push(Violation { line: at, message });
        }
    }
    found
}

fn wrong_pointer(text: &[u8]) -> Option<String> {
    let shown = String::from_utf8_lossy(text);
    if text == NOT_READY {
        return Some(format!("the kernel has no key for hashing pointers yet: found `{shown}`"));
    }
    if text.len() != DIGITS || !text.iter().all(u8::is_ascii_hexdigit) {
        return Some(format!("expected a pointer of 16 hexadecimal digits, found `{shown}`"));
    }
    if text == NULL {
        return Some("expected a hashed pointer, found a null pointer".to_owned());
    }
    if !text.starts_with(b"00000000") {
        return Some(format!(
            "expected a hashed pointer with 8 leading zeros, found `{shown}`: the kernel leaks an address"
        ));
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
    fn add(&mut self, line: &[u8]) -> Option<String> {
        let count = |name: &[u8]| number(line.strip_prefix(name)?);
        if let Some(vals) = count(b"n_vals: ") {
            *self = FieldCounts { vals: Some(vals), keys: None };
        } else if let Some(keys) = count(b"n_keys: ") {
            self.keys = Some(keys);
        } else if let Some(fields) = count(b"n_fields: ") {
            let (vals, keys) = (self.vals?, self.keys?);
            if vals.checked_add(keys) != Some(fields) {
                return Some(format!("n_vals {vals} + n_keys {keys} is not n_fields {fields}"));
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
    fn only_the_two_pointers_are_tokens() {
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
            "hist_data: 0000000000000000",
            "      var.hist_data: 0000000000000000",
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
    fn pointer_and_count_of_fields_keep_their_rules() {
        assert_eq!(
            messages("hist_data: 000000009536f554\nn_vals: 3\nn_keys: 2\nn_fields: 5\n"),
            Vec::<String>::new()
        );
        assert_eq!(
            messages("n_vals: 3\nn_keys: 2\nn_fields: 6"),
            ["3: n_vals 3 + n_keys 2 is not n_fields 6"]
        );
        assert!(messages("hist_data: (____ptrval____)")[0].contains("no key"));
        assert!(messages("hist_data: c000000002a53800")[0].contains("leaks"));
        assert_eq!(
            messages("hist_data: 0000000000000000"),
            ["1: expected a hashed pointer, found a null pointer"]
        );
        assert!(messages("hist_data: 12")[0].contains("16 hexadecimal digits"));
    }
}
