//! One directive of a golden: the text after `#@ `.
//!
//! This module reads a single line. Which directives may stand in which is for [`super::parse`].

use diagnostic::did_you_mean;
use regex::bytes::Regex;

use super::SyntaxError;
use super::condition::Condition;
use super::tree::{Counts, Expression};

/// How a line that is a directive begins.
pub(super) const START: &str = "#@ ";
const WORDS: [&str; 10] =
    ["if", "else", "end", "any", "unordered", "repeat", "absent", "optional", "xfail", "actual"];
/// The largest count of an `any` or a `repeat`.
const COUNT_MAX: usize = 1000;

/// A directive.
#[derive(Debug)]
pub(super) enum Directive {
    If(Condition),
    Else,
    Xfail { reason: String, condition: Option<Condition> },
    Actual,
    End,
    Any(Counts),
    Repeat(Counts),
    Unordered(Option<Expression>),
    Absent(Expression),
    Optional(String),
}

/// A directive with what is wrong with it. One that opens a block opens it in spite of an error, so
/// that its `end` is not an error too.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) directive: Option<Directive>,
    pub(super) error: Option<SyntaxError>,
}

/// Stands in for a condition that cannot be read, in a golden that is refused anyway.
const UNREAD: Condition = Condition::Any(Vec::new());
const ONCE: Counts = Counts { least: 1, most: Some(1) };

/// Read a whole line that begins with [`START`].
pub(super) fn read(line: &str) -> Read {
    let text = &line[START.len()..];
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let rest_at = line.len() - rest.len();
    let whole = || 0..line.len();
    let help = |help: String| SyntaxError::new(whole(), format!("invalid `{word}`")).with_help(help);
    let placed = |error: SyntaxError| error.shifted(rest_at);
    let (directive, error) = match (word, rest) {
        ("if", condition) => match Condition::parse(condition) {
            Ok(condition) => (Some(Directive::If(condition)), None),
            Err(error) => (Some(Directive::If(UNREAD)), Some(placed(error))),
        },
        ("xfail", rest) => match xfail(rest) {
            Ok(directive) => (Some(directive), None),
            Err(error) => {
                let recovered = Directive::Xfail { reason: String::new(), condition: None };
                (Some(recovered), Some(placed(error)))
            }
        },
        ("else", "") => (Some(Directive::Else), None),
        ("actual", "") => (Some(Directive::Actual), None),
        ("end", "") => (Some(Directive::End), None),
        ("any", "") => (Some(Directive::Any(Counts { least: 0, most: None })), None),
        ("any", text) => split(counts(text, "any").map(Directive::Any).map_err(help), None),
        ("repeat", text) => {
            split(counts(text, "repeat").map(Directive::Repeat).map_err(help), Some(Directive::Repeat(ONCE)))
        }
        ("unordered", "") => (Some(Directive::Unordered(None)), None),
        ("unordered", text) => {
            let by = text.strip_prefix("by ").map(expression);
            let by = by.unwrap_or_else(|| Err("write `#@ unordered` or `#@ unordered by /re/`".to_owned()));
            let directive = by.map(|by| Directive::Unordered(Some(by))).map_err(help);
            split(directive, Some(Directive::Unordered(None)))
        }
        ("absent", source) => split(expression(source).map(Directive::Absent).map_err(help), None),
        ("optional", text) => match quoted(text) {
            Some((reason, "")) => (Some(Directive::Optional(reason.to_owned())), None),
            _ => (None, Some(help("write `#@ optional \"why the line may be missing\"`".to_owned()))),
        },
        (word, _) if WORDS.contains(&word) => {
            let message = format!("extra text after `{word}`");
            (
                None,
                Some(SyntaxError::new(rest_at..line.len(), message).with_help(format!("write `#@ {word}`"))),
            )
        }
        (word, _) => {
            let help = did_you_mean(word, WORDS)
                .unwrap_or_else(|| format!("the directives are {}", WORDS.join(", ")));
            (None, Some(SyntaxError::new(whole(), format!("unknown directive `{word}`")).with_help(help)))
        }
    };
    Read { directive, error }
}

fn split(
    read: Result<Directive, SyntaxError>,
    recovered: Option<Directive>,
) -> (Option<Directive>, Option<SyntaxError>) {
    match read {
        Ok(directive) => (Some(directive), None),
        Err(error) => (recovered, Some(error)),
    }
}

/// `"reason"` and `"reason" if EXPR`; the error's span is in `text`.
fn xfail(text: &str) -> Result<Directive, SyntaxError> {
    const HELP: &str = "write `#@ xfail \"the bug and where it is\"`, or add ` if EXPR` as in `#@ if`";
    let invalid = || SyntaxError::new(0..text.len(), "invalid `xfail`").with_help(HELP);
    let (reason, rest) = quoted(text).ok_or_else(invalid)?;
    let reason = reason.to_owned();
    let Some(rest) = rest.strip_prefix(' ') else {
        return if rest.is_empty() {
            Ok(Directive::Xfail { reason, condition: None })
        } else {
            Err(invalid())
        };
    };
    let at = text.len() - rest.len();
    let (word, condition) = rest.split_once(' ').unwrap_or((rest, ""));
    if word != "if" {
        let help = if ["when", "where"].contains(&word) { "did you mean `if`?" } else { HELP };
        let message = format!("expected `if` after the reason, found `{word}`");
        return Err(SyntaxError::new(at..at + word.len(), message).with_help(help));
    }
    let condition = Condition::parse(condition).map_err(|e| e.shifted(text.len() - condition.len()))?;
    Ok(Directive::Xfail { reason, condition: Some(condition) })
}

/// The text between two quotation marks, which is not empty, and what follows it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('"')?.split_once('"').filter(|(inside, _)| !inside.trim().is_empty())
}

/// `N`, `N..` and `N..M`.
fn counts(text: &str, word: &str) -> Result<Counts, String> {
    let help = || format!("write `#@ {word} 2`, `#@ {word} 2..` or `#@ {word} 2..5`");
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !digits {
            return Err(help());
        }
        text.parse().ok().filter(|count| *count <= COUNT_MAX).ok_or(format!("a count is at most {COUNT_MAX}"))
    };
    let (least, most) = match text.split_once("..") {
        None => (number(text)?, Some(number(text)?)),
        Some((least, "")) => (number(least)?, None),
        Some((least, most)) => (number(least)?, Some(number(most)?)),
    };
    match most {
        Some(0) => Err(format!("`{text}` takes no line: remove the `{word}`")),
        Some(most) if most < least => Err("write the smaller count first".to_owned()),
        most => Ok(Counts { least, most }),
    }
}

/// `/re/`
fn expression(text: &str) -> Result<Expression, String> {
    let help = "write a regular expression between slashes: /re/".to_owned();
    let source =
        text.strip_prefix('/').and_then(|t| t.strip_suffix('/')).filter(|s| !s.is_empty()).ok_or(help)?;
    let regex = Regex::new(source).map_err(|e| {
        let text = e.to_string();
        format!("`{source}` is not a regular expression: {}", text.lines().last().unwrap_or_default().trim())
    })?;
    Ok(Expression { source: source.to_owned(), regex })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(line: &str) -> String {
        let error = read(line).error.unwrap_or_else(|| panic!("{line} is read"));
        format!("{:?} {} | {}", error.span, error.message, error.help.unwrap_or_default())
    }

    #[test]
    fn xfail_takes_a_reason_and_a_condition() {
        let parts = |line| match read(line) {
            Read { directive: Some(Directive::Xfail { reason, condition }), error: None } => {
                (reason, condition.map(|condition| condition.to_string()))
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(parts("#@ xfail \"a bug\""), ("a bug".to_owned(), None));
        assert_eq!(
            parts("#@ xfail \"a bug\" if kernel < 7.3 && arch == ppc64le"),
            ("a bug".to_owned(), Some("kernel < 7.3 && arch == ppc64le".to_owned()))
        );
    }

    #[test]
    fn xfail_errors_have_spans_and_help() {
        let help = "write `#@ xfail \"the bug and where it is\"`, or add ` if EXPR` as in `#@ if`";
        assert_eq!(error("#@ xfail a bug"), format!("9..14 invalid `xfail` | {help}"));
        assert_eq!(error("#@ xfail \" \""), format!("9..12 invalid `xfail` | {help}"));
        assert_eq!(error("#@ xfail \"a\"if"), format!("9..14 invalid `xfail` | {help}"));
        assert_eq!(
            error("#@ xfail \"a\" when kernel < 7"),
            "13..17 expected `if` after the reason, found `when` | did you mean `if`?"
        );
        assert_eq!(
            error("#@ xfail \"a\" if krenel < 7"),
            "16..22 unknown condition `krenel` | did you mean `kernel`?"
        );
        assert!(error("#@ xfial \"a\"").ends_with("unknown directive `xfial` | did you mean `xfail`?"));
        assert_eq!(error("#@ actual text"), "10..14 extra text after `actual` | write `#@ actual`");
    }

    #[test]
    fn counts_are_bounded() {
        let read = |text| counts(text, "any").map(|counts| (counts.least, counts.most));
        assert_eq!(read("2"), Ok((2, Some(2))));
        assert_eq!(read("0.."), Ok((0, None)));
        assert_eq!(read("2..1000"), Ok((2, Some(1000))));
        let refused = |text| read(text).expect_err(text);
        assert_eq!(refused("2000000000"), "a count is at most 1000");
        assert_eq!(refused("0..99999999999999999999"), "a count is at most 1000");
        assert_eq!(refused("3..2"), "write the smaller count first");
        assert_eq!(refused("0..0"), "`0..0` takes no line: remove the `any`");
        for text in ["x", "+1", "-1..2", "1..+2", "..", "..2", "1...2", ""] {
            assert_eq!(refused(text), "write `#@ any 2`, `#@ any 2..` or `#@ any 2..5`", "{text}");
        }
    }

    #[test]
    fn other_directives_say_what_to_write() {
        for (line, help) in [
            ("#@ repeat", "write `#@ repeat 2`, `#@ repeat 2..` or `#@ repeat 2..5`"),
            ("#@ unordered x", "write `#@ unordered` or `#@ unordered by /re/`"),
            ("#@ absent x", "write a regular expression between slashes: /re/"),
            ("#@ absent /(/", "`(` is not a regular expression: error: unclosed group"),
            ("#@ optional", "write `#@ optional \"why the line may be missing\"`"),
            ("#@ optional \"a\" b", "write `#@ optional \"why the line may be missing\"`"),
        ] {
            let word = line[START.len()..].split(' ').next().unwrap_or_default();
            assert_eq!(error(line), format!("0..{} invalid `{word}` | {help}", line.len()));
        }
        assert!(error("#@ zzzzzzzzz").contains("the directives are if, else, end"));
    }
}
