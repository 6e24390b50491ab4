//! The events of a module, each whole.
//!
//! What belongs to an event is found by following the pointers of its `trace_event_call`. Each leads
//! to a thing that the macros have named (include/trace/trace_events.h and trace_custom_events.h,
//! include/linux/tracepoint.h, Linux 7.2); the name's beginning says what it is. Where in a structure
//! a pointer is does not matter, but for the two functions of a `tracepoint_ext`.

use std::collections::BTreeSet;

use super::error::ModuleError;
use super::fields;
use super::model::Event;
use super::object::{Object, Pointee, SectionOffset, Symbol};

/// How things of one kind are called: by `TRACE_EVENT`, and by `TRACE_CUSTOM_EVENT`.
type Kind = [&'static str; 2];

const CLASS: Kind = ["event_class_", "custom_event_class_"];
const FUNCTIONS: Kind = ["trace_event_type_funcs_", "trace_custom_event_type_funcs_"];
const PRINT: Kind = ["trace_raw_output_", "trace_custom_raw_output_"];
const PROBE: Kind = ["trace_event_raw_event_", "trace_custom_event_raw_event_"];
const PRINT_FORMAT: Kind = ["print_fmt_", "custom_print_fmt_"];
const FIELDS: Kind = ["trace_event_fields_", "trace_custom_event_fields_"];

/// The section in which all tracepoints are, and that of their names.
const TRACEPOINTS: &str = "__tracepoints";
const TRACEPOINT_NAMES: &str = "__tracepoints_strings";

fn is(kind: Kind, name: &str) -> bool {
    kind.iter().any(|prefix| name.starts_with(prefix))
}

/// The name in the source: compilers put suffixes after a dot.
fn in_source(name: &str) -> String {
    name.split('.').next().unwrap_or(name).to_owned()
}

/// The events that the pointers of `_ftrace_events` lead to, by system, then name.
pub(super) fn read(object: &Object<'_>, pointers: &[&Pointee]) -> Result<Vec<Event>, ModuleError> {
    let mut events = Vec::with_capacity(pointers.len());
    let mut calls: BTreeSet<SectionOffset> = BTreeSet::new();
    for (at, target) in pointers.iter().enumerate() {
        let missing = || ModuleError::missing(&format!("pointer {at} of _ftrace_events"), "trace_event_call");
        let call = object.symbol(target).ok_or_else(missing)?;
        calls.insert(call.place);
        events.push(event(object, call)?);
    }
    if calls.len() != pointers.len() {
        let (section, pointers, found) = ("_ftrace_events", pointers.len(), calls.len());
        return Err(ModuleError::Count { section, pointers, found, what: "events" });
    }
    events.sort_by(|a, b| (&a.system, &a.name, &a.call).cmp(&(&b.system, &b.name, &b.call)));
    Ok(events)
}

/// A thing and what it points to.
struct Holder<'o, 'f> {
    object: &'o Object<'f>,
    symbol: &'o Symbol,
}

impl<'o, 'f> Holder<'o, 'f> {
    /// The first pointer to a thing of this kind.
    fn to(&self, kind: Kind) -> Option<&'o Pointee> {
        let led = |target: &&Pointee| self.object.name(target).is_some_and(|name| is(kind, name));
        self.object.pointers(self.symbol).find(led)
    }

    fn holder(&self, kind: Kind) -> Option<Holder<'o, 'f>> {
        let symbol = self.object.symbol(self.to(kind)?)?;
        Some(Holder { object: self.object, symbol })
    }

    fn name(&self, kind: Kind) -> Option<String> {
        self.to(kind).and_then(|target| self.object.name(target)).map(in_source)
    }

    /// The thing in a section that is pointed to.
    fn in_section(&self, section: &str) -> Option<&'o Pointee> {
        self.object.pointers(self.symbol).find(
            |target| matches!(target, Pointee::Here(place, _) if self.object.section_of(*place) == section),
        )
    }
}

fn event(object: &Object<'_>, symbol: &Symbol) -> Result<Event, ModuleError> {
    let missing = |part: &str| ModuleError::missing(&symbol.name, part);
    let call = Holder { object, symbol };
    let class = call.holder(CLASS).ok_or_else(|| missing("class"))?;
    let functions = call.holder(FUNCTIONS).ok_or_else(|| missing("event functions"))?;
    let format = call.to(PRINT_FORMAT).and_then(|target| object.string(target));
    let tracepoint = call
        .in_section(TRACEPOINTS)
        .and_then(|target| object.symbol(target))
        .map(|symbol| Holder { object, symbol });
    let name = match &tracepoint {
        Some(tracepoint) => {
            let name = tracepoint.in_section(TRACEPOINT_NAMES).and_then(|name| object.string(name));
            name.ok_or_else(|| missing("tracepoint with a name"))?
        }
        None => own_name(&call).ok_or_else(|| missing("tracepoint in this module or a name"))?,
    };
    let (system, system_at) = system(&class).ok_or_else(|| missing("class with a system"))?;
    let fields = class.holder(FIELDS).ok_or_else(|| missing("class with fields"))?;
    let functions_of = |offset| tracepoint.as_ref().and_then(|tracepoint| function(tracepoint, offset));
    Ok(Event {
        system,
        name,
        call: in_source(&symbol.name),
        tracepoint: tracepoint.as_ref().map(|tracepoint| in_source(&tracepoint.symbol.name)),
        class: in_source(&class.symbol.name),
        probe: class.name(PROBE).ok_or_else(|| missing("class with a raw event"))?,
        print: functions.name(PRINT).ok_or_else(|| missing("event functions with a print function"))?,
        print_format: format.ok_or_else(|| missing("print format"))?,
        register: functions_of(0),
        unregister: functions_of(8),
        fields: fields::read(object, &symbol.name, fields.symbol)?,
        system_at,
    })
}

/// The name that a call without a tracepoint points to: the one pointer that leads to nothing else.
fn own_name(call: &Holder<'_, '_>) -> Option<String> {
    let known = |target: &&Pointee| {
        let name = call.object.name(target).unwrap_or_default();
        [CLASS, FUNCTIONS, PRINT_FORMAT].into_iter().any(|kind| is(kind, name))
    };
    let name = call.object.pointers(call.symbol).find(|target| !known(target))?;
    call.object.string(name).filter(|name| !name.is_empty() && name.bytes().all(is_word))
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The system of a class and where it is. Its string is the only thing in a class that the macros
/// call `str__VAR__trace_system_name` (include/trace/stages/init.h, Linux 7.2).
fn system(class: &Holder<'_, '_>) -> Option<(String, SectionOffset)> {
    let named = |name: &str| name.starts_with("str__") && in_source(name).ends_with("__trace_system_name");
    let mut pointers = class.object.pointers(class.symbol);
    let target = pointers.find(|target| class.object.name(target).is_some_and(named))?;
    let Pointee::Here(place, _) = target else { return None };
    Some((class.object.string(target)?, *place))
}

/// A function of a tracepoint's `struct tracepoint_ext`, which is there when it has one of the two:
/// `regfunc` is at byte 0, `unregfunc` at byte 8 (include/linux/tracepoint-defs.h, Linux 7.2).
fn function(tracepoint: &Holder<'_, '_>, offset: u64) -> Option<String> {
    let ext = tracepoint.holder(["__tracepoint_ext_"; 2])?;
    let target = ext.object.pointer(ext.symbol.place.plus(offset))?;
    ext.object.name(target).map(in_source)
}

#[cfg(test)]
mod tests {
    use super::super::Module;
    use super::super::model::Field;
    use super::super::testing::{Elf, FORMAT, MODINFO, PPC, STYLES, X86, sample};

    #[test]
    fn event_has_all_its_parts() {
        for style in STYLES {
            let module = Module::parse(&sample(Elf::new(style))).expect("a module");
            let names: Vec<_> =
                module.events().iter().map(|e| (e.system.as_str(), e.name.as_str())).collect();
            let expected =
                [("custom", "sched_switch"), ("sample-trace", "foo_bar"), ("sample-trace", "foo_late")];
            assert_eq!(names, expected, "{style:?}");
            let event = &module.events()[1];
            assert_eq!(event.call, "event_foo_bar");
            assert_eq!(event.tracepoint.as_deref(), Some("__tracepoint_foo_bar"));
            assert_eq!(event.class, "event_class_foo_bar");
            assert_eq!(event.probe, "trace_event_raw_event_foo_bar");
            assert_eq!(event.print, "trace_raw_output_foo_bar");
            assert_eq!(event.print_format, FORMAT);
            assert_eq!(event.register.as_deref(), Some("start"));
            assert_eq!(event.unregister.as_deref(), Some("stop"));
            let field = |type_name: &str, name: &str, size, align, signed, length| {
                let (type_name, name) = (type_name.to_owned(), name.to_owned());
                Field { type_name, name, size, align, signed, length }
            };
            let fields = [field("char[10]", "foo", 10, 1, false, 10), field("int", "bar", 4, 4, true, 0)];
            assert_eq!(event.fields, fields);
        }
    }

    #[test]
    fn custom_event_has_a_name_and_no_tracepoint() {
        for style in STYLES {
            let module = Module::parse(&sample(Elf::new(style))).expect("a module");
            let event = &module.events()[0];
            assert_eq!((event.tracepoint.as_ref(), event.register.as_ref()), (None, None));
            assert_eq!(event.call, "custom_event_sched_switch");
            assert_eq!(event.class, "custom_event_class_sched_switch");
            assert_eq!(event.probe, "trace_custom_event_raw_event_sched_switch");
            assert_eq!(event.print, "trace_custom_raw_output_sched_switch");
            assert_eq!(event.fields.len(), 2);
        }
    }

    #[test]
    fn tracepoint_may_have_no_functions() {
        let module = Module::parse(&sample(Elf::broken(PPC, "tracepoint.ext"))).expect("a module");
        assert_eq!(
            (module.events()[1].register.as_ref(), module.events()[1].unregister.as_ref()),
            (None, None)
        );
    }

    #[test]
    fn missing_part_is_an_error_of_the_call() {
        for style in STYLES {
            let without = |pointer: &'static str| {
                let mut elf = Elf::broken(style, pointer);
                elf.event("foo_bar");
                Module::parse(&elf.with_modinfo(MODINFO)).expect_err(pointer).to_string()
            };
            let parts = [
                ("call.class", "class"),
                ("call.tp", "tracepoint in this module or a name"),
                ("call.funcs", "event functions"),
                ("call.print_fmt", "print format"),
                ("class.system", "class with a system"),
                ("class.probe", "class with a raw event"),
                ("class.fields", "class with fields"),
                ("funcs.trace", "event functions with a print function"),
                ("tracepoint.name", "tracepoint with a name"),
                ("field.name", "class whose field 0 has a name"),
                ("field.end", "class whose field 3 has a place in the array, which has no end"),
            ];
            for (pointer, part) in parts {
                assert_eq!(
                    without(pointer),
                    format!("missing pointer from event_foo_bar to {part}"),
                    "{style:?}"
                );
            }
        }
    }

    #[test]
    fn event_that_is_listed_twice_is_an_error() {
        let mut elf = Elf::new(X86);
        let call = elf.event("foo_bar");
        let pointer = elf.thing("_ftrace_events", "__event_again", &[0; 8]);
        elf.point("again", pointer, 0, call);
        let error = Module::parse(&elf.with_modinfo(MODINFO)).expect_err("one event").to_string();
        assert_eq!(error, "_ftrace_events holds 2 pointers, but there are 1 events");
    }

    #[test]
    fn pointer_to_another_thing_is_an_error() {
        let mut elf = Elf::new(X86);
        let other = elf.thing(".data", "other", &[0; 120]);
        let pointer = elf.thing("_ftrace_events", "__event_other", &[0; 8]);
        elf.point("other", pointer, 0, other);
        let error = Module::parse(&elf.with_modinfo(MODINFO)).expect_err("no call").to_string();
        assert_eq!(error, "missing pointer from other to class");

        let mut elf = Elf::new(X86);
        let nameless = elf.thing(".data", "", &[0; 120]);
        let pointer = elf.thing("_ftrace_events", "__event_other", &[0; 8]);
        elf.point("nameless", pointer, 0, nameless);
        let error = Module::parse(&elf.with_modinfo(MODINFO)).expect_err("no symbol").to_string();
        assert_eq!(error, "missing pointer from pointer 0 of _ftrace_events to trace_event_call");
    }
}
