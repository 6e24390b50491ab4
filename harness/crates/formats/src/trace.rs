//! The tracefs file `trace`.
//!
//! An event is `COMM-PID     (   TGID) [CPU] FLAGS     TIME: EVENT`, in which the process group (the
//! option record-tgid) and the flags (the option irq-info) may be absent (kernel/trace/trace_output.c,
//! `trace_print_context`, Linux 7.2). The name's column has 16 bytes and a name at most 15, so a name
//! with spaces or dashes in it is not ambiguous. The lines of a stack may follow an event.
//!
//! Limits: the columns of the latency format and of the function_graph tracer are literal. A task's
//! name that holds a line end breaks its line in two, and both parts are literal.

use std::ops::Range;

use super::clock::Clocks;
use super::cursor::Cursor;
use super::row::FormatRow;
use super::symbol::{self, Offset};
use super::units::Timestamp;
use super::{Token, TokenKind, Violation, number};

pub(super) const FORMAT: FormatRow = FormatRow {
    name: "trace",
    files: &["trace"],
    tokens: Some(tokens),
    violations: Some(violations),
    numbers_are_significant: true,
};

/// Columns of a task's name.
const COMM: usize = 16;
/// Columns of a process id.
const PID: usize = 7;
/// Flags of an event: interrupts, rescheduling, context, and two depths.
const FLAGS: usize = 5;
const COUNTS: &[u8] = b"# entries-in-buffer/entries-written: ";

/// Where the fields of an event are. Padding is included.
struct TraceLine {
    pid: Range<usize>,
    group: Option<Range<usize>>,
    cpu: Range<usize>,
    /// Empty when they are not shown.
    flags: Range<usize>,
    time: Range<usize>,
    text: usize,
}

impl TraceLine {
    fn read(line: &[u8]) -> Option<TraceLine> {
        if line.get(COMM) != Some(&b'-') {
            return None;
        }
        let mut cursor = Cursor::new(line, COMM + 1);
        let pid = cursor.left_aligned(PID)?;
        cursor.eat(b" ")?;
        let group = match cursor.eat(b"(") {
            Some(()) => Some(group(&mut cursor)?),
            None => None,
        };
        cursor.eat(b"[")?;
        let cpu = cursor.digits()?;
        cursor.eat(b"] ")?;
        let flags = cursor.at..cursor.at + cursor.run(|b| b != b' ').len();
        if flags.len() > FLAGS {
            return None;
        }
        cursor.eat(b" ")?;
        let start = cursor.at;
        cursor.run(|b| b == b' ');
        cursor.digits()?;
        if cursor.eat(b".").is_some() {
            cursor.digits()?;
        }
        let time = start..cursor.at;
        cursor.eat(b": ")?;
        Some(TraceLine { pid, group, cpu, flags, time, text: cursor.at })
    }
}

/// The process group and its closing bracket. It is dashes while the kernel has not recorded it,
/// which is as accidental as its value.
fn group(cursor: &mut Cursor<'_>) -> Option<Range<usize>> {
    let start = cursor.at;
    cursor.run(|b| b == b' ');
    cursor.digits().or_else(|| cursor.some(|b| b == b'-'))?;
    let span = start..cursor.at;
    cursor.eat(b") ")?;
    Some(span)
}

fn tokens(line: &[u8], found: &mut Vec<Token>) {
    if let Some(event) = TraceLine::read(line) {
        found.push(Token::new(0..COMM, TokenKind::Comm));
        found.push(Token::new(event.pid, TokenKind::Pid));
        found.extend(event.group.map(|span| Token::new(span, TokenKind::Pid)));
        found.push(Token::new(event.cpu, TokenKind::Cpu));
        if !event.flags.is_empty() {
            found.push(Token::new(event.flags, TokenKind::Flags));
        }
        found.push(Token::new(event.time, TokenKind::Ts));
        symbol::scan(line, event.text..line.len(), Offset::WithSize, found);
    } else if let Some(span) = caller(line) {
        found.push(Token::new(span, TokenKind::Sym));
    } else if let Some(counts) = HeadCounts::read(line) {
        found.extend([counts.held, counts.written].map(|span| Token::new(span, TokenKind::Number)));
    } else if !notice(line, found) {
        symbol::scan(line, 0..line.len(), Offset::WithSize, found);
    }
}

/// The symbol in a line of a stack: all of the line but the arrow and the module's name.
///
/// The kernel indents the stack of an event, and does not indent the one in a synthetic event.
fn caller(line: &[u8]) -> Option<Range<usize>> {
    let mut cursor = Cursor::new(line, 0);
    _ = cursor.eat(b" ");
    cursor.eat(b"=> ")?;
    let text = cursor.rest();
    if text.starts_with(b"[FTRACE TRAMPOLINE]") {
        return None;
    }
    let module = match text {
        [.., b']'] => text.iter().rposition(|b| *b == b' ').filter(|at| text[at + 1] == b'['),
        _ => None,
    };
    let end = cursor.at + module.unwrap_or(text.len());
    (end > cursor.at).then_some(cursor.at..end)
}

/// The line of the header that counts the events.
struct HeadCounts {
    held: Range<usize>,
    written: Range<usize>,
    cpus: Option<u64>,
}

impl HeadCounts {
    fn read(line: &[u8]) -> Option<HeadCounts> {
        let mut cursor = Cursor::new(line, 0);
        cursor.eat(COUNTS)?;
        let held = cursor.digits()?;
        cursor.eat(b"/")?;
        let written = cursor.digits()?;
        cursor.run(|b| b == b' ');
        let cpus = cursor.eat(b"#P:").and_then(|()| number(cursor.rest()));
        Some(HeadCounts { held, written, cpus })
    }
}

/// Lines between events: a CPU's first event, and events that were lost. Whether it was one.
fn notice(line: &[u8], found: &mut Vec<Token>) -> bool {
    let mut cursor = Cursor::new(line, 0);
    if cursor.eat(b"##### CPU ").is_none() && cursor.eat(b"CPU:").is_none() {
        return false;
    }
    let Some(cpu) = cursor.digits() else { return false };
    let lost = cursor.eat(b" [LOST ").and_then(|()| cursor.digits());
    if !matches!(cursor.rest(), b" buffer started ####" | b" EVENTS]" | b" [LOST EVENTS]" | b"EVENTS]") {
        return false;
    }
    found.push(Token::new(cpu, TokenKind::Cpu));
    found.extend(lost.map(|span| Token::new(span, TokenKind::Number)));
    true
}

fn violations(lines: &[&[u8]]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut clocks = Clocks::default();
    let mut cpus: Option<u64> = None;
    for (at, line) in lines.iter().enumerate() {
        let at = at + 1;
        let Some(event) = TraceLine::read(line) else {
            cpus = HeadCounts::read(line).map_or(cpus, |counts| counts.cpus);
            continue;
        };
        let (Some(cpu), Some(time)) =
            (number(&line[event.cpu]), Timestamp::read(line[event.time].trim_ascii_start()))
        else {
            continue;
        };
        let late = clocks.tick(cpu, time, at);
        let stranger = cpus
            .filter(|cpus| cpu >= *cpus)
            .map(|cpus| format!("event on CPU {cpu}, but the header gives {cpus} CPUs"));
        found.extend(late.into_iter().chain(stranger).map(|message| Violation { line: at, message }));
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::Format;
    use crate::testing::{messages, show};

    fn shown(line: &str) -> String {
        show(Format::Trace, line)
    }

    #[test]
    fn event_is_read_by_its_columns() {
        assert_eq!(
            shown("           <...>-1       [000] ...3.     1.062435: wk: d=43 pid=7 dyn=joined"),
            "<comm:           <...>>-<pid:1      > [<cpu:000>] <flags:...3.> <ts:    1.062435>: wk: d=43 pid=7 dyn=joined"
        );
        assert_eq!(
            shown("    my task-1234-1234567 [001]  123456.062435: print: -1 [000] 2.0: x"),
            "<comm:    my task-1234>-<pid:1234567> [<cpu:001>]  <ts:123456.062435>: print: -1 [000] 2.0: x"
        );
        assert_eq!(
            shown("  kworker/0:1-ev-12      (-------) [000] d..2.            7: e: "),
            "<comm:  kworker/0:1-ev>-<pid:12     > (<pid:------->) [<cpu:000>] <flags:d..2.> <ts:           7>: e: "
        );
        assert_eq!(
            shown("              sh-12      (     12) [000] d..2.     0.000001: e: "),
            "<comm:              sh>-<pid:12     > (<pid:     12>) [<cpu:000>] <flags:d..2.> <ts:    0.000001>: e: "
        );
    }

    #[test]
    fn event_text_is_literal_except_symbols_and_pointers() {
        let head = "            init-1       [000] d..2.     0.046319: ";
        let text = |text: &str| shown(&format!("{head}{text}")).split_off(shown(head).len());
        assert_eq!(
            text("call: func=a_b.part.0+0x0/0x44 sk=000000009536f554 n=3"),
            "call: func=<sym:a_b.part.0+0x0/0x44> sk=<ptr:000000009536f554> n=3"
        );
        let switch = "sched_switch: prev_comm=sh prev_pid=1 prev_state=S ==> next_comm=swapper/0 next_pid=0";
        assert_eq!(text(switch), switch);
    }

    #[test]
    fn stack_line_is_a_symbol() {
        assert_eq!(shown(" => a_b+0x1/0x2"), " => <sym:a_b+0x1/0x2>");
        assert_eq!(shown("=> a_b+0x1/0x2 [mod]"), "=> <sym:a_b+0x1/0x2> [mod]");
        assert_eq!(shown(" => a_b <c0000000000f8094>"), " => <sym:a_b <c0000000000f8094>>");
        assert_eq!(shown(" => 0xc000000000f8094"), " => <sym:0xc000000000f8094>");
        assert_eq!(shown(" => [FTRACE TRAMPOLINE]"), " => [FTRACE TRAMPOLINE]");
        assert_eq!(shown(" => "), " => ");
    }

    #[test]
    fn counts_and_notices_have_numbers_and_cpus() {
        assert_eq!(
            shown("# entries-in-buffer/entries-written: 3/35   #P:2"),
            "# entries-in-buffer/entries-written: <number:3>/<number:35>   #P:2"
        );
        assert_eq!(shown("##### CPU 1 buffer started ####"), "##### CPU <cpu:1> buffer started ####");
        assert_eq!(shown("CPU:1 [LOST 72 EVENTS]"), "CPU:<cpu:1> [LOST <number:72> EVENTS]");
        assert_eq!(shown("CPU:1 [LOST EVENTS]"), "CPU:<cpu:1> [LOST EVENTS]");
        for literal in
            ["# tracer: nop", "#", "", "#              | |         |   |||||     |         |", "CPU:1 x"]
        {
            assert_eq!(shown(literal), literal);
        }
    }

    #[test]
    fn time_that_goes_back_and_unknown_cpu_are_violations() {
        let line =
            |cpu: u8, time: &str| format!("              sh-12      [00{cpu}] ..... {time:>12}: e: \n");
        let head = "# entries-in-buffer/entries-written: 3/3   #P:2\n";
        let found = |text: &[&str]| messages(Format::Trace, &text.concat());
        let (first, second) = (line(0, "5.000002"), line(1, "5.000001"));
        assert_eq!(found(&[head, &first, &second, &first]), Vec::<String>::new());
        assert_eq!(
            found(&[head, &first, " => a\n", &line(0, "5.000001")]),
            ["4: time on CPU 0 goes back: line 2 has a later one"]
        );
        assert_eq!(found(&[head, &line(2, "5.000001")]), ["2: event on CPU 2, but the header gives 2 CPUs"]);
        assert_eq!(found(&[&line(2, "5.000001")]), Vec::<String>::new());
    }
}
