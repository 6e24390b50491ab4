//! Laws of all formats: tokens and literals together are the line, whatever its bytes; and a line
//! that is printed as a format prints has the values that went in.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Format, Piece, TokenKind};

/// What a tokeniser looks for, so that lines of these come near to every branch.
const PARTS: [&str; 40] = [
    " ",
    "  ",
    ": ",
    ":",
    "-",
    "/",
    "[",
    "] ",
    "(",
    ") ",
    " (",
    ")",
    "=> ",
    " => ",
    "=",
    "+0x",
    "/0x",
    "<",
    ">",
    "0",
    "7",
    "12345678901234567890",
    "000000009536f554",
    "ffffffff81000000",
    "0x1f",
    "1.000001",
    "name",
    "a_b+0x1/0x2",
    " [000] ",
    "            init-1       [000] d..2.     0.046319: ",
    "#",
    "CPU:1 [LOST ",
    "# entries-in-buffer/entries-written: ",
    "{ ",
    "hitcount:          1",
    "hist_data: ",
    ".  00000030: ",
    "boot_tb: ",
    "0 0 0x8 [0x30]: PERF_RECORD_",
    ". ... VPA DTL PMU data: size ",
];

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        8 => prop::sample::select(&PARTS[..]).prop_map(|part| part.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..4),
    ];
    prop_oneof![vec(any::<u8>(), 0..200), vec(part, 0..20).prop_map(|parts| parts.concat())]
}

fn check(format: Format, line: &[u8]) {
    let mut at = 0;
    let mut literal = false;
    for piece in format.pieces(line) {
        let span = piece.span();
        assert_eq!(span.start, at, "{format:?} leaves nothing out");
        assert!(span.end > at && span.end <= line.len(), "{format:?} has {piece:?}");
        assert!(!(literal && matches!(piece, Piece::Literal(_))), "{format:?} has two literals in a row");
        literal = matches!(piece, Piece::Literal(_));
        at = span.end;
    }
    assert_eq!(at, line.len(), "{format:?} has the whole line");
}

proptest! {
    #[test]
    fn pieces_are_the_line(line in bytes()) {
        for &format in Format::ALL {
            check(format, &line);
        }
    }

    #[test]
    fn violation_is_at_a_line_of_the_capture(lines in vec(bytes(), 0..8)) {
        let lines: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
        for &format in Format::ALL {
            for violation in format.violations(&lines) {
                prop_assert!((1..=lines.len()).contains(&violation.line));
            }
        }
    }
}

/// A task's name: at most 15 bytes, any but the line end.
fn comm() -> impl Strategy<Value = String> {
    const ODD: [&str; 6] =
        ["<...>", "<idle>", "kworker/0:1-ev", "a: b 1", "x-12 [000] 1.1:", "a 1 2.000000: b"];
    prop_oneof![prop::sample::select(&ODD[..]).prop_map(str::to_owned), "[!-~][ -~]{0,13}[!-~]",]
}

/// What an event says, without a symbol or a pointer.
fn said() -> impl Strategy<Value = String> {
    "[a-z_]{1,12}: ([a-z]{1,5}=-?[0-9]{1,15} ){0,4}"
}

fn values(format: Format, line: &str) -> Vec<(TokenKind, String)> {
    let tokens = format.tokens(line.as_bytes()).into_iter();
    tokens.map(|t| (t.kind, String::from_utf8_lossy(t.value(line.as_bytes())).into_owned())).collect()
}

proptest! {
    #[test]
    fn trace_event_has_the_values_that_were_printed(
        comm in comm(), pid in 0..5_000_000_u32, group in prop::option::of(prop::option::of(0..5_000_000_u32)),
        cpu in 0..2048_u32, flags in prop::option::of("[.dDbN][.nlp][.hsH][.1-9a-f][.1-9a-f]"),
        seconds in 0..10_000_000_u64, decimals in prop::option::of(0..1_000_000_u32), said in said(),
    ) {
        let groups = group.map(|group| group.map_or("-------".to_owned(), |id| id.to_string()));
        let shown = groups.as_ref().map_or(String::new(), |id| format!("({id:>7}) "));
        let (time, column) = match decimals {
            Some(decimals) => (format!("{seconds}.{decimals:06}"), format!("{seconds:>5}.{decimals:06}")),
            None => (seconds.to_string(), format!("{seconds:>12}")),
        };
        let flags = flags.unwrap_or_default();
        let line = format!("{comm:>16}-{pid:<7} {shown}[{cpu:03}] {flags} {column}: {said}");
        let mut expected = vec![(TokenKind::Comm, comm.trim().to_owned()), (TokenKind::Pid, pid.to_string())];
        expected.extend(groups.map(|id| (TokenKind::Pid, id)));
        expected.push((TokenKind::Cpu, format!("{cpu:03}")));
        expected.extend((!flags.is_empty()).then(|| (TokenKind::Flags, flags.clone())));
        expected.push((TokenKind::Ts, time));
        prop_assert_eq!(values(Format::Trace, &line), expected);
        check(Format::Trace, line.as_bytes());
    }

    #[test]
    fn perf_sample_has_the_values_that_were_printed(
        comm in comm(), pid in -1..5_000_000_i32, thread in prop::option::of(-1..5_000_000_i32),
        cpu in prop::option::of(0..2048_u32), seconds in 0..10_000_000_u64, nanos in 0..1_000_000_000_u32,
        short in any::<bool>(), place in prop::option::of((1_u64.., "[a-z_]{1,9}", 0..4096_u32)), said in said(),
    ) {
        let time = if short { format!("{seconds}.{:06}", nanos / 1000) } else { format!("{seconds}.{nanos:09}") };
        let ids = thread.map_or(format!("{pid:>7}"), |thread| format!("{pid:>7}/{thread:<7}"));
        let shown = cpu.map_or(String::new(), |cpu| format!("[{cpu:03}] "));
        let column = if short { 12 } else { 15 };
        let mut line = format!("{comm:>16} {ids} {shown}{time:>column$}: {said}");
        let mut expected = vec![(TokenKind::Comm, comm.trim().to_owned()), (TokenKind::Pid, pid.to_string())];
        expected.extend(thread.map(|thread| (TokenKind::Pid, thread.to_string())));
        expected.extend(cpu.map(|cpu| (TokenKind::Cpu, format!("{cpu:03}"))));
        expected.push((TokenKind::Ts, time));
        if let Some((address, name, offset)) = place {
            line += &format!(" {address:16x} {name}+0x{offset:x} ([kernel.kallsyms])");
            expected.push((TokenKind::Sym, format!("{address:x} {name}+0x{offset:x}")));
        }
        prop_assert_eq!(values(Format::PerfScript, &line), expected);
        check(Format::PerfScript, line.as_bytes());
    }

    #[test]
    fn perf_record_has_the_values_that_were_printed(
        cpu in 0..2048_u32, time in any::<u64>(), offset in 1_u64.., size in 1_u32..,
        tid in -1..5_000_000_i32, of in -1..2048_i32,
    ) {
        let line = format!(
            "{cpu} {time} {offset:#x} [0x30]: PERF_RECORD_AUXTRACE size: {size:#x}  offset: 0  ref: 0  idx: 0  tid: {tid}  cpu: {of}"
        );
        let mut expected = vec![
            (TokenKind::Cpu, cpu.to_string()), (TokenKind::Ts, time.to_string()), (TokenKind::Hex, format!("{offset:#x}")),
        ];
        expected.extend((tid >= 0).then(|| (TokenKind::Pid, tid.to_string())));
        expected.extend((of >= 0).then(|| (TokenKind::Cpu, of.to_string())));
        prop_assert_eq!(values(Format::PerfDump, &line), expected);
        check(Format::PerfDump, line.as_bytes());
    }
}

/// Each byte may be looked at a few times, and not once for every other: that would be 10^11 steps for one of
/// these lines, and this test would take minutes in place of a second. No clock is read.
#[test]
fn tokenisers_read_a_long_line_once() {
    const HEADS: [&str; 6] = [
        "",
        "            init-1       [000] d..2.     0.046319: ",
        "            init       1 [000]     0.046319: ",
        "0 0 0x8 [0x30]: PERF_RECORD_COMM: ",
        "0 0 0x8 [0x30]: PERF_RECORD_AUX: ",
        "{ ",
    ];
    let repeated = [
        " ",
        "0",
        "a",
        ": ",
        " (",
        "a+0x1",
        "[f",
        "=> ",
        "ffffffffffffffff ",
        "1.000000: ",
        " 1 [0] 1.000000:",
    ];
    for head in HEADS {
        for part in repeated {
            let bytes = head.bytes().chain(part.bytes().cycle().take(1 << 18));
            let line: Vec<u8> = bytes.collect();
            for &format in Format::ALL {
                check(format, &line);
                format.violations(&[&line]);
            }
        }
    }
}
