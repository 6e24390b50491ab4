//! What is known of a kernel module. How it is read and compared is not known here.

use super::identity::Identity;
use super::object::SectionOffset;

/// What a module's file says. It is read whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    pub(super) identity: Identity,
    pub(super) events: Vec<Event>,
    pub(super) counts: ModuleCounts,
    pub(super) evals: Vec<Eval>,
}

/// An event that `TRACE_EVENT`, one of its kin or `TRACE_CUSTOM_EVENT` has defined.
///
/// Functions and variables go by their names in the source: suffixes that a compiler adds
/// (`.constprop.0`) are cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The system under which it is in `events/`.
    pub system: String,
    /// Its name there: that of its tracepoint, or its own when it has none in the file
    /// (`trace_event_name`, include/linux/trace_events.h, Linux 7.2).
    pub name: String,
    /// The `struct trace_event_call`.
    pub call: String,
    /// The `struct tracepoint`. A custom event has none: it gets a tracepoint of the kernel when the
    /// module is loaded.
    pub tracepoint: Option<String>,
    /// The `struct trace_event_class`.
    pub class: String,
    /// The function that records the event, the class's `probe`.
    pub probe: String,
    /// The function that prints a recorded event.
    pub print: String,
    /// The print format as it is in the file, before the kernel puts values in the place of names
    /// ([`Module::shown_print_format`]).
    pub print_format: String,
    /// The function that is called before the first user of the tracepoint comes.
    pub register: Option<String>,
    /// The function that is called after the last user has gone.
    pub unregister: Option<String>,
    /// The fields of a recorded event in order, without those that all events have.
    pub fields: Vec<Field>,
    /// Where the system's string is. The kernel compares addresses here, not letters.
    pub(super) system_at: SectionOffset,
}

/// A field of an event (`struct trace_event_fields`, include/linux/trace_events.h, Linux 7.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The type as in the source, an array with its length as it is written there.
    pub type_name: String,
    /// The name.
    pub name: String,
    /// Bytes in the record; 4 for what the record only points to.
    pub size: u32,
    /// Alignment in the record, in bytes.
    pub align: u32,
    /// Whether the type, or that of an array's elements, is signed.
    pub signed: bool,
    /// Elements of an array; 0 for a field that is not an array or has its length in the record.
    pub length: u32,
}

/// How many things the module's sections hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModuleCounts {
    /// Pointers in `_ftrace_events`.
    pub events: usize,
    /// Pointers in `__tracepoints_ptrs`.
    pub tracepoints: usize,
    /// Pointers in `_ftrace_eval_map`.
    pub evals: usize,
}

/// A name that the kernel replaces by its value in print formats: `TRACE_DEFINE_ENUM`,
/// `TRACE_DEFINE_SIZEOF` (`struct trace_eval_map`, include/linux/tracepoint.h, Linux 7.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Eval {
    /// The system in whose events it is replaced.
    pub system: String,
    /// What is replaced: an enum's name or `sizeof(TYPE)`.
    pub string: String,
    /// The value. The kernel prints this `unsigned long` as a signed one.
    pub value: i64,
    /// Where the system's string is.
    pub(super) system_at: SectionOffset,
}

impl Module {
    /// Its name, machine and kernel.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Its events by system, then by name: an order that all architectures have.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// How many of each thing its sections hold.
    pub fn counts(&self) -> ModuleCounts {
        self.counts
    }

    /// The names that are replaced, in the order of the file, in which the kernel replaces them.
    /// Compilers differ in it.
    pub fn evals(&self) -> &[Eval] {
        &self.evals
    }
}
