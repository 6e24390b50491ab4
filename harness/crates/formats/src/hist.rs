//! The `hist` file of an event.
//!
//! A row is `{ KEY: VALUE, ... } VALUE: NUMBER ...`, its numbers right-aligned in ten columns.
//! `KEY.execname` prints a task's name and its pid in brackets, `KEY.syscall` a system call's name and its number, which each
//! architecture has its own of. After the rows come the totals (kernel/trace/trace_events_hist.c, `hist_trigger_print_key`,
//! `hist_trigger_entry_print` and `hist_trigger_show`, Linux 7.2). A file may hold several
//! histograms, each with its own totals.

use std::ops::RangeInclusive;

use super::row::FormatRow;
use super::{Token, TokenKind, Violation, number};

pub(super) const FORMAT: FormatRow = FormatRow {
    name: "hist",
    files: &["hist"],
    tokens: Some(tokens),
    violations: Some(violations),
    numbers_are_significant: true,
};

/// The least width of a number in a row.
const WIDTH: usize = 10;
const TOTALS: [&[u8]; 3] = [b"    Hits: ", b"    Entries: ", b"    Dropped: "];

fn tokens(line: &[u8], found: &mut Vec<Token>) {
    if let Some(name) = TOTALS.iter().find(|name| line.starts_with(name)) {
        let total = number(&line[name.len()..]);
        found.extend(total.map(|_| Token::new(name.len()..line.len(), TokenKind::Number)));
    } else if line.starts_with(b"{ ") {
        row_numbers(line, found);
        found.extend(NAMED.iter().flat_map(|named| named.tokens(line)));
        found.sort_by_key(|token| token.start);
    }
}

/// A key that prints a name and then its number in brackets: `NAME[NUMBER]`.
struct NamedKey {
    /// The width of the name, which is padded on its right.
    name: RangeInclusive<usize>,
    /// The least width of the number, which is padded on its left.
    number: usize,
    kind: TokenKind,
}

/// `KEY.execname` and `KEY.syscall`: `hist_trigger_print_key`, "%s: %-16s[%10llu]" and "%s: %-30s[%3llu]". A task's name has
/// at most 15 bytes.
const NAMED: [NamedKey; 2] = [
    NamedKey { name: 16..=16, number: WIDTH, kind: TokenKind::Pid },
    NamedKey { name: 30..=64, number: 3, kind: TokenKind::Number },
];

impl NamedKey {
    /// The numbers of such keys in a row.
    fn tokens(&self, line: &[u8]) -> Vec<Token> {
        let mut found = Vec::new();
        let mut value = None;
        for (at, byte) in line.iter().enumerate() {
            match byte {
                b':' if line[at..].starts_with(b": ") => value = Some(at + 2),
                b'[' if value.is_some_and(|value| self.name.contains(&(at - value))) => {
                    let inside = &line[at + 1..];
                    let pad = inside.iter().take_while(|b| **b == b' ').count();
                    let digits = inside[pad..].iter().take_while(|b| b.is_ascii_digit()).count();
                    let end = pad + digits;
                    let aligned = end == self.number || (pad == 0 && digits > self.number);
                    let ends_well = inside[end..].starts_with(b"],") || inside[end..].starts_with(b"] ");
                    if digits > 0 && aligned && ends_well && number(&inside[pad..end]).is_some() {
                        found.push(Token::new(at + 1..at + 1 + end, self.kind));
                        value = None;
                    }
                }
                _ => {}
            }
        }
        found
    }
}

/// The numbers of a row: each follows `: ` and is right-aligned in ten columns, or is longer.
fn row_numbers(line: &[u8], found: &mut Vec<Token>) {
    let mut at = 0;
    while let Some(colon) = line[at..].windows(2).position(|w| w == b": ") {
        let start = at + colon + 2;
        let pad = line[start..].iter().take_while(|b| **b == b' ').count();
        let digits = line[start + pad..].iter().take_while(|b| b.is_ascii_digit()).count();
        let end = start + pad + digits;
        let ends_well = matches!(line.get(end), None | Some(b' ' | b','));
        let aligned = pad + digits == WIDTH || (pad == 0 && digits > WIDTH);
        if digits > 0 && ends_well && aligned && number(&line[start + pad..end]).is_some() {
            found.push(Token::new(start..end, TokenKind::Number));
        }
        at = start.max(end);
    }
}

fn violations(lines: &[&[u8]]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut rows = Rows::default();
    for (at, line) in lines.iter().enumerate() {
        if let Some(trigger) = line.strip_prefix(b"# trigger info: ") {
            rows.by_hitcount = is_sorted_by_hitcount(trigger);
        }
        let total = TOTALS
            .iter()
            .zip(["Hits", "Entries", "Dropped"])
            .find_map(|(prefix, name)| Some((name, number(line.strip_prefix(*prefix)?)?)));
        let message = match total {
            Some((name, value)) => rows.total(name, value),
            None => rows.row(line),
        };
        found.extend(message.map(|message| Violation { line: at + 1, message }));
    }
    if rows.count > 0 {
        found.push(Violation { line: lines.len(), message: "expected totals after the rows".to_owned() });
    }
    found
}

/// The rows of one histogram so far.
#[derive(Default)]
struct Rows {
    count: u64,
    hits: Option<u64>,
    /// The kernel sorts them by hitcount, the least first.
    by_hitcount: bool,
    last: Option<u64>,
}

impl Rows {
    fn row(&mut self, line: &[u8]) -> Option<String> {
        if !line.starts_with(b"{ ") {
            return None;
        }
        if self.count == 0 {
            self.hits = Some(0);
        }
        self.count += 1;
        // With `nohitcount` a row has no hitcount, and the sum is not known.
        let hits = hitcount(line);
        self.hits = self.hits.zip(hits).and_then(|(sum, hits)| sum.checked_add(hits));
        if hits == Some(0) {
            return Some("a row with hitcount 0".to_owned());
        }
        let before = std::mem::replace(&mut self.last, hits);
        let falls = self.by_hitcount && before.zip(hits).is_some_and(|(before, hits)| hits < before);
        falls.then(|| "the rows are not sorted by hitcount".to_owned())
    }

    fn total(&mut self, name: &str, value: u64) -> Option<String> {
        let sum = if self.count == 0 { Some(0) } else { self.hits };
        match name {
            "Hits" => {
                let sum = sum.filter(|sum| *sum != value)?;
                Some(format!("Hits is {value}, but the hitcounts of the rows add up to {sum}"))
            }
            "Entries" => (value != self.count)
                .then(|| format!("Entries is {value}, but there are {} rows", self.count)),
            _ => {
                *self = Rows::default();
                None
            }
        }
    }
}

/// Whether a trigger asks for rows in the order of their hitcounts and of nothing else.
fn is_sorted_by_hitcount(trigger: &[u8]) -> bool {
    trigger.split(|b| matches!(b, b':' | b' ')).any(|part| part == b"sort=hitcount")
}

fn hitcount(line: &[u8]) -> Option<u64> {
    let mark = b"hitcount: ";
    let at = line.windows(mark.len()).rposition(|w| w == mark)? + mark.len();
    let mut numbers = Vec::new();
    row_numbers(line, &mut numbers);
    number(numbers.iter().find(|t| t.start == at)?.value(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

    fn spans(line: &str) -> Vec<&str> {
        Format::Hist.tokens(line.as_bytes()).into_iter().map(|t| &line[t.start..t.end]).collect()
    }

    #[test]
    fn number_is_a_token_with_its_padding() {
        assert_eq!(spans("{ pid:      18249 } hitcount:          1"), ["     18249", "         1"]);
        assert_eq!(
            spans("{ pid: 18446744073709551612 } hitcount: 12345678901"),
            ["18446744073709551612", "12345678901"]
        );
        assert_eq!(spans("    Hits: 21305"), ["21305"]);
        assert_eq!(spans("# trigger info: hist:keys=pid:size=2048 [active]"), Vec::<&str>::new());
    }

    #[test]
    fn number_out_of_its_column_is_literal() {
        assert_eq!(spans("{ pid:  18249 } hitcount:          1"), ["         1"]);
        assert_eq!(spans("{ comm: 12 } hitcount:          1"), ["         1"]);
    }

    #[test]
    fn number_behind_a_name_is_a_token() {
        let pid = "{ common_pid: event-sample    [        81], x:          2 } hitcount:          1";
        assert_eq!(spans(pid), ["        81", "         2", "         1"]);
        let kinds: Vec<TokenKind> = Format::Hist.tokens(pid.as_bytes()).into_iter().map(|t| t.kind).collect();
        assert_eq!(kinds, [TokenKind::Pid, TokenKind::Number, TokenKind::Number]);
        // A task's name may hold what looks like its number.
        let odd = "{ common_pid: a[        12]   [       345] } hitcount:          1";
        assert_eq!(spans(odd), ["       345", "         1"]);
        let syscall = "{ id: sys_write                     [  1], x:          2 } hitcount:          1";
        assert_eq!(spans(syscall), ["  1", "         2", "         1"]);
        assert_eq!(spans("{ comm: short[        81] } hitcount:          1"), ["         1"]);
    }

    fn messages(text: &str) -> Vec<String> {
        let lines: Vec<&[u8]> = text.lines().map(str::as_bytes).collect();
        violations(&lines).into_iter().map(|v| format!("{}: {}", v.line, v.message)).collect()
    }

    const ROWS: &str =
        "{ pid:          1 } hitcount:          2\n{ pid:          3 } hitcount:          4\n\nTotals:\n";

    #[test]
    fn totals_must_be_those_of_the_rows() {
        let good = format!("{ROWS}    Hits: 6\n    Entries: 2\n    Dropped: 0\n");
        assert_eq!(messages(&good), Vec::<String>::new());
        assert_eq!(messages(&format!("{good}{good}")), Vec::<String>::new());
        assert_eq!(messages("Totals:\n    Hits: 0\n    Entries: 0\n    Dropped: 0\n"), Vec::<String>::new());
        let bad = format!("{ROWS}    Hits: 7\n    Entries: 3\n    Dropped: 0\n");
        assert_eq!(
            messages(&bad),
            [
                "5: Hits is 7, but the hitcounts of the rows add up to 6",
                "6: Entries is 3, but there are 2 rows",
            ]
        );
        assert_eq!(messages(ROWS), ["4: expected totals after the rows"]);
    }

    #[test]
    fn rows_must_be_sorted_as_the_trigger_says() {
        let text = |sort: &str| {
            format!(
                "# trigger info: hist:keys=pid:vals=hitcount:sort={sort}:size=2048 [active]\n\
                 {{ pid:          1 }} hitcount:          2\n{{ pid:          2 }} hitcount:          1\n\
                 Totals:\n    Hits: 3\n    Entries: 2\n    Dropped: 0\n"
            )
        };
        assert_eq!(messages(&text("hitcount")), ["3: the rows are not sorted by hitcount"]);
        assert_eq!(messages(&text("hitcount.descending")), Vec::<String>::new());
        assert_eq!(messages(&text("pid")), Vec::<String>::new());
    }
}
