//! Goldens written from captures.
//!
//! What a golden says and the captures still fit is kept to the letter: lines, holes, conditions.
//! Only lines that no capture has are dropped, and lines that no golden has are added, as a careful
//! person would write them: a pointer gets a name, a time or a task a hole of its kind, a number
//! stays as it is unless the guests differ in it. Where the guests differ in lines, a condition
//! says so. Nothing that was literal becomes a hole, and what is written is checked against every
//! capture before it is given out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::bindings::Bindings;
use super::compare::{Edit, compare, split_lines};
use super::condition::{Condition, Facts};
use super::head::Head;
use super::hole::{Hole, Namespace};
use super::parse::{Golden, Node, NodeKind};
use super::pattern::{Pattern, Segment};
use crate::normalise::{Format, TokenKind};

/// What a guest printed.
#[derive(Debug, Clone)]
pub struct Observed<'c> {
    /// The guest's facts; guests are told apart by their architecture.
    pub facts: &'c Facts,
    /// The capture.
    pub capture: &'c [u8],
}

/// Names for pointers that have none, the same for all guests of a case.
#[derive(Debug, Default)]
pub struct Namer {
    taken: BTreeSet<String>,
    fresh: Vec<String>,
}

impl Namer {
    /// A namer that keeps clear of the names in these goldens.
    pub fn new<'g>(goldens: impl IntoIterator<Item = &'g Golden>) -> Namer {
        let mut taken = BTreeSet::new();
        for golden in goldens {
            for (_, pattern) in golden.patterns() {
                taken
                    .extend(pattern.holes().filter_map(|hole| hole.binds().map(|(_, name)| name.to_owned())));
            }
        }
        Namer { taken, fresh: Vec::new() }
    }

    /// The name of the n-th pointer that had none.
    fn fresh(&mut self, n: usize) -> String {
        let mut number = self.fresh.len();
        while self.fresh.len() <= n {
            number += 1;
            let name = format!("PTR{number}");
            if self.taken.insert(name.clone()) {
                self.fresh.push(name);
            }
        }
        self.fresh[n].clone()
    }
}

/// The meaning of names on one guest, and how many pointers got a new name.
#[derive(Debug, Default)]
pub struct GuestNames {
    bindings: Bindings,
    fresh: BTreeMap<String, usize>,
}

/// Write the golden that all `observed` captures fit; `None` when they fit the one that is there.
/// `names` has one entry for each guest, in the order of `observed`, and is kept from one capture
/// of the case to the next.
///
/// # Errors
/// Why a person must write it, in one sentence.
pub fn bless(
    golden: &Golden,
    format: Format,
    observed: &[Observed<'_>],
    namer: &mut Namer,
    names: &mut [GuestNames],
) -> Result<Option<Golden>, String> {
    let mut views = Vec::new();
    for (seen, names) in observed.iter().zip(names.iter_mut()) {
        views.push(View::new(golden, format, seen, namer, names)?);
    }
    let written =
        if views.iter().all(|view| view.fits) { None } else { Some(write(golden, observed, &views)?) };
    let result = written.as_ref().unwrap_or(golden);
    for (seen, names) in observed.iter().zip(names) {
        let found = compare(result, seen.capture, format, seen.facts, &mut names.bindings);
        if !found.passes() {
            return Err(format!("no golden was found that the capture of {} fits", seen.facts.arch));
        }
    }
    Ok(written)
}

/// The same golden with another head.
#[must_use]
pub fn with_head(golden: &Golden, head: Head) -> Golden {
    let mut golden = golden.clone();
    if let Some(first) = golden.lines.first_mut() {
        *first = head.to_string();
    }
    golden.head = head;
    golden
}

/// A golden's own text.
pub fn text(golden: &Golden) -> String {
    golden.lines.iter().fold(String::new(), |text, line| text + line + "\n")
}

/// A line that no golden has, as it would be written.
#[derive(Debug, Clone, PartialEq, Eq)]
struct New {
    /// With its numbers.
    strict: Pattern,
    /// With holes for them.
    masked: Pattern,
}

/// A golden seen from one guest.
struct View {
    fits: bool,
    kept: BTreeSet<usize>,
    dropped: BTreeSet<usize>,
    /// Lines to add, by the golden's line after which they come.
    added: BTreeMap<usize, Vec<New>>,
}

impl View {
    fn new(
        golden: &Golden,
        format: Format,
        seen: &Observed<'_>,
        namer: &mut Namer,
        names: &mut GuestNames,
    ) -> Result<View, String> {
        // What this golden binds itself counts for the lines that it lacks.
        let mut bound = names.bindings.clone();
        let found = compare(golden, seen.capture, format, seen.facts, &mut bound);
        if let Some(violation) = found.violations.first() {
            let at = violation.line;
            return Err(format!(
                "line {at} of the capture of {} breaks a rule: {}",
                seen.facts.arch, violation.message
            ));
        }
        if found.unfinished {
            return Err(format!("the last line of the capture of {} has no end", seen.facts.arch));
        }
        let blocks = Blocks::of(golden);
        let mut view = View {
            fits: found.passes(),
            kept: BTreeSet::new(),
            dropped: BTreeSet::new(),
            added: BTreeMap::new(),
        };
        // A line whose name has come to mean something else is written anew.
        let renamed: BTreeSet<usize> = found.conflicts.iter().map(|c| c.here().golden_line).collect();
        let (lines, _) = split_lines(seen.capture);
        let mut anchor = 1;
        let mut passed = false;
        for edit in &found.edits {
            let (drop, add) = match *edit {
                Edit::Same { golden, capture } if renamed.contains(&golden) => (Some(golden), Some(capture)),
                Edit::Same { golden, .. } => {
                    view.kept.insert(golden);
                    anchor = golden;
                    passed = false;
                    continue;
                }
                Edit::Passed { .. } => {
                    passed = true;
                    continue;
                }
                Edit::Missing { golden } => (Some(golden), None),
                Edit::Unexpected { capture } => (None, Some(capture)),
            };
            if passed {
                return Err("it differs beside an `any`".to_owned());
            }
            if let Some(line) = drop {
                if let Some(block) = blocks.name_at(line) {
                    return Err(format!("line {line} of the golden, in {block}, would have to change"));
                }
                view.dropped.insert(line);
                anchor = anchor.max(line);
            }
            if let Some(line) = add {
                let new =
                    new_line(lines[line - 1], format, namer, &bound, &mut names.fresh).ok_or_else(|| {
                        format!("line {line} of the capture of {} is no UTF-8 text", seen.facts.arch)
                    })?;
                view.added.entry(blocks.end_at(anchor)).or_default().push(new);
            }
        }
        Ok(view)
    }
}

/// The blocks that are matched as a whole, and so are not edited.
struct Blocks {
    ranges: Vec<(std::ops::RangeInclusive<usize>, &'static str)>,
}

impl Blocks {
    fn of(golden: &Golden) -> Blocks {
        let mut ranges = Vec::new();
        Blocks::collect(&golden.nodes, &mut ranges);
        Blocks { ranges }
    }

    fn collect(nodes: &[Node], ranges: &mut Vec<(std::ops::RangeInclusive<usize>, &'static str)>) {
        for node in nodes {
            let name = match &node.kind {
                NodeKind::If { then, otherwise, .. } => {
                    Blocks::collect(then, ranges);
                    Blocks::collect(otherwise.as_deref().unwrap_or_default(), ranges);
                    continue;
                }
                NodeKind::Repeat { .. } => "a `repeat`",
                NodeKind::Unordered { .. } => "an `unordered`",
                NodeKind::Any { .. } => "an `any`",
                NodeKind::Optional { .. } => "an `optional`",
                NodeKind::Line(_) | NodeKind::Absent(_) => continue,
            };
            ranges.push((node.line..=node.end, name));
        }
    }

    fn name_at(&self, line: usize) -> Option<&'static str> {
        self.ranges.iter().find(|(range, _)| range.contains(&line)).map(|(_, name)| *name)
    }

    /// The line after which something can be added when it comes after `line`.
    fn end_at(&self, line: usize) -> usize {
        self.ranges.iter().find(|(range, _)| range.contains(&line)).map_or(line, |(range, _)| *range.end())
    }
}

/// A line of a capture as a golden would have it; `None` when it is no text.
fn new_line(
    line: &[u8],
    format: Format,
    namer: &mut Namer,
    bound: &Bindings,
    fresh: &mut BTreeMap<String, usize>,
) -> Option<New> {
    let text = std::str::from_utf8(line).ok()?;
    let (mut strict, mut masked) = (Builder::default(), Builder::default());
    let mut at = 0;
    for token in format.tokens(line) {
        strict.literal(&text[at..token.start]);
        masked.literal(&text[at..token.start]);
        at = token.end;
        let hole = |name| Hole::Token { kind: token.kind, name };
        match token.kind {
            TokenKind::Number => {
                strict.literal(&text[token.start..token.end]);
                masked.hole(hole(None));
            }
            TokenKind::Ptr => {
                let value = std::str::from_utf8(token.value(line)).ok()?;
                let name = bound.name(Namespace::Token(TokenKind::Ptr), value).map(str::to_owned);
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
    Some(New { strict: strict.pattern(), masked: masked.pattern() })
}

#[derive(Default)]
struct Builder {
    segments: Vec<Segment>,
}

impl Builder {
    fn literal(&mut self, text: &str) {
        match self.segments.last_mut() {
            Some(Segment::Literal(last)) => last.push_str(text),
            _ if text.is_empty() => {}
            _ => self.segments.push(Segment::Literal(text.to_owned())),
        }
    }

    fn hole(&mut self, hole: Hole) {
        self.segments.push(Segment::Hole(hole));
    }

    fn pattern(self) -> Pattern {
        Pattern { segments: self.segments }
    }
}

/// A line of the result, and the guests (by their index) that it is for.
struct Out {
    text: String,
    guests: Vec<usize>,
    /// The golden's own directive: it is never put under a condition.
    fixed: bool,
}

fn write(golden: &Golden, observed: &[Observed<'_>], views: &[View]) -> Result<Golden, String> {
    let all: Vec<usize> = (0..views.len()).collect();
    let mut out: Vec<Out> = Vec::new();
    add(&mut out, views, &all, 1);
    for (at, line) in golden.lines.iter().enumerate().skip(1).map(|(at, line)| (at + 1, line)) {
        let keep: Vec<usize> = all.iter().copied().filter(|g| views[*g].kept.contains(&at)).collect();
        let drop: Vec<usize> = all.iter().copied().filter(|g| views[*g].dropped.contains(&at)).collect();
        if drop.is_empty() {
            // Nobody is against it: directives, and lines for guests that were not asked, stay too.
            out.push(Out { text: line.clone(), guests: all.clone(), fixed: true });
        } else if !keep.is_empty() {
            out.push(Out { text: line.clone(), guests: keep, fixed: false });
        }
        add(&mut out, views, &all, at);
    }
    let archs: Vec<&str> = observed.iter().map(|seen| seen.facts.arch.as_str()).collect();
    let body = conditioned(out, &archs)?;
    let text = format!("{}\n{body}", golden.head);
    Golden::parse(&golden.file, text.as_bytes()).map_err(|faults| {
        let first = faults.first().map(|fault| fault.message.clone()).unwrap_or_default();
        format!("what would be written is no golden: {first}")
    })
}

/// Add what comes after the golden's line `at`.
fn add(out: &mut Vec<Out>, views: &[View], all: &[usize], at: usize) {
    let lists: Vec<(usize, &[New])> =
        all.iter().filter_map(|g| Some((*g, views[*g].added.get(&at)?.as_slice()))).collect();
    let everybody = lists.len() == all.len();
    if everybody {
        if let Some(lines) = agreed(&lists) {
            out.extend(lines.into_iter().map(|text| Out { text, guests: all.to_vec(), fixed: false }));
            return;
        }
    }
    // What they share at the start and the end is written once.
    let shared = |a: &New, b: &New| a.strict == b.strict;
    let shortest = if everybody { lists.iter().map(|(_, list)| list.len()).min().unwrap_or(0) } else { 0 };
    let first = lists.first().map_or(&[][..], |(_, list)| list);
    let head = (0..shortest).take_while(|i| lists.iter().all(|(_, l)| shared(&l[*i], &first[*i]))).count();
    let tail = (0..shortest - head)
        .take_while(|i| lists.iter().all(|(_, l)| shared(&l[l.len() - 1 - i], &first[first.len() - 1 - i])))
        .count();
    let mut push = |line: &New, guests: Vec<usize>| {
        out.push(Out { text: line.strict.to_string(), guests, fixed: false });
    };
    first[..head].iter().for_each(|line| push(line, all.to_vec()));
    for (guest, list) in &lists {
        list[head..list.len() - tail].iter().for_each(|line| push(line, vec![*guest]));
    }
    first[first.len() - tail..].iter().for_each(|line| push(line, all.to_vec()));
}

/// Lines that all guests have but for their numbers, and for how often lines of one shape come in a
/// row; `None` when they differ in more.
fn agreed(lists: &[(usize, &[New])]) -> Option<Vec<String>> {
    let runs: Vec<Vec<&[New]>> =
        lists.iter().map(|(_, list)| list.chunk_by(|a, b| a.masked == b.masked).collect()).collect();
    let first = runs.first()?;
    let same_shapes = |other: &Vec<&[New]>| {
        other.len() == first.len() && other.iter().zip(first).all(|(a, b)| a[0].masked == b[0].masked)
    };
    if !runs.iter().all(same_shapes) {
        return None;
    }
    let mut lines = Vec::new();
    for at in 0..first.len() {
        let all: Vec<&[New]> = runs.iter().map(|list| list[at]).collect();
        if all.iter().all(|run| run.iter().map(|l| &l.strict).eq(all[0].iter().map(|l| &l.strict))) {
            lines.extend(all[0].iter().map(|line| line.strict.to_string()));
        } else if all.iter().all(|run| run.len() == 1) {
            lines.push(merged(&all.iter().map(|run| &run[0]).collect::<Vec<_>>()));
        } else {
            lines.push("#@ repeat 1..".to_owned());
            lines.push(all[0][0].masked.to_string());
            lines.push("#@ end".to_owned());
        }
    }
    Some(lines)
}

/// One line for all guests: holes only for the numbers in which they differ.
fn merged(lines: &[&New]) -> String {
    let texts: Vec<String> = lines.iter().map(|line| line.strict.to_string()).collect();
    if texts.iter().all(|text| *text == texts[0]) { texts[0].clone() } else { lines[0].masked.to_string() }
}

/// The text of all lines, those of single guests under conditions.
fn conditioned(out: Vec<Out>, archs: &[&str]) -> Result<String, String> {
    let distinct: BTreeSet<&str> = archs.iter().copied().collect();
    let mut text = String::new();
    let mut rest = out.into_iter().peekable();
    while let Some(line) = rest.next() {
        if line.fixed || line.guests.len() == archs.len() {
            let _ = writeln!(text, "{}", line.text);
            continue;
        }
        if distinct.len() != archs.len() {
            return Err("guests of one architecture differ, and no condition tells them apart".to_owned());
        }
        let mut parts: BTreeMap<Vec<usize>, Vec<String>> = BTreeMap::new();
        parts.entry(line.guests).or_default().push(line.text);
        while let Some(next) = rest.next_if(|next| !next.fixed && next.guests.len() < archs.len()) {
            parts.entry(next.guests).or_default().push(next.text);
        }
        let condition = |guests: &[usize]| {
            let mut all: Vec<Condition> =
                guests.iter().map(|guest| Condition::Arch(archs[*guest].to_owned())).collect();
            if all.len() == 1 { all.remove(0) } else { Condition::Any(all) }
        };
        let block = |text: &mut String, lines: &[String]| {
            for line in lines {
                let _ = writeln!(text, "{line}");
            }
        };
        let list: Vec<(&Vec<usize>, &Vec<String>)> = parts.iter().collect();
        if let ([(first, then), (_, otherwise)], 2) = (list.as_slice(), archs.len()) {
            let _ = writeln!(text, "#@ if {}", condition(first));
            block(&mut text, then);
            let _ = writeln!(text, "#@ else");
            block(&mut text, otherwise);
            let _ = writeln!(text, "#@ end");
            continue;
        }
        for (guests, lines) in list {
            let _ = writeln!(text, "#@ if {}", condition(guests));
            block(&mut text, lines);
            let _ = writeln!(text, "#@ end");
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;
    use expect_test::{Expect, expect};

    use super::*;

    fn facts(arch: &str) -> Facts {
        Facts { arch: arch.to_owned(), ..Facts::default() }
    }

    fn blessed(body: &str, format: Format, captures: &[(&str, &str)]) -> Result<Option<String>, String> {
        let text_before = format!("#@ golden v1\n{body}");
        let golden = Golden::parse(Utf8Path::new("g"), text_before.as_bytes()).expect("valid");
        let facts: Vec<Facts> = captures.iter().map(|(arch, _)| facts(arch)).collect();
        let observed: Vec<Observed<'_>> = captures
            .iter()
            .zip(&facts)
            .map(|((_, capture), facts)| Observed { facts, capture: capture.as_bytes() })
            .collect();
        let names = || captures.iter().map(|_| GuestNames::default()).collect::<Vec<_>>();
        let mut namer = Namer::new([&golden]);
        let result = bless(&golden, format, &observed, &mut namer, &mut names())?;
        if let Some(result) = &result {
            // Blessing again changes nothing.
            let again = bless(result, format, &observed, &mut Namer::new([result]), &mut names())?;
            assert!(again.is_none());
        }
        Ok(result.map(|golden| text(&golden)))
    }

    fn check(body: &str, format: Format, captures: &[(&str, &str)], expected: &Expect) {
        expected.assert_eq(&blessed(body, format, captures).expect("blessed").expect("changed"));
    }

    const A: &str =
        "hist_data: 00000000aaaaaaaa\nvar.hist_data: 00000000bbbbbbbb\nhist_data: 00000000aaaaaaaa\n";
    const B: &str =
        "hist_data: 00000000cccccccc\nvar.hist_data: 00000000dddddddd\nhist_data: 00000000cccccccc\n";

    #[test]
    fn pointers_get_names() {
        check(
            "",
            Format::HistDebug,
            &[("ppc64le", A), ("x86_64", B)],
            &expect![[r"
            #@ golden v1
            hist_data: {{ptr:PTR1}}
            var.hist_data: {{ptr:PTR2}}
            hist_data: {{ptr:PTR1}}
        "]],
        );
    }

    #[test]
    fn names_that_still_match_are_kept() {
        let body = "hist_data: {{ptr:WAKING}}\n";
        check(
            body,
            Format::HistDebug,
            &[("ppc64le", A), ("x86_64", B)],
            &expect![[r"
            #@ golden v1
            hist_data: {{ptr:WAKING}}
            var.hist_data: {{ptr:PTR1}}
            hist_data: {{ptr:WAKING}}
        "]],
        );
    }

    #[test]
    fn a_capture_that_fits_changes_nothing() {
        let body = "a\n#@ any\nz\n";
        assert_eq!(blessed(body, Format::Plain, &[("x86_64", "a\nb\nz\n")]), Ok(None));
    }

    #[test]
    fn only_what_differs_is_edited() {
        let body = "a\n{{word}} b\n#@ if arch == x86_64\nx\n#@ end\nold\nz\n";
        check(
            body,
            Format::Plain,
            &[("ppc64le", "a\nq b\nnew\nz\n"), ("x86_64", "a\nr b\nx\nnew\nz\n")],
            &expect![[r"
            #@ golden v1
            a
            {{word}} b
            #@ if arch == x86_64
            x
            #@ end
            new
            z
        "]],
        );
    }

    #[test]
    fn where_guests_differ_a_condition_says_so() {
        check(
            "a\nz\n",
            Format::Plain,
            &[("ppc64le", "a\np\nz\n"), ("x86_64", "a\nx\nz\n")],
            &expect![[r"
            #@ golden v1
            a
            #@ if arch == ppc64le
            p
            #@ else
            x
            #@ end
            z
        "]],
        );
        check(
            "a\nb\nz\n",
            Format::Plain,
            &[("ppc64le", "a\np\nz\n"), ("x86_64", "a\nb\nz\n")],
            &expect![[r"
            #@ golden v1
            a
            #@ if arch == ppc64le
            p
            #@ else
            b
            #@ end
            z
        "]],
        );
    }

    #[test]
    fn numbers_stay_unless_the_guests_differ() {
        let row = |pid: u32, hits: u32| format!("{{ pid: {pid:10} }} hitcount: {hits:10}\n");
        let total = |hits: u32, rows: u32| {
            format!("\nTotals:\n    Hits: {hits}\n    Entries: {rows}\n    Dropped: 0\n")
        };
        let a = row(1, 2) + &row(3, 4) + &total(6, 2);
        let b = row(1, 2) + &row(5, 4) + &row(7, 1) + &total(7, 3);
        check(
            "",
            Format::Hist,
            &[("ppc64le", &a), ("x86_64", &b)],
            &expect![[r"
            #@ golden v1
            #@ repeat 1..
            { pid: {{n}} } hitcount: {{n}}
            #@ end

            Totals:
                Hits: {{n}}
                Entries: {{n}}
                Dropped: 0
        "]],
        );
        let same =
            blessed("", Format::Hist, &[("ppc64le", &a), ("x86_64", &a)]).expect("blessed").expect("changed");
        assert!(same.contains("{ pid:          1 } hitcount:          2"), "{same}");
    }

    #[test]
    fn what_a_person_must_decide_is_refused() {
        let refused =
            |body, capture| blessed(body, Format::HistDebug, &[("x86_64", capture)]).expect_err("refused");
        assert!(refused("#@ repeat 2..\nx\n#@ end\n", "x\n").contains("in a `repeat`"));
        assert!(refused("", "a").contains("has no end"));
        assert!(refused("", "hist_data: 12\n").contains("breaks a rule"));
        assert!(refused("#@ any 2..\nx\n", "x\n").contains("`any`"));
    }

    #[test]
    fn text_like_a_golden_is_escaped() {
        check(
            "",
            Format::Plain,
            &[("x86_64", "#@ if x\na {{b}}\n")],
            &expect![[r"
            #@ golden v1
            {{lit:#@ }}if x
            a {{lit:{{}}b}}
        "]],
        );
    }
}
