//! What preprocessed C defines outside of functions: functions with a body, and variables with an
//! initialiser.
//!
//! This is no parser of C. It knows what ends a definition at the outermost level, and how the
//! kernel's macros write one.

use std::collections::{BTreeMap, BTreeSet};

use super::tokens::{Token, Tokens};

/// A variable that is given a value where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variable<'t> {
    pub(super) name: &'t str,
    /// `NAME` of the type `struct NAME`.
    pub(super) kind: Option<&'t str>,
    /// The section that an attribute puts it in.
    pub(super) section: Option<&'t str>,
    /// The names in the value, in order, without member names (these are words behind a `.`).
    pub(super) initialiser: Vec<&'t str>,
    /// The first name or text behind each `.member =`.
    members: Vec<(&'t str, &'t str)>,
}

impl<'t> Variable<'t> {
    /// The first name or text that is assigned to `.MEMBER`, at any depth.
    pub(super) fn value(&self, member: &str) -> Option<&'t str> {
        let name = member.trim_start_matches('.');
        self.members.iter().find(|(of, _)| *of == name).map(|(_, value)| *value)
    }
}

/// All definitions of a text.
#[derive(Debug, Default)]
pub(super) struct Definitions<'t> {
    pub(super) functions: BTreeSet<&'t str>,
    /// By name: a name that is local to its file may be defined in more than one scope.
    pub(super) variables: BTreeMap<&'t str, Vec<Variable<'t>>>,
}

impl<'t> Definitions<'t> {
    pub(super) fn read(text: &'t str) -> Definitions<'t> {
        let mut found = Definitions::default();
        let mut item: Vec<Token<'t>> = Vec::new();
        // Open brackets of each kind, and whether the outermost brace is a function's body.
        let (mut open, mut body) = (0_usize, false);
        for token in Tokens::new(text) {
            match token {
                Token::Mark('{') if open == 0 && is_function(&item) => {
                    found.functions.extend(function_name(&item));
                    (open, body) = (1, true);
                    item.clear();
                    continue;
                }
                Token::Mark('(' | '{' | '[') => open += 1,
                Token::Mark(')' | '}' | ']') => open = open.saturating_sub(1),
                Token::Mark(';') if open == 0 => {
                    found.variable(&item);
                    item.clear();
                    continue;
                }
                _ => {}
            }
            if body {
                body = open > 0;
            } else {
                item.push(token);
            }
        }
        found
    }

    fn variable(&mut self, item: &[Token<'t>]) {
        let Some(equals) = outermost(item).find(|at| item[*at].is('=')) else { return };
        let (declared, value) = (&item[..equals], &item[equals + 1..]);
        let words: Vec<&'t str> = outermost(declared).filter_map(|at| declared[at].word()).collect();
        let (Some(name), false) = (words.last(), words.contains(&"typedef")) else { return };
        // Attributes may be behind the name: their own words are not on the outermost level.
        let name = words.iter().rev().find(|word| !is_attribute(word)).unwrap_or(name);
        let of_struct = words.iter().position(|word| *word == "struct");
        let (initialiser, members) = read_value(value);
        let variable = Variable {
            name,
            kind: of_struct.and_then(|at| words.get(at + 1)).copied().filter(|kind| kind != name),
            section: section(declared),
            initialiser,
            members,
        };
        self.variables.entry(variable.name).or_default().push(variable);
    }
}

/// The indices of what is in no bracket; a bracket's own marks are among them.
fn outermost<'i>(item: &'i [Token<'_>]) -> impl Iterator<Item = usize> + 'i {
    let mut open = 0_usize;
    item.iter().enumerate().filter_map(move |(at, token)| {
        match token {
            Token::Mark('(' | '{' | '[') => open += 1,
            Token::Mark(')' | '}' | ']') => {
                open = open.saturating_sub(1);
                return (open == 0).then_some(at);
            }
            _ => {}
        }
        (open == 0 || (open == 1 && matches!(token, Token::Mark('(' | '{' | '[')))).then_some(at)
    })
}

/// Whether a brace behind this opens a function's body.
fn is_function(item: &[Token<'_>]) -> bool {
    item.last().is_some_and(|last| last.is(')')) && !outermost(item).any(|at| item[at].is('='))
}

/// The word before the first parenthesis that is not an attribute's.
fn function_name<'t>(item: &[Token<'t>]) -> Option<&'t str> {
    let parentheses = outermost(item).filter(|at| item[*at].is('('));
    let words = parentheses.filter_map(|at| item.get(at.checked_sub(1)?)?.word());
    words.into_iter().find(|word| !is_attribute(word))
}

/// Words with a parenthesis behind that is no list of parameters.
fn is_attribute(word: &str) -> bool {
    matches!(
        word,
        "__attribute__"
            | "__attribute"
            | "asm"
            | "__asm__"
            | "__asm"
            | "_Alignas"
            | "typeof"
            | "__typeof__"
            | "__typeof"
            | "__typeof_unqual__"
            | "typeof_unqual"
            | "__declspec"
            | "_Static_assert"
    )
}

/// The text in `section("...")`.
fn section<'t>(declared: &[Token<'t>]) -> Option<&'t str> {
    declared.windows(3).find_map(|three| match three {
        [Token::Word("section" | "__section__"), Token::Mark('('), Token::Text(name)] => Some(*name),
        _ => None,
    })
}

/// The names in a value, and what its members are set to.
fn read_value<'t>(value: &[Token<'t>]) -> (Vec<&'t str>, Vec<(&'t str, &'t str)>) {
    let (mut names, mut members) = (Vec::new(), Vec::new());
    let mut before = None;
    for (at, token) in value.iter().enumerate() {
        match (before, token) {
            (Some(Token::Mark('.')), Token::Word(member)) => {
                if let Some(value) = assigned(&value[at + 1..]) {
                    members.push((*member, value));
                }
            }
            (_, Token::Word(word)) if !word.starts_with(|c: char| c.is_ascii_digit()) => names.push(*word),
            _ => {}
        }
        before = Some(*token);
    }
    (names, members)
}

/// What is behind `=`, up to the next comma or brace: `.event.funcs = &NAME,`.
fn assigned<'t>(rest: &[Token<'t>]) -> Option<&'t str> {
    let (first, rest) = rest.split_first()?;
    if !first.is('=') {
        return None;
    }
    let value = rest.iter().take_while(|token| !matches!(token, Token::Mark(',' | '{' | '}')));
    value.into_iter().find_map(|token| match token {
        Token::Word(text) | Token::Text(text) => Some(*text),
        Token::Mark(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_told_from_declarations() {
        let text = "\
extern struct tracepoint __tracepoint_a;
static struct trace_event_class event_class_a;
static __attribute__((no_instrument_function)) void declared(int (*f)(void), int);
static inline __attribute__((__unused__)) __attribute__((x(1))) int
defined(struct a *b) { if (b) { struct c inner = { 1 }; } return \"}\"[0]; }
struct s { int a; struct { int b; }; } __attribute__((packed));
typeof(int) typed(void) { }
__asm__(\".section \\\"x\\\", \\\"a\\\"\");
static int pointer(void) __attribute__((cold)) { return 0; }
";
        let found = Definitions::read(text);
        assert_eq!(found.functions.into_iter().collect::<Vec<_>>(), ["defined", "pointer", "typed"]);
        assert_eq!(found.variables, BTreeMap::new());
    }

    #[test]
    fn a_variable_has_a_type_a_section_and_values() {
        let text = "\
struct tracepoint __tracepoint_a __attribute__((__used__)) __attribute__((__section__(\"__tracepoints\"))) \
= { .name = __tpstrtab_a, .key = (struct static_key_false){ .key = { .enabled = { 0 } }, }, .ext = ((void *)0), };
static struct trace_event_call __attribute__((__used__)) event_a = { .class = &event_class_a, { .tp = &tp, }, \
.event.funcs = &funcs, .name = \"a\", };
static struct trace_event_call *__event_a __attribute__((section(\"_ftrace_events\"))) = &event_a;
static const char array[] = \"x\", *other = 0;
";
        let found = Definitions::read(text).variables;
        let names: Vec<_> = found.keys().copied().collect();
        assert_eq!(names, ["__event_a", "__tracepoint_a", "array", "event_a"]);
        let of = |name: &str| &found[name][0];
        assert_eq!(of("__tracepoint_a").kind, Some("tracepoint"));
        assert_eq!(of("__tracepoint_a").section, Some("__tracepoints"));
        assert_eq!(of("__event_a").section, Some("_ftrace_events"));
        assert_eq!(of("__event_a").initialiser, ["event_a"]);
        let call = of("event_a");
        let values = [".class", ".tp", ".funcs", ".name", ".nothing"].map(|member| call.value(member));
        assert_eq!(values, [Some("event_class_a"), Some("tp"), Some("funcs"), Some("a"), None]);
    }
}
