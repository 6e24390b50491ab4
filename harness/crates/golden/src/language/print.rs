//! A golden as text: the inverse of parsing.

use std::fmt;

use super::tree::{Counts, Expression, Golden, Passage, PassageKind, Xfail};

impl fmt::Display for Golden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.header)?;
        passages(f, &self.passages)
    }
}

fn passages(f: &mut fmt::Formatter<'_>, all: &[Passage]) -> fmt::Result {
    all.iter().try_for_each(|passage| write!(f, "{}", passage.kind))
}

impl fmt::Display for PassageKind {
    /// All lines of the passage, each with its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PassageKind::Lines(patterns) => patterns.iter().try_for_each(|pattern| writeln!(f, "{pattern}")),
            PassageKind::Optional { reason, pattern } => writeln!(f, "#@ optional \"{reason}\"\n{pattern}"),
            PassageKind::If { condition, then, otherwise } => {
                writeln!(f, "#@ if {condition}")?;
                passages(f, then)?;
                if let Some(otherwise) = otherwise {
                    writeln!(f, "#@ else")?;
                    passages(f, otherwise)?;
                }
                writeln!(f, "#@ end")
            }
            PassageKind::Any(Counts { least: 0, most: None }) => writeln!(f, "#@ any"),
            PassageKind::Any(counts) => writeln!(f, "#@ any {counts}"),
            PassageKind::Repeat { counts, block } => {
                writeln!(f, "#@ repeat {counts}")?;
                passages(f, block)?;
                writeln!(f, "#@ end")
            }
            PassageKind::Unordered { by, block } => {
                match by {
                    Some(by) => writeln!(f, "#@ unordered by {by}")?,
                    None => writeln!(f, "#@ unordered")?,
                }
                passages(f, block)?;
                writeln!(f, "#@ end")
            }
            PassageKind::Xfail(xfail) => write!(f, "{xfail}"),
            PassageKind::Absent(expression) => writeln!(f, "#@ absent {expression}"),
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.most {
            Some(most) if most == self.least => write!(f, "{most}"),
            Some(most) => write!(f, "{}..{most}", self.least),
            None => write!(f, "{}..", self.least),
        }
    }
}

impl fmt::Display for Xfail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#@ xfail \"{}\"", self.reason)?;
        if let Some(condition) = &self.condition {
            write!(f, " if {condition}")?;
        }
        writeln!(f)?;
        self.right.iter().try_for_each(|pattern| writeln!(f, "{pattern}"))?;
        writeln!(f, "#@ actual")?;
        self.actual.iter().try_for_each(|pattern| writeln!(f, "{pattern}"))?;
        writeln!(f, "#@ end")
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/", self.source)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use camino::Utf8Path;
    use proptest::prelude::*;
    use regex::bytes::Regex;

    use super::super::condition::Condition;
    use super::super::header::Header;
    use super::super::pattern::Pattern;
    use super::super::pattern::tests::pattern;
    use super::super::text::Text;
    use super::*;

    fn expression() -> impl Strategy<Value = Expression> {
        "[a-z|.]{0,5}[a-z]"
            .prop_map(|source| Expression { regex: Regex::new(&source).expect("valid"), source })
    }

    fn line() -> impl Strategy<Value = PassageKind> {
        // One kind a name: names are made unlike by the kinds of their holes.
        pattern().prop_filter_map("names of one kind", |pattern| {
            let text = pattern.to_string();
            let whole = format!("#@ golden v1\n{text}\n");
            Golden::parse(Utf8Path::new("g"), whole.as_bytes())
                .ok()
                .map(|_| PassageKind::Lines(vec![anonymous(pattern)]))
        })
    }

    /// Names that another line may use for another kind are dropped.
    fn anonymous(pattern: Pattern) -> Pattern {
        use crate::{Hole, PatternBuilder, Segment};
        let mut builder = PatternBuilder::default();
        for segment in pattern.segments() {
            match segment {
                Segment::Literal(text) => builder.literal(text),
                Segment::Hole(Hole::Rest) => {}
                Segment::Hole(Hole::Token { kind, .. }) => {
                    builder.hole(Hole::Token { kind: *kind, name: None })
                }
                Segment::Hole(Hole::Word { .. }) => builder.hole(Hole::Word { name: None }),
                Segment::Hole(hole) if hole.uses().is_none() => builder.hole(hole.clone()),
                Segment::Hole(_) => {}
            }
        }
        builder.take()
    }

    fn passage(kind: PassageKind) -> Passage {
        Passage { line: 0, end: 0, kind }
    }

    fn lines(range: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Passage>> {
        prop::collection::vec(line().prop_map(passage), range)
    }

    fn counts() -> impl Strategy<Value = Counts> {
        (0_usize..4, prop::option::of(0_usize..4))
            .prop_map(|(least, more)| Counts { least, most: more.map(|more| (least + more).max(1)) })
    }

    fn xfail() -> impl Strategy<Value = PassageKind> {
        let part = || {
            prop::collection::vec(line(), 0..3).prop_map(|lines| {
                let of = |kind| if let PassageKind::Lines(patterns) = kind { patterns } else { Vec::new() };
                lines.into_iter().flat_map(of).collect::<Vec<Pattern>>()
            })
        };
        let condition = prop::option::of("[A-B][A-Z]{0,3}".prop_map(Condition::Config));
        ("[a-z (:)]{0,8}[a-z]", condition, part(), part()).prop_map(
            |(reason, condition, right, mut actual)| {
                // What parsing refuses: parts that are the same, and lines of nothing but holes.
                for pattern in &mut actual {
                    *pattern =
                        Pattern::parse(&format!("actual {pattern}")).unwrap_or(Pattern::literal("actual"));
                }
                if right == actual {
                    actual.push(Pattern::literal("one more"));
                }
                PassageKind::Xfail(Xfail { reason, condition, right, actual })
            },
        )
    }

    /// Passages in which no `any` follows another.
    pub(crate) fn body() -> impl Strategy<Value = Vec<Passage>> {
        let leaf = prop_oneof![
            4 => line(),
            1 => ("[a-z ]{0,8}[a-z]", pattern()).prop_map(|(reason, pattern)| {
                PassageKind::Optional { reason, pattern: anonymous(pattern) }
            }),
            1 => counts().prop_map(PassageKind::Any),
            1 => (counts(), lines(1..3)).prop_map(|(counts, block)| PassageKind::Repeat { counts, block }),
            2 => xfail(),
            1 => (prop::option::of(expression()), lines(1..3))
                .prop_map(|(by, block)| PassageKind::Unordered { by, block }),
            1 => expression().prop_map(PassageKind::Absent),
        ];
        let passages = |inner: BoxedStrategy<PassageKind>| {
            prop::collection::vec(inner.prop_map(passage), 0..5).prop_map(|mut passages| {
                passages.dedup_by(|a, b| {
                    matches!((&a.kind, &b.kind), (PassageKind::Any(_), PassageKind::Any(_)))
                });
                passages
            })
        };
        let tree = leaf.prop_recursive(3, 20, 5, move |inner| {
            let arms = prop::collection::vec(passages(inner.boxed()), 1..=2);
            ("[A-B][A-Z]{0,3}", arms).prop_map(|(symbol, mut arms)| {
                let otherwise = (arms.len() == 2).then(|| arms.remove(1));
                PassageKind::If { condition: Condition::Config(symbol), then: arms.remove(0), otherwise }
            })
        });
        passages(tree.boxed())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn print_and_parse_are_inverse(passages in body()) {
            let golden = Golden { file: "g".into(), header: Header::default(), passages, text: Text::default() };
            let text = golden.to_string();
            let parsed = Golden::parse(Utf8Path::new("g"), text.as_bytes());
            let parsed = parsed.map_err(|errors| TestCaseError::fail(format!("{text}\n{errors:?}")))?;
            prop_assert_eq!(parsed.to_string(), text.clone());
            prop_assert_eq!(parsed.text.as_str(), text);
        }
    }
}
