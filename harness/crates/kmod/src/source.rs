//! Whether a module's preprocessed source defines the events that its file has, and no others.
//!
//! The text is what the compiler gets (`make DIR/FILE.i`). How an event's parts belong together is read
//! from the module's file; here only their names are looked for: that the macros of
//! include/trace/trace_events.h, trace_custom_events.h and include/linux/tracepoint.h (Linux 7.2) have
//! made a definition of each (a declaration is not one), and which calls are put into the section
//! `_ftrace_events`. This is not a parser of C: it knows words, strings and brackets.

use std::collections::BTreeSet;

use super::model::{Event, Module};

/// The section of pointers to the `trace_event_call` of each event.
const EVENTS: &[u8] = b"_ftrace_events";

/// What of the module's events the text does not define, and the events that only the text has. Each
/// message begins with the name of the event, or of its call where only the text has it.
pub fn missing_definitions(preprocessed: &[u8], module: &Module) -> Vec<String> {
    let lexemes = lexemes(preprocessed);
    let calls: BTreeSet<&[u8]> = (0..lexemes.len()).filter_map(|at| call(&lexemes[at..])).collect();
    let defined: BTreeSet<&[u8]> = (0..lexemes.len()).filter_map(|at| definition(&lexemes[at..])).collect();
    let mut found = Vec::new();
    for event in module.events() {
        if !calls.contains(event.call.as_bytes()) {
            found.push(format!("{}: the source puts no {} into _ftrace_events", event.name, event.call));
        }
        let missing = parts(event).filter(|(_, part)| !defined.contains(part.as_bytes()));
        found.extend(
            missing.map(|(kind, part)| {
                format!("{}: the source does not define the {kind} `{part}`", event.name)
            }),
        );
    }
    let known: BTreeSet<&[u8]> = module.events().iter().map(|event| event.call.as_bytes()).collect();
    found.extend(calls.difference(&known).map(|call| {
        let call = String::from_utf8_lossy(call);
        format!("{call}: the source puts it into _ftrace_events, but the module has no such event")
    }));
    found
}

/// Everything that the macros define for an event.
fn parts(event: &Event) -> impl Iterator<Item = (&'static str, &str)> {
    let tracepoint = event.tracepoint.iter().map(|tracepoint| ("tracepoint", tracepoint.as_str()));
    let parts: [(&'static str, &str); 4] = [
        ("trace_event_call", &event.call),
        ("class", &event.class),
        ("raw event function", &event.probe),
        ("print function", &event.print),
    ];
    parts.into_iter().chain(tracepoint)
}

/// The call `event_x` where `"_ftrace_events"))) *__event_x = &event_x` follows; `None` at a declaration.
fn call<'t>(lexemes: &[Lexeme<'t>]) -> Option<&'t [u8]> {
    let rest = lexemes.strip_prefix(&[Lexeme::Text(EVENTS)])?;
    let rest = &rest[..rest.iter().position(|lexeme| *lexeme == Lexeme::Mark(b';'))?];
    let address = rest.iter().position(|lexeme| *lexeme == Lexeme::Mark(b'&'))?;
    rest.get(address + 1)?.word()
}

/// The name that is defined here: `NAME [ATTRIBUTES] =`, or `NAME(...) [ATTRIBUTES] {`.
fn definition<'t>(lexemes: &[Lexeme<'t>]) -> Option<&'t [u8]> {
    let name = lexemes.first()?.word()?;
    let mut rest = &lexemes[1..];
    let is_function = rest.first() == Some(&Lexeme::Mark(b'('));
    if is_function {
        rest = after_brackets(rest)?;
    }
    while rest.first() == Some(&Lexeme::Word(b"__attribute__")) {
        rest = after_brackets(&rest[1..])?;
    }
    let opens = if is_function { b'{' } else { b'=' };
    let is_comparison = rest.get(1) == Some(&Lexeme::Mark(b'='));
    (rest.first() == Some(&Lexeme::Mark(opens)) && !is_comparison).then_some(name)
}

/// What follows the bracket that closes the first one.
fn after_brackets<'s, 't>(lexemes: &'s [Lexeme<'t>]) -> Option<&'s [Lexeme<'t>]> {
    let mut open = 0_usize;
    for (at, lexeme) in lexemes.iter().enumerate() {
        match lexeme {
            Lexeme::Mark(b'(') => open += 1,
            Lexeme::Mark(b')') => open = open.checked_sub(1)?,
            // A list of parameters or attributes has neither: stop early in broken text.
            Lexeme::Mark(b'{' | b'}' | b';') => return None,
            _ => {}
        }
        if open == 0 {
            return Some(&lexemes[at + 1..]);
        }
    }
    None
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lexeme<'t> {
    /// An identifier, a keyword or a part of a number.
    Word(&'t [u8]),
    /// What is between the quotes of a string or a character, with its escapes.
    Text(&'t [u8]),
    Mark(u8),
}

impl<'t> Lexeme<'t> {
    fn word(self) -> Option<&'t [u8]> {
        match self {
            Lexeme::Word(word) => Some(word),
            _ => None,
        }
    }
}

/// The words of preprocessed C, without line markers: comments are gone in it.
fn lexemes(text: &[u8]) -> Vec<Lexeme<'_>> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'$';
    let mut found = Vec::new();
    let (mut at, mut line_start) = (0, true);
    while let Some(&byte) = text.get(at) {
        let rest = &text[at + 1..];
        let length = match byte {
            b'#' if line_start => memchr::memchr(b'\n', rest).unwrap_or(rest.len()),
            b'"' | b'\'' => {
                let end = quote_end(rest, byte);
                found.push(Lexeme::Text(&rest[..end]));
                (end + 1).min(rest.len())
            }
            _ if is_word(&byte) => {
                let length = rest.iter().take_while(|byte| is_word(byte)).count();
                found.push(Lexeme::Word(&text[at..=at + length]));
                length
            }
            _ if byte.is_ascii_whitespace() => 0,
            _ => {
                found.push(Lexeme::Mark(byte));
                0
            }
        };
        line_start = byte == b'\n' || (line_start && byte.is_ascii_whitespace());
        at += 1 + length;
    }
    found
}

/// Where the quote is that ends a text, or the end of the file.
fn quote_end(text: &[u8], quote: u8) -> usize {
    let mut at = 0;
    while at < text.len() && text[at] != quote {
        at += if text[at] == b'\\' { 2 } else { 1 };
    }
    at.min(text.len())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Elf, X86, sample};
    use super::*;

    /// What the macros make of an event, without what does not matter here.
    fn expansion(custom: bool, name: &str) -> String {
        let c = if custom { "custom_" } else { "" };
        let tracepoint = format!(
            "extern struct tracepoint __tracepoint_{name}; static inline bool trace_{name}_enabled(void)\n\
             {{ return __builtin_x(&__tracepoint_{name}.key); }}\n# 7 \"x.h\" 1\n\
             static const char __tpstrtab_{name}[] __attribute__((__section__(\"__tracepoints_strings\"))) = \
             \"{name}\"; struct tracepoint __tracepoint_{name} __attribute__((__used__)) \
             __attribute__((__section__(\"__tracepoints\"))) = {{ .name = __tpstrtab_{name}, .funcs = ((void *)0) }}; \
             asm(\".section \\\"__tracepoints_ptrs\\\", \\\"a\\\"\"); int __traceiter_{name}(void *d) {{ return 0; }}\n"
        );
        let named = match custom {
            true => format!(".name = \"{name}\","),
            false => format!("{{ .tp = &__tracepoint_{name}, }},"),
        };
        let event = format!(
            "struct trace_{c}event_raw_{name} {{ int bar; char __data[]; }}; \
             static struct trace_event_class {c}event_class_{name}; \
             static struct trace_event_call __attribute__((__used__)) __attribute__((__aligned__(4))) \
             {c}event_{name}; static __attribute__((no_instrument_function)) enum print_line_t\n\
             trace_{c}raw_output_{name}(struct trace_iterator *iter, int flags) {{ if (flags) {{ return 0; }} \
             return (enum print_line_t){{ 1 }}; }} \
             static struct trace_event_functions trace_{c}event_type_funcs_{name} = \
             {{ .trace = trace_{c}raw_output_{name}, }}; \
             static struct trace_event_fields trace_{c}event_fields_{name}[] = {{ {{ .type = \"int\" }}, {{}} }}; \
             static __attribute__((no_instrument_function)) void trace_{c}event_raw_event_{name}(void *__data) \
             {{ for (;;) {{ }} }} \
             static char {c}print_fmt_{name}[] = \"\\\"\" \"}}\" \"\\\", \" \"x\"; \
             static struct trace_event_class __attribute__((__used__)) \
             __attribute__((__section__(\".ref.data\"))) {c}event_class_{name} = {{ .system = \
             str__sample__trace_system_name, .fields = {{ &({c}event_class_{name}.fields), }}, \
             .probe = trace_{c}event_raw_event_{name}, }}; \
             static struct trace_event_call __attribute__((__used__)) {c}event_{name} = {{ \
             .class = &{c}event_class_{name}, {named} .event.funcs = &trace_{c}event_type_funcs_{name}, \
             .print_fmt = {c}print_fmt_{name}, .flags = TRACE_EVENT_FL_TRACEPOINT, }}; \
             static struct trace_event_call __attribute__((__used__)) \
             __attribute__((__section__(\"_ftrace_events\"))) *__{c}event_{name} = &{c}event_{name};\n"
        );
        if custom { event } else { tracepoint + &event }
    }

    /// What is missing in the source of the sample module after a change.
    #[track_caller]
    fn missing_after(from: &str, to: &str) -> Vec<String> {
        let text =
            expansion(false, "foo_bar") + &expansion(true, "sched_switch") + &expansion(false, "foo_late");
        assert!(text.contains(from), "{from}");
        missing_in(&text.replacen(from, to, 1))
    }

    fn missing_in(text: &str) -> Vec<String> {
        let module = Module::parse(&sample(Elf::new(X86))).expect("a module");
        missing_definitions(text.as_bytes(), &module)
    }

    #[test]
    fn source_of_the_module_lacks_nothing() {
        assert_eq!(missing_after("", ""), [""; 0]);
        assert_eq!(missing_after("__section__(\"_ftrace_events", "section(\"_ftrace_events"), [""; 0]);
    }

    #[test]
    fn declaration_is_not_a_definition() {
        let undefined = |from: &str, to: &str, part: &str| {
            assert_eq!(missing_after(from, to), [format!("foo_bar: the source does not define the {part}")]);
        };
        let tracepoint = "= { .name = __tpstrtab_foo_bar, .funcs = ((void *)0) }";
        undefined(tracepoint, "", "tracepoint `__tracepoint_foo_bar`");
        undefined("event_class_foo_bar = {", "other = {", "class `event_class_foo_bar`");
        undefined(" event_foo_bar = {", " other = {", "trace_event_call `event_foo_bar`");
        undefined(
            "event_foo_bar = { .class",
            "event_foo_bar == { .class",
            "trace_event_call `event_foo_bar`",
        );
        let probe = "raw event function `trace_event_raw_event_foo_bar`";
        undefined("{ for (;;) { } }", ";", probe);
        let print = "print function `trace_raw_output_foo_bar`";
        undefined("{ if (flags) { return 0; } return (enum print_line_t){ 1 }; }", ";", print);
    }

    #[test]
    fn custom_event_is_defined_by_its_own_names() {
        assert_eq!(
            missing_after("custom_event_class_sched_switch = {", "other = {"),
            ["sched_switch: the source does not define the class `custom_event_class_sched_switch`"]
        );
        assert_eq!(
            missing_after(" trace_custom_event_raw_event_sched_switch(void", " other(void"),
            ["sched_switch: the source does not define the raw event function \
              `trace_custom_event_raw_event_sched_switch`"]
        );
    }

    #[test]
    fn event_of_the_source_alone_is_an_error() {
        let text = ["foo_bar", "foo_late", "more"].map(|name| expansion(false, name)).concat();
        assert_eq!(
            missing_in(&(text + &expansion(true, "sched_switch"))),
            ["event_more: the source puts it into _ftrace_events, but the module has no such event"]
        );
    }

    #[test]
    fn event_of_the_module_alone_is_an_error() {
        let found = missing_in(&(expansion(false, "foo_bar") + &expansion(true, "sched_switch")));
        assert_eq!(found[0], "foo_late: the source puts no event_foo_late into _ftrace_events");
        assert_eq!(found.len(), 6, "{found:?}");
        let declared = "_ftrace_events\"))) *__event_foo_bar;";
        assert_eq!(
            missing_after("_ftrace_events\"))) *__event_foo_bar = &event_foo_bar;", declared),
            ["foo_bar: the source puts no event_foo_bar into _ftrace_events"]
        );
    }

    #[test]
    fn strings_markers_and_bytes_are_not_words() {
        use Lexeme::{Mark, Text, Word};
        let text = b"# 12 \"a;b\" 3\nf(\"a\\\"{\", '\\'');\n  #pragma {\n \xe9 y";
        let f = [Word(b"f"), Mark(b'('), Text(b"a\\\"{"), Mark(b','), Text(b"\\'"), Mark(b')'), Mark(b';')];
        assert_eq!(lexemes(text), [&f[..], &[Mark(0xe9), Word(b"y")]].concat());
        for open in ["\"", "\"a", "\"a\\", "'\\"] {
            assert_eq!(lexemes(open.as_bytes()).len(), 1, "{open}");
        }
    }
}
