//! One golden out of what the guests have of the old one and in addition to it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::Observed;
use super::line::New;
use super::view::View;
use crate::{Condition, Golden};

/// A line of the result, and the guests (by their index) that it is for.
struct Out {
    text: String,
    guests: Vec<usize>,
    /// The golden's own directive: it is never put under a condition.
    fixed: bool,
}

/// The golden that all guests fit.
///
/// # Errors
/// When guests differ that no condition can distinguish.
pub(super) fn write(golden: &Golden, observed: &[Observed<'_>], views: &[View]) -> Result<Golden, String> {
    let all: Vec<usize> = (0..views.len()).collect();
    let mut out: Vec<Out> = Vec::new();
    add(&mut out, views, &all, 1);
    for (at, line) in golden.text.numbered().skip(1) {
        let keep: Vec<usize> = all.iter().copied().filter(|g| views[*g].kept.contains(&at)).collect();
        let drop: Vec<usize> = all.iter().copied().filter(|g| views[*g].dropped.contains(&at)).collect();
        if drop.is_empty() {
            // No guest lacks it: directives, and lines for guests that were not asked, stay too.
            out.push(Out { text: line.to_owned(), guests: all.clone(), fixed: true });
        } else if !keep.is_empty() {
            out.push(Out { text: line.to_owned(), guests: keep, fixed: false });
        }
        add(&mut out, views, &all, at);
    }
    let archs: Vec<&str> = observed.iter().map(|seen| seen.facts.arch.as_str()).collect();
    let body = conditioned(out, &archs)?;
    let text = format!("{}\n{body}", golden.header);
    Golden::parse(&golden.file, text).map_err(|errors| {
        let first = errors.first().map(|error| error.message.clone()).unwrap_or_default();
        format!("failed to write a golden: {first}")
    })
}

/// Add what comes after the golden's line `at`.
fn add(out: &mut Vec<Out>, views: &[View], all: &[usize], at: usize) {
    let lists: Vec<(usize, &[New])> =
        all.iter().filter_map(|g| Some((*g, views[*g].added.get(&at)?.as_slice()))).collect();
    let is_of_all = lists.len() == all.len();
    if is_of_all {
        if let Some(lines) = agreed(&lists) {
            out.extend(lines.into_iter().map(|text| Out { text, guests: all.to_vec(), fixed: false }));
            return;
        }
    }
    // What they share at the start and the end is written once.
    let shared = |a: &New, b: &New| a.strict == b.strict;
    let shortest = if is_of_all { lists.iter().map(|(_, list)| list.len()).min().unwrap_or(0) } else { 0 };
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
            return Err("guests of one architecture differ, and no condition can distinguish them".to_owned());
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
