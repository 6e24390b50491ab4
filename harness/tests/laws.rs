//! The laws of the golden language, over transcripts of real runs in every format.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use camino::{Utf8Path, Utf8PathBuf};
use formats::{Format, TokenKind};
use golden::bless::{GuestNames, Namer, Observed, bless};
use golden::{Bindings, Comparison, Conflict, Edit, Facts, Golden, Hole, Seen, compare};
use proptest::prelude::*;

struct Transcript {
    file: Utf8PathBuf,
    format: Format,
    lines: Vec<Vec<u8>>,
}

/// All transcripts, and the goldens of the cases as what their kernels print.
fn transcripts() -> &'static [Transcript] {
    static ALL: OnceLock<Vec<Transcript>> = OnceLock::new();
    ALL.get_or_init(|| {
        let dir = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/formats/src/testdata");
        let mut all = Vec::new();
        for entry in dir.read_dir_utf8().expect("the directory of transcripts") {
            let file = entry.expect("an entry").into_path();
            let extension = file.extension().unwrap_or_default().to_owned();
            if let Some(format) = Format::named(&extension) {
                let bytes = std::fs::read(&file).expect("a transcript");
                let lines = bytes.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
                all.push(Transcript { file, format, lines });
            }
        }
        all.sort_by(|a, b| a.file.cmp(&b.file));
        assert!(all.len() >= 10, "transcripts are missing");
        all
    })
}

fn facts() -> Facts {
    Facts { arch: "x86_64".to_owned(), kernel: vec![7, 2, 12], ..Facts::default() }
}

fn golden_of(body: &str) -> Golden {
    Golden::parse(Utf8Path::new("g"), format!("#@ golden v1\n{body}").as_bytes()).expect("a golden")
}

fn run(golden: &Golden, capture: &[u8], format: Format) -> Comparison {
    compare(golden, capture, format, &facts(), &mut Bindings::new())
}

/// The golden that blessing writes from nothing; `None` where the capture breaks a rule of its
/// format (a window of a transcript may).
fn blessed(golden: &Golden, capture: &[u8], format: Format) -> Option<Option<Golden>> {
    let facts = facts();
    let observed = [Observed { facts: &facts, capture }];
    bless(golden, format, &observed, &mut Namer::new([golden]), &mut [GuestNames::default()]).ok()
}

/// A part of a transcript, as a capture.
fn window() -> impl Strategy<Value = (Format, Vec<Vec<u8>>)> {
    (0..transcripts().len()).prop_flat_map(|at| {
        let transcript = &transcripts()[at];
        let n = transcript.lines.len();
        (0..n, 1..=40_usize).prop_map(move |(from, length)| {
            let to = (from + length).min(n);
            let lines = transcript.lines[from..to].iter().filter(|line| std::str::from_utf8(line).is_ok());
            (transcript.format, lines.cloned().collect())
        })
    })
}

fn joined(lines: &[Vec<u8>]) -> Vec<u8> {
    lines.iter().flat_map(|line| line.iter().copied().chain([b'\n'])).collect()
}

/// Every pointer of the capture replaced by what `of` gives for its value.
fn with_pointers(lines: &[Vec<u8>], format: Format, mut of: impl FnMut(&[u8]) -> Vec<u8>) -> Vec<Vec<u8>> {
    let replace = |line: &Vec<u8>| {
        let mut out = Vec::new();
        let mut at = 0;
        for token in format.tokens(line).iter().filter(|token| token.kind == TokenKind::Ptr) {
            out.extend(&line[at..token.start]);
            out.extend(of(&line[token.start..token.end]));
            at = token.end;
        }
        out.extend(&line[at..]);
        out
    };
    lines.iter().map(replace).collect()
}

fn pointers(lines: &[Vec<u8>], format: Format) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    with_pointers(lines, format, |value| {
        if !found.contains(&value.to_vec()) {
            found.push(value.to_vec());
        }
        value.to_vec()
    });
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn blessed_capture_passes_and_blessing_again_changes_nothing((format, lines) in window()) {
        let capture = joined(&lines);
        let golden = blessed(&golden_of(""), &capture, format);
        prop_assume!(golden.is_some());
        let golden = golden.flatten().unwrap_or_else(|| golden_of(""));
        prop_assert!(run(&golden, &capture, format).passes(), "{}", golden.text.as_str());
        prop_assert!(matches!(blessed(&golden, &capture, format), Some(None)), "{}", golden.text.as_str());
    }

    #[test]
    fn renamed_pointers_pass_and_merged_pointers_fail((format, lines) in window(), seed: u32) {
        let capture = joined(&lines);
        let golden = blessed(&golden_of(""), &capture, format).flatten();
        prop_assume!(golden.is_some());
        let golden = golden.expect("assumed");
        let mut other = BTreeMap::new();
        let renamed = with_pointers(&lines, format, |value| {
            let next = other.len() as u32;
            let number = *other.entry(value.to_vec()).or_insert(seed.wrapping_add(next.wrapping_mul(0x9e37_79b1)) | 1);
            format!("00000000{number:08x}").into_bytes()
        });
        let distinct: std::collections::BTreeSet<_> = other.values().collect();
        prop_assume!(distinct.len() == other.len());
        prop_assert!(run(&golden, &joined(&renamed), format).passes());

        let all = pointers(&lines, format);
        if all.len() >= 2 {
            let merged = with_pointers(&lines, format, |value| {
                if *value == all[1][..] { all[0].clone() } else { value.to_vec() }
            });
            prop_assert!(!run(&golden, &joined(&merged), format).passes());
        }
    }

    #[test]
    fn deleted_or_doubled_line_fails((format, lines) in window(), at: prop::sample::Index) {
        prop_assume!(!lines.is_empty());
        let golden = blessed(&golden_of(""), &joined(&lines), format).flatten();
        prop_assume!(golden.is_some());
        let golden = golden.expect("assumed");
        // Blessed from one guest, a golden has no block that could take more or fewer lines.
        let at = at.index(lines.len());
        let mut deleted = lines.clone();
        deleted.remove(at);
        prop_assert!(!run(&golden, &joined(&deleted), format).passes());
        let mut doubled = lines.clone();
        doubled.insert(at, lines[at].clone());
        prop_assert!(!run(&golden, &joined(&doubled), format).passes());
    }

    #[test]
    fn changed_literal_byte_fails((format, lines) in window(), at: prop::sample::Index, byte in b'!'..=b'~') {
        prop_assume!(!lines.is_empty());
        let golden = blessed(&golden_of(""), &joined(&lines), format).flatten();
        prop_assume!(golden.is_some());
        let golden = golden.expect("assumed");
        let line = at.index(lines.len());
        let patterns = golden.patterns();
        let tokens = format.tokens(&lines[line]);
        let holes = patterns[line].1.hole_spans(&lines[line], &tokens).expect("the line fits");
        // Space next to a hole may be the padding of its column, which is not part of the value.
        let literal: Vec<usize> = (0..lines[line].len())
            .filter(|at| !holes.iter().any(|hole| hole.contains(at)) && !lines[line][*at].is_ascii_whitespace())
            .collect();
        prop_assume!(!literal.is_empty());
        let place = literal[at.index(literal.len())];
        prop_assume!(lines[line][place] != byte);
        let mut changed = lines.clone();
        changed[line][place] = byte;
        let found = run(&golden, &joined(&changed), format);
        prop_assert!(!found.passes(), "{}\n{}", golden.text.as_str(), String::from_utf8_lossy(&changed[line]));
    }

    #[test]
    fn known_bug_passes_with_either_part_and_with_nothing_else(
        (format, lines) in window(),
        range in (any::<prop::sample::Index>(), 0..3_usize),
        more in 0..3_usize,
        at: prop::sample::Index,
    ) {
        let golden = blessed(&golden_of(""), &joined(&lines), format).flatten();
        prop_assume!(golden.is_some());
        let golden = golden.expect("assumed");
        // Blessed from one guest, a golden has one line for each of the capture.
        let rows: Vec<&str> = golden.text.numbered().skip(1).map(|(_, line)| line).collect();
        let from = range.0.index(lines.len() + 1);
        let to = (from + range.1).min(lines.len());
        let bug: Vec<Vec<u8>> = (0..more).map(|n| format!("the bug prints {n}").into_bytes()).collect();
        prop_assume!(from < to || !bug.is_empty());
        let text = |lines: &[Vec<u8>]| String::from_utf8(joined(lines)).expect("text");
        let block = format!("#@ xfail \"r\"\n{}#@ actual\n{}#@ end\n", body(&rows[from..to]), text(&bug));
        let golden = golden_of(&format!("{}{block}{}", body(&rows[..from]), body(&rows[to..])));
        prop_assert_eq!(Golden::parse("g".into(), golden.to_string()).expect("valid").to_string(), golden.to_string());

        let right = run(&golden, &joined(&lines), format);
        prop_assert!(right.passes(), "{}", golden.text.as_str());
        prop_assert_eq!(seen(&right), [Seen::Right]);
        let with_bug = [&lines[..from], &bug, &lines[to..]].concat();
        let actual = run(&golden, &joined(&with_bug), format);
        prop_assert!(actual.same_shape, "{}", golden.text.as_str());
        prop_assert_eq!(seen(&actual), [Seen::Actual]);
        for capture in [&lines, &with_bug] {
            // A window with lines less or more may break a rule of its format: then it is refused.
            let blessing = blessed(&golden, &joined(capture), format);
            prop_assert!(!matches!(blessing, Some(Some(_))), "{:?}", blessing);
        }

        // One line less or more is neither, but where that makes the one the other.
        prop_assume!(!with_bug.is_empty());
        let at = at.index(with_bug.len());
        let mut deleted = with_bug.clone();
        deleted.remove(at);
        let mut doubled = with_bug.clone();
        doubled.insert(at, with_bug[at].clone());
        for changed in [deleted, doubled] {
            let found = run(&golden, &joined(&changed), format);
            if changed.len() == lines.len() {
                prop_assert!(!found.same_shape || seen(&found) == [Seen::Right]);
            } else {
                prop_assert!(!found.same_shape, "{}\n{}", golden.text.as_str(), text(&changed));
            }
        }
    }
}

fn body(rows: &[&str]) -> String {
    rows.iter().map(|row| format!("{row}\n")).collect()
}

fn seen(found: &Comparison) -> Vec<Seen> {
    found.known_bugs.iter().map(|bug| bug.seen).collect()
}

/// A golden of the project as what a kernel with these pointers prints.
fn capture_of(golden: &Golden, pointers: &mut BTreeMap<String, String>) -> Vec<u8> {
    let mut capture = Vec::new();
    for (_, pattern) in golden.patterns() {
        let mut line = pattern.to_string();
        for hole in pattern.holes() {
            let Hole::Token { kind: TokenKind::Ptr, name: Some(name) } = hole else {
                panic!("{hole} in {}", golden.file)
            };
            let next = format!("00000000{:08x}", 0x1234_5600 + pointers.len());
            line = line.replace(&hole.to_string(), pointers.entry(name.clone()).or_insert(next));
        }
        capture.extend(line.bytes().chain([b'\n']));
    }
    capture
}

fn project_golden(path: &str) -> Golden {
    let root = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let file = root.join("cases/histogram-design").join(path);
    let bytes = std::fs::read(&file).expect("a golden");
    Golden::parse(Utf8Path::new(path), bytes).expect("valid")
}

/// The two hist_debug goldens of the case with two histograms on one event, and their captures.
fn two_captures() -> [(Golden, Vec<u8>); 2] {
    let mut pointers = BTreeMap::new();
    ["other-histogram/sched_waking.hist_debug.golden", "other-histogram/sched_switch.hist_debug.golden"].map(
        |path| {
            let golden = project_golden(path);
            let capture = capture_of(&golden, &mut pointers);
            (golden, capture)
        },
    )
}

fn compare_all(pairs: &[(Golden, Vec<u8>)]) -> Vec<Comparison> {
    let mut bindings = Bindings::new();
    pairs.iter().map(|(g, c)| compare(g, c, Format::HistDebug, &facts(), &mut bindings)).collect()
}

fn replaced(capture: &[u8], from: &str, to: &str) -> Vec<u8> {
    String::from_utf8(capture.to_vec()).expect("text").replace(from, to).into_bytes()
}

#[test]
fn all_pointers_renamed_passes() {
    let mut pairs = two_captures();
    for (_, capture) in &mut pairs {
        *capture = replaced(capture, "000000001234560", "00000000fedcba9");
    }
    assert!(compare_all(&pairs).iter().all(Comparison::passes));
}

#[test]
fn reference_to_the_wrong_histogram_is_one_conflict_with_both_sites() {
    let mut pairs = two_captures();
    let waking =
        pairs[0].1.split(|b| *b == b'\n').find(|line| line.starts_with(b"hist_data")).expect("a pointer");
    let waking = String::from_utf8(waking[11..].to_vec()).expect("text");
    let text = String::from_utf8(pairs[1].1.clone()).expect("text");
    let wrong = text.replacen(&format!("var.hist_data: {waking}"), "var.hist_data: 00000000deadbeef", 1);
    assert_ne!(wrong, text);
    pairs[1].1 = wrong.into_bytes();
    let found = compare_all(&pairs);
    assert!(found[0].passes());
    assert!(found[1].same_shape);
    assert_eq!(found[1].conflicts.len(), 1);
    let shown = found[1].conflicts[0].to_string();
    assert!(shown.contains("sched_waking.hist_debug.golden:7"), "{shown}");
    assert!(shown.contains("sched_switch.hist_debug.golden:"), "{shown}");
}

#[test]
fn two_histograms_with_one_address_fail() {
    let mut pairs = two_captures();
    let all = pointers(
        &pairs[0].1.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>(),
        Format::HistDebug,
    );
    let [first, second] = [&all[0], &all[1]].map(|p| String::from_utf8(p.clone()).expect("text"));
    for (_, capture) in &mut pairs {
        *capture = replaced(capture, &second, &first);
    }
    let found = compare_all(&pairs);
    assert!(found[0].conflicts.iter().any(|c| matches!(c, Conflict::OtherName { .. })));
}

#[test]
fn conditional_lines_are_required_and_forbidden() {
    let (golden, capture) = two_captures().into_iter().next().expect("two");
    let with_condition = |kernel: &str| {
        let body: String = golden
            .text
            .numbered()
            .skip(1)
            .map(|(_, line)| {
                if line.contains("function:") {
                    format!("#@ if kernel >= {kernel}\n{line}\n#@ end\n")
                } else {
                    format!("{line}\n")
                }
            })
            .collect();
        golden_of(&body)
    };
    let without: Vec<u8> = String::from_utf8(capture.clone())
        .expect("text")
        .lines()
        .filter(|line| !line.contains("function:"))
        .fold(Vec::new(), |all, line| [all, line.as_bytes().to_vec(), vec![b'\n']].concat());
    let old = Facts { kernel: vec![6, 12, 0], ..facts() };
    let passes = |golden: &Golden, capture: &[u8], facts: &Facts| {
        compare(golden, capture, Format::HistDebug, facts, &mut Bindings::new()).passes()
    };
    let right = with_condition("7.0");
    assert!(passes(&right, &capture, &facts()) && passes(&right, &without, &old));
    assert!(!passes(&right, &without, &facts()) && !passes(&right, &capture, &old));
    assert!(!passes(&with_condition("8.0"), &capture, &facts()));
}

#[test]
fn extra_leading_block_costs_a_short_diff() {
    let (golden, capture) = two_captures().into_iter().next().expect("two");
    let extra = b"# event histogram\n#\n# trigger info: hist:keys=prio [active]\n#\n\nhist_data: 00000000cafecafe\n\n";
    let found = run(&golden, &[&extra[..], &capture[..]].concat(), Format::HistDebug);
    let unexpected = found.edits.iter().filter(|edit| matches!(edit, Edit::Unexpected { .. })).count();
    let missing = found.edits.iter().filter(|edit| matches!(edit, Edit::Missing { .. })).count();
    assert_eq!((unexpected, missing), (7, 0));
}
