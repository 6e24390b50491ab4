//! Classes of lines: two rows are of one class when they are equal but for names.
//!
//! Patterns are kept as a tree that is entered with a line: the patterns of a long golden differ in
//! a few pieces, and a line that were held against one after the other would meet every one of them.

use std::collections::HashMap;

use crate::language::hole::{Hole, Operand};
use crate::language::pattern::{Pattern, Segment, hole_end};
use formats::Token;

/// Patterns with a `{{..}}` that are tried at one place of the tree, each as a whole.
const RESTS_MAX: usize = 64;

/// A class.
pub(super) type Class = u32;

#[derive(Default)]
struct Node<'g> {
    /// The lengths of the texts that go on from here.
    lengths: Vec<usize>,
    /// The holes that go on from here, no two alike.
    holes: Vec<(&'g Hole, u32)>,
    /// Patterns whose `{{..}}` stands here.
    rests: Vec<(&'g Pattern, Class)>,
    /// A pattern ends here: its class is the node's index.
    ends: bool,
}

/// The classes of patterns.
pub(super) struct Classes<'g> {
    nodes: Vec<Node<'g>>,
    /// Where a text leads from a node.
    texts: HashMap<(u32, &'g [u8]), u32>,
}

impl<'g> Classes<'g> {
    pub(super) fn new() -> Classes<'g> {
        Classes { nodes: vec![Node::default()], texts: HashMap::new() }
    }

    /// The class of a pattern; a new one when none is like it.
    pub(super) fn insert(&mut self, pattern: &'g Pattern) -> Class {
        let mut at = 0;
        for segment in pattern.segments() {
            let new = index(self.nodes.len());
            let node = &mut self.nodes[at as usize];
            let next = match segment {
                Segment::Hole(Hole::Rest) => {
                    let like = |(other, _): &&(&Pattern, Class)| alike(other, pattern);
                    if let Some((_, class)) = node.rests.iter().find(like) {
                        return *class;
                    }
                    if node.rests.len() < RESTS_MAX {
                        node.rests.push((pattern, new));
                    }
                    self.nodes.push(Node::default());
                    return new;
                }
                Segment::Hole(hole) => match node.holes.iter().find(|(other, _)| same_kind(other, hole)) {
                    Some((_, next)) => *next,
                    None => {
                        node.holes.push((hole, new));
                        new
                    }
                },
                Segment::Literal(text) => {
                    if !node.lengths.contains(&text.len()) {
                        node.lengths.push(text.len());
                    }
                    *self.texts.entry((at, text.as_bytes())).or_insert(new)
                }
            };
            if next == new {
                self.nodes.push(Node::default());
            }
            at = next;
        }
        self.nodes[at as usize].ends = true;
        at
    }

    /// A class that a line belongs to. Where there are several it is one with much literal text.
    pub(super) fn find(&self, line: &[u8], tokens: &[Token]) -> Option<Class> {
        let mut rests = None;
        // Nodes at places of the line; what is pushed last is looked at first.
        let mut open = vec![(0, 0)];
        while let Some((index, at)) = open.pop() {
            let node = &self.nodes[index as usize];
            if node.ends && at == line.len() {
                return Some(index);
            }
            let rest = || node.rests.iter().find(|(pattern, _)| pattern.matches(line, tokens));
            rests = rests.or_else(rest);
            let ends = node
                .holes
                .iter()
                .filter_map(|(hole, next)| hole_end(hole, at, line, tokens).map(|end| (*next, end)));
            open.extend(ends);
            let texts = node.lengths.iter().filter_map(|length| {
                let end = at + length;
                self.texts.get(&(index, line.get(at..end)?)).map(|next| (*next, end))
            });
            open.extend(texts);
        }
        rests.map(|(_, class)| *class)
    }
}

fn index(at: usize) -> u32 {
    u32::try_from(at).expect("a golden has fewer pieces than 2^32")
}

fn alike(a: &Pattern, b: &Pattern) -> bool {
    let same = |pair: (Segment<'_>, Segment<'_>)| match pair {
        (Segment::Hole(a), Segment::Hole(b)) => same_kind(a, b),
        (a, b) => a == b,
    };
    a.segments().count() == b.segments().count() && a.segments().zip(b.segments()).all(same)
}

/// Whether the same text fits two holes.
fn same_kind(a: &Hole, b: &Hole) -> bool {
    match (a, b) {
        (Hole::Token { kind: a, .. }, Hole::Token { kind: b, .. }) => a == b,
        (Hole::After { .. }, Hole::After { .. }) | (Hole::Word { .. }, Hole::Word { .. }) => true,
        (Hole::Number { than: Operand::Name(_), .. }, Hole::Number { than: Operand::Name(_), .. }) => true,
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::language::pattern::tests::pattern;

    fn patterns(texts: &[&str]) -> Vec<Pattern> {
        texts.iter().map(|text| Pattern::parse(text).expect("valid")).collect()
    }

    #[test]
    fn names_make_no_class() {
        let all = patterns(&["a {{n:X}}", "a {{n:Y}}", "a {{n}}", "a {{n>1}}", "a {{..}}", "a {{..}}", "a"]);
        let mut classes = Classes::new();
        let ids: Vec<Class> = all.iter().map(|pattern| classes.insert(pattern)).collect();
        assert!(ids[0] == ids[1] && ids[1] == ids[2] && ids[4] == ids[5], "{ids:?}");
        assert!(ids[2] != ids[3] && ids[3] != ids[4] && ids[4] != ids[6], "{ids:?}");
        assert_eq!(classes.find(b"a", &[]), Some(ids[6]));
        assert_eq!(classes.find(b"a x", &[]), Some(ids[4]));
        assert_eq!(classes.find(b"b", &[]), None);
    }

    proptest! {
        #[test]
        fn a_class_is_found_when_a_pattern_fits(
            all in prop::collection::vec(pattern(), 1..8),
            line in "[a-c0-9 :#@{}]{0,12}",
        ) {
            let mut classes = Classes::new();
            let ids: Vec<Class> = all.iter().map(|pattern| classes.insert(pattern)).collect();
            let found = classes.find(line.as_bytes(), &[]);
            let fitting: Vec<Class> = all
                .iter()
                .zip(&ids)
                .filter(|(pattern, _)| pattern.matches(line.as_bytes(), &[]))
                .map(|(_, id)| *id)
                .collect();
            prop_assert_eq!(found.is_some(), !fitting.is_empty());
            prop_assert!(found.is_none_or(|class| fitting.contains(&class)));
        }
    }
}
