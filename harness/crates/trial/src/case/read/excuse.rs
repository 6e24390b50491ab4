//! Known faults, as a case's file excuses them.

use std::collections::BTreeSet;

use regex::bytes::Regex;

use super::Context;
use crate::case::excuse::{Excuse, ExpectedSplat, SplatKind};
use crate::case::model::Step;
use diagnostic::did_you_mean;
use golden::Condition;
use yaml::{Fields, Node};

impl Context<'_> {
    pub(super) fn excuses(&mut self, node: &Node<'_>, steps: Option<&[Step]>) -> Option<Vec<Excuse>> {
        let items = self.reader.list(node)?;
        // All of them are read before any is given up, so that all faults are told.
        let excuses: Vec<Option<Excuse>> = items.into_iter().map(|item| self.excuse(item, steps)).collect();
        excuses.into_iter().collect()
    }

    fn excuse(&mut self, node: Node<'_>, steps: Option<&[Step]>) -> Option<Excuse> {
        let line = node.line();
        let f = self.reader.fields(node, &["capture", "lines", "instead", "when", "reason"])?;
        let capture =
            f.need(&mut self.reader, "capture").and_then(|node| Some((self.reader.line(&node)?, node)));
        let lines =
            f.need(&mut self.reader, "lines").and_then(|node| Some((self.line_numbers(&node)?, node)));
        let instead = self.instead(&f);
        let when = self.when(&f);
        let reason = f.need(&mut self.reader, "reason").and_then(|node| self.reader.line(&node));
        let ((capture, capture_node), (lines, lines_node)) = (capture?, lines?);
        let captures = || steps.unwrap_or_default().iter().filter_map(|step| step.capture.as_ref());
        let Some(found) = captures().find(|known| known.name == capture) else {
            if steps.is_some() {
                let help = did_you_mean(&capture, captures().map(|known| known.name.as_str()));
                let fault = capture_node.error(format!("no step captures `{capture}`"));
                self.reader.report(help.map_or(fault.clone(), |help| fault.with_help(help)));
            }
            return None;
        };
        let held: BTreeSet<usize> = found.golden.patterns().iter().map(|(line, _)| *line).collect();
        if let Some(line) = lines.iter().find(|line| !held.contains(line)) {
            let message = format!("line {line} of `{}` holds no line of the capture", found.golden.file);
            self.reader.report(lines_node.error(message));
        }
        Some(Excuse { line, capture, lines, instead: instead?, when: when?, reason: reason? })
    }

    /// The outer option is for faults.
    #[expect(clippy::option_option, reason = "the two absences differ")]
    fn instead(&mut self, f: &Fields<'_>) -> Option<Option<Regex>> {
        let Some(node) = f.get("instead") else { return Some(None) };
        let text = self.reader.line(&node)?;
        match Regex::new(&text) {
            Ok(regex) => Some(Some(regex)),
            Err(why) => {
                // The last line says what is wrong; those before show where.
                let why = why.to_string();
                let last = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
                self.reader.report(node.error(format!("this regular expression cannot be read: {last}")));
                None
            }
        }
    }

    /// `[3, 7..9]`
    fn line_numbers(&mut self, node: &Node<'_>) -> Option<BTreeSet<usize>> {
        let mut lines = BTreeSet::new();
        for item in self.reader.list(node)? {
            let Some((from, to)) = item.range() else {
                let fault = item.error("expected the number of a golden's line");
                self.reader.report(fault.with_help("write a number, or a range such as 7..9"));
                return None;
            };
            lines.extend(from..=to);
        }
        if lines.is_empty() {
            self.reader.report(node.error("an excuse for no line"));
        }
        Some(lines)
    }

    /// The outer option is for faults.
    #[expect(clippy::option_option, reason = "the two absences differ")]
    fn when(&mut self, f: &Fields<'_>) -> Option<Option<Condition>> {
        let Some(node) = f.get("when") else { return Some(None) };
        let text = self.reader.line(&node)?;
        match text.parse() {
            Ok(condition) => Some(Some(condition)),
            Err(why) => {
                let fault = node.error(format!("this condition cannot be read: {why}"));
                self.reader
                    .report(fault.with_help("write it as in a golden's `#@ if`, such as kernel >= 7.2"));
                None
            }
        }
    }

    pub(super) fn expected_complaint(&mut self, node: Node<'_>) -> Option<ExpectedSplat> {
        let line = node.line();
        let f = self.reader.fields(node, &["complaint", "symbol", "when", "reason"])?;
        let kind = f.need(&mut self.reader, "complaint").and_then(|node| self.complaint_kind(&node, &f));
        let symbol = f.get("symbol").map(|node| self.reader.line(&node));
        let when = self.when(&f);
        let reason = f.need(&mut self.reader, "reason").and_then(|node| self.reader.line(&node));
        Some(ExpectedSplat { line, kind: kind?, symbol: symbol.flatten(), when: when?, reason: reason? })
    }

    fn complaint_kind(&mut self, node: &Node<'_>, f: &Fields<'_>) -> Option<SplatKind> {
        let word = self.reader.line(node)?;
        let found = SplatKind::ALL.iter().find(|(known, _)| *known == word).map(|(_, kind)| *kind);
        match found {
            None => {
                let known = SplatKind::ALL.map(|(word, _)| word);
                let help =
                    did_you_mean(&word, known).unwrap_or_else(|| format!("write {}", known.join(" or ")));
                self.reader.report(node.error(format!("unknown complaint `{word}`")).with_help(help));
            }
            Some(SplatKind::Oops | SplatKind::Warning) if f.get("symbol").is_none() => {
                self.reader.report(node.error("an oops and a warning are told by their `symbol`"));
            }
            Some(_) => {}
        }
        found
    }
}
