//! Whether a module's preprocessed source defines its events whole.
//!
//! The text is what the compiler gets (`make DIR/FILE.i`). An event is in it when a pointer to its
//! `trace_event_call` is put into the section `_ftrace_events`; from there on everything that the
//! event consists of must be *defined* in the text, by the macros of include/trace/trace_events.h,
//! trace_custom_events.h and include/linux/tracepoint.h (Linux 7.2). A declaration is no definition.

mod items;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};

use self::items::{Definitions, Variable};
use super::events::TRACEPOINTS;
use super::model::{Event, Module};

/// The section of pointers to calls.
const EVENTS: &str = "_ftrace_events";

/// Everything in which the text and the module do not have the same events, each made of the same
/// things, and everything of an event that the text does not define. Each begins with the event's
/// name (or, where the text does not tell it, that of its call).
pub fn missing_definitions(preprocessed: &str, module: &Module) -> Vec<String> {
    let text = Definitions::read(preprocessed);
    let mut found = Vec::new();
    let mut calls: BTreeMap<&str, Parts<'_>> = BTreeMap::new();
    for pointer in text.variables.values().flatten().filter(|variable| variable.section == Some(EVENTS)) {
        match pointer.initialiser.first() {
            Some(call) => _ = calls.entry(call).or_insert_with(|| Parts::read(&text, call)),
            None => found.push(format!("{}: it is in {EVENTS} and points to nothing", pointer.name)),
        }
    }
    let known: BTreeSet<&str> = module.events().iter().map(|event| event.call.as_str()).collect();
    for event in module.events() {
        match calls.get(event.call.as_str()) {
            Some(parts) => parts.compare(event, &mut found),
            None => found.push(format!(
                "{}: the module has this event, and the text puts no {} into {EVENTS}",
                event.name, event.call
            )),
        }
    }
    for (call, parts) in &calls {
        if !known.contains(call) {
            found.push(format!(
                "{}: the text puts {call} into {EVENTS}, and the module has no such event",
                parts.event
            ));
        }
        found.extend(parts.undefined.iter().map(|what| format!("{}: {what}", parts.event)));
    }
    found
}

/// What an event consists of, by the text.
struct Parts<'t> {
    /// Its name.
    event: &'t str,
    /// Whether its call is defined. If not, nothing more is known of it.
    defined: bool,
    /// What each thing is, and its name.
    named: Vec<(&'static str, &'t str)>,
    /// What the text does not define, in words.
    undefined: Vec<String>,
}

impl<'t> Parts<'t> {
    fn read(text: &Definitions<'t>, call: &'t str) -> Parts<'t> {
        let event = call.strip_prefix("custom_").unwrap_or(call);
        let event = event.strip_prefix("event_").unwrap_or(call);
        let mut parts = Parts { event, defined: false, named: Vec::new(), undefined: Vec::new() };
        let Some(call) = parts.variable(text, "trace_event_call", call) else { return parts };
        parts.defined = true;
        if let Some(name) = call.value(".name") {
            parts.event = name;
        }
        if let Some(tracepoint) = call.value(".tp") {
            parts.event = tracepoint.strip_prefix("__tracepoint_").unwrap_or(tracepoint);
            let variable = parts.variable(text, "tracepoint", tracepoint);
            if variable.is_some_and(|variable| variable.section != Some(TRACEPOINTS)) {
                parts.undefined.push(format!("{tracepoint} is not in {TRACEPOINTS}"));
            }
        }
        if let Some(class) = parts.pointed(call, ".class") {
            if let Some(class) = parts.variable(text, "trace_event_class", class) {
                parts.function(text, "raw event function", class, ".probe");
            }
        }
        if let Some(functions) = parts.pointed(call, ".funcs") {
            if let Some(functions) = parts.variable(text, "trace_event_functions", functions) {
                parts.function(text, "print function", functions, ".trace");
            }
        }
        parts
    }

    fn pointed(&mut self, holder: &Variable<'t>, member: &str) -> Option<&'t str> {
        let value = holder.value(member);
        if value.is_none() {
            self.undefined.push(format!("{} is defined without a `{member}`", holder.name));
        }
        value
    }

    fn variable<'d>(
        &mut self,
        text: &'d Definitions<'t>,
        kind: &'static str,
        name: &'t str,
    ) -> Option<&'d Variable<'t>> {
        self.named.push((kind, name));
        let variables = text.variables.get(name).map_or(&[][..], Vec::as_slice);
        let variable = variables.iter().find(|variable| variable.kind == Some(kind));
        if variable.is_none() {
            self.undefined.push(format!("the text does not define `struct {kind} {name}`"));
        }
        variable
    }

    fn function(&mut self, text: &Definitions<'t>, kind: &'static str, holder: &Variable<'t>, member: &str) {
        let Some(name) = self.pointed(holder, member) else { return };
        self.named.push((kind, name));
        if !text.functions.contains(name) {
            self.undefined.push(format!("the text does not define the {kind} `{name}`"));
        }
    }

    /// What the module has otherwise.
    fn compare(&self, event: &Event, found: &mut Vec<String>) {
        let has = [
            ("tracepoint", event.tracepoint.as_deref()),
            ("trace_event_class", Some(event.class.as_str())),
            ("raw event function", Some(event.probe.as_str())),
            ("print function", Some(event.print.as_str())),
        ];
        for (kind, module) in has {
            let text = self.named.iter().find(|(of, _)| *of == kind).map(|(_, name)| *name);
            // Only a tracepoint may be absent; what else is, has been said.
            let said = text.is_none() && !(self.defined && kind == "tracepoint");
            if text != module && !said {
                let name = |name: Option<&str>| name.map_or("none".to_owned(), |name| format!("`{name}`"));
                found.push(format!(
                    "{}: the {kind} is {} in the text and {} in the module",
                    event.name,
                    name(text),
                    name(module)
                ));
            }
        }
    }
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

    fn told(change: impl FnOnce(String) -> String) -> Vec<String> {
        let module = Module::parse(&sample(Elf::new(X86))).expect("a module");
        let text =
            expansion(false, "foo_bar") + &expansion(true, "sched_switch") + &expansion(false, "foo_late");
        missing_definitions(&change(text), &module)
    }

    fn without(from: &str, to: &str) -> Vec<String> {
        told(|text| {
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1)
        })
    }

    #[test]
    fn events_that_are_defined_whole_are_fine() {
        assert_eq!(told(|text| text), [""; 0]);
        assert_eq!(told(|text| text.replace("__section__", "section")), [""; 0]);
    }

    #[test]
    fn a_declaration_is_no_definition() {
        let start = "struct tracepoint __tracepoint_foo_bar __attribute__((__used__))";
        assert_eq!(
            told(|text| {
                let at = text.find(start).expect("a definition");
                let end = at + text[at..].find(';').expect("an end");
                text[..at].to_owned() + &text[end..]
            }),
            ["foo_bar: the text does not define `struct tracepoint __tracepoint_foo_bar`"]
        );
        assert_eq!(
            without("event_class_foo_bar = {", "other = {"),
            ["foo_bar: the text does not define `struct trace_event_class event_class_foo_bar`"]
        );
        assert_eq!(
            without("event_foo_bar = {", "other = {"),
            ["foo_bar: the text does not define `struct trace_event_call event_foo_bar`"]
        );
        assert_eq!(
            without("{ for (;;) { } }", ";"),
            ["foo_bar: the text does not define the raw event function `trace_event_raw_event_foo_bar`"]
        );
        assert_eq!(
            without("{ if (flags) { return 0; } return (enum print_line_t){ 1 }; }", ";"),
            ["foo_bar: the text does not define the print function `trace_raw_output_foo_bar`"]
        );
    }

    #[test]
    fn a_custom_event_is_looked_at_too() {
        assert_eq!(
            without("custom_event_class_sched_switch = {", "other = {"),
            [
                "sched_switch: the text does not define `struct trace_event_class custom_event_class_sched_switch`"
            ]
        );
        assert_eq!(
            told(|text| text.replace(" trace_custom_event_raw_event_sched_switch(void", " other(void")),
            ["sched_switch: the text does not define the raw event function \
              `trace_custom_event_raw_event_sched_switch`"]
        );
    }

    #[test]
    fn a_tracepoint_in_another_section_is_told() {
        assert_eq!(
            without("\"__tracepoints\"", "\".data\""),
            ["foo_bar: __tracepoint_foo_bar is not in __tracepoints"]
        );
    }

    #[test]
    fn the_events_of_the_text_are_those_of_the_module() {
        assert_eq!(
            told(|text| text + &expansion(false, "more")),
            ["more: the text puts event_more into _ftrace_events, and the module has no such event"]
        );
        assert_eq!(
            told(|_| expansion(false, "foo_bar") + &expansion(true, "sched_switch")),
            ["foo_late: the module has this event, and the text puts no event_foo_late into _ftrace_events"]
        );
        assert_eq!(told(|_| "int x = 1;".to_owned()).len(), 3);
    }

    #[test]
    fn an_event_that_is_made_of_other_things_is_told() {
        assert_eq!(
            without("&trace_event_type_funcs_foo_bar", "&trace_event_type_funcs_foo_late"),
            [
                "foo_bar: the print function is `trace_raw_output_foo_late` in the text and `trace_raw_output_foo_bar` in \
              the module"
            ]
        );
        assert_eq!(
            without(".tp = &__tracepoint_foo_bar,", ""),
            ["foo_bar: the tracepoint is none in the text and `__tracepoint_foo_bar` in the module"]
        );
        assert_eq!(
            without(".probe = trace_event_raw_event_foo_bar,", ""),
            ["foo_bar: event_class_foo_bar is defined without a `.probe`"]
        );
    }
}
