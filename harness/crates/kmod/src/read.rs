//! Reading a module's file: what its sections of pointers lead to.
//!
//! The kernel finds events, tracepoints and replaced names through the sections `_ftrace_events`,
//! `__tracepoints_ptrs` and `_ftrace_eval_map` (`find_module_sections`, kernel/module/main.c, Linux
//! 7.2). Each pointer in them leads to one thing here, or the module is not read.

use std::collections::BTreeSet;

use super::error::ModuleError;
use super::events;
use super::identity::Identity;
use super::model::{Eval, Module, ModuleCounts};
use super::object::{Object, Pointee};

/// Bytes of a pointer.
const POINTER: usize = 8;

impl Module {
    /// Read a module's file: a relocatable ELF file of 64 bits and little-endian, for one of the known
    /// [architectures](arch::ALL).
    ///
    /// # Errors
    /// Those of [`Identity::parse`], and when an event, a tracepoint or a replaced name in it cannot
    /// be read whole.
    pub fn parse(bytes: &[u8]) -> Result<Module, ModuleError> {
        let identity = Identity::parse(bytes)?;
        let object = Object::parse(identity.machine, bytes)?;
        let evals = evals(&object)?;
        let events = events::read(&object, &pointers(&object, "_ftrace_events", "with an address")?)?;
        let counts =
            ModuleCounts { events: events.len(), tracepoints: tracepoints(&object)?, evals: evals.len() };
        Ok(Module { identity, events, counts, evals })
    }
}

/// All pointers of a section that holds nothing else, in order. None of them may be empty.
fn pointers<'o>(
    object: &'o Object<'_>,
    section: &'static str,
    what: &'static str,
) -> Result<Vec<&'o Pointee>, ModuleError> {
    let (size, places) = object.section(section);
    let room = usize::try_from(size).unwrap_or(usize::MAX);
    if room % POINTER != 0 || room / POINTER != places.len() {
        let pointers = room.div_ceil(POINTER);
        return Err(ModuleError::Count { section, pointers, found: places.len(), what });
    }
    Ok(places.into_iter().map(|(_, target)| target).collect())
}

/// How many tracepoints there are. On x86-64 a pointer to one is a distance of 32 bits
/// (`__TRACEPOINT_ENTRY`, include/linux/tracepoint.h, Linux 7.2), and alignment leaves room between
/// tracepoints: neither section's size says a number.
fn tracepoints(object: &Object<'_>) -> Result<usize, ModuleError> {
    let (_, pointers) = object.section("__tracepoints_ptrs");
    let led_to = |(_, target): &(_, &Pointee)| {
        object.symbol(target).filter(|symbol| object.section_of(symbol.place) == "__tracepoints")
    };
    let names: BTreeSet<&str> =
        pointers.iter().filter_map(led_to).map(|symbol| symbol.name.as_str()).collect();
    let defined = object.symbols_in("__tracepoints").count();
    let (count, section) = (pointers.len(), "__tracepoints_ptrs");
    if names.len() != count || defined != count {
        let (found, what) = (defined, "tracepoints in __tracepoints");
        return Err(ModuleError::Count { section, pointers: count, found, what });
    }
    Ok(count)
}

/// The names that the kernel replaces. `struct trace_eval_map` is two pointers and a number
/// (include/linux/tracepoint.h, Linux 7.2).
fn evals(object: &Object<'_>) -> Result<Vec<Eval>, ModuleError> {
    let mut found = Vec::new();
    for (at, target) in pointers(object, "_ftrace_eval_map", "with an address")?.into_iter().enumerate() {
        let holder = format!("pointer {at} of _ftrace_eval_map");
        let missing = |part: &str| ModuleError::missing(&holder, part);
        let Pointee::Here(place, _) = target else { return Err(missing("trace_eval_map in this module")) };
        let pointer = |offset: u64| object.pointer(place.plus(offset));
        let string = |offset: u64| pointer(offset).and_then(|target| object.string(target));
        let Some(Pointee::Here(system_at, _)) = pointer(0) else { return Err(missing("system")) };
        found.push(Eval {
            system: string(0).ok_or_else(|| missing("system"))?,
            string: string(8).ok_or_else(|| missing("string"))?,
            value: object.u64(place.plus(16)).ok_or_else(|| missing("value"))? as i64,
            system_at: *system_at,
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::describe;
    use super::super::testing::{Elf, MODINFO, PPC, STYLES, X86, sample};
    use super::*;

    fn error(bytes: &[u8]) -> String {
        Module::parse(bytes).expect_err("not a module").to_string()
    }

    #[test]
    fn module_has_its_identity_counts_and_evals() {
        let module = Module::parse(&sample(Elf::new(X86))).expect("a module");
        assert_eq!(module.identity().name, "some");
        assert_eq!(module.counts(), ModuleCounts { events: 3, tracepoints: 2, evals: 2 });
        let evals: Vec<_> =
            module.evals().iter().map(|e| (e.system.as_str(), e.string.as_str(), e.value)).collect();
        assert_eq!(evals, [("sample-trace", "ZOO", 8), ("sample-trace", "sizeof(int)", 4)]);
    }

    #[test]
    fn module_without_events_is_read() {
        let module = Module::parse(&Elf::new(PPC).with_modinfo(b"name=a\0vermagic=b\0")).expect("a module");
        assert_eq!(module.counts(), ModuleCounts { events: 0, tracepoints: 0, evals: 0 });
        assert_eq!(module.events().len(), 0);
    }

    #[test]
    fn description_is_the_same_on_all_architectures() {
        let texts = STYLES.map(|style| describe(&Module::parse(&sample(Elf::new(style))).expect("a module")));
        assert_eq!(texts[0].matches("\nevent ").count(), 3);
        for text in &texts {
            assert_eq!(text, &texts[0]);
        }
    }

    #[test]
    fn unknown_machine_is_an_error() {
        let mut elf = sample(Elf::new(X86));
        elf[18] = 183;
        assert_eq!(error(&elf), "built for the unknown ELF machine 183 (known: 21 ppc64le, 62 x86_64)");
    }

    #[test]
    fn pointer_that_leads_nowhere_is_an_error() {
        let without = |pointer: &'static str| error(&sample(Elf::broken(X86, pointer)));
        assert_eq!(
            without("_ftrace_events"),
            "_ftrace_events holds 3 pointers, but there are 0 with an address"
        );
        assert_eq!(
            without("_ftrace_eval_map"),
            "_ftrace_eval_map holds 2 pointers, but there are 0 with an address"
        );
        assert_eq!(
            without("__tracepoints_ptrs"),
            "__tracepoints_ptrs holds 0 pointers, but there are 2 tracepoints in __tracepoints"
        );
        assert_eq!(without("eval.system"), "missing pointer from pointer 0 of _ftrace_eval_map to system");
        assert_eq!(without("eval.string"), "missing pointer from pointer 0 of _ftrace_eval_map to string");
    }

    proptest! {
        #[test]
        fn bytes_that_are_not_a_module_are_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assume!(!bytes.starts_with(b"\x7fELF"));
            prop_assert_eq!(Module::parse(&bytes), Err(ModuleError::NotElf));
            // The header says where sections are, and none of them is in so short a file.
            let headed = [b"\x7fELF\x02\x01", &bytes[..]].concat();
            prop_assert!(Module::parse(&headed).is_err());
        }

        #[test]
        fn damaged_module_is_an_error_or_whole(
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
            length in any::<prop::sample::Index>(),
            cut in any::<bool>(),
            style in 0..STYLES.len(),
        ) {
            let mut bytes = sample(Elf::new(STYLES[style]));
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if cut {
                bytes.truncate(length.index(bytes.len()));
            }
            if let Ok(module) = Module::parse(&bytes) {
                let text = describe(&module);
                let first = format!("module {}", module.identity().name);
                prop_assert_eq!(text.lines().next(), first.lines().next());
                prop_assert_eq!(module.counts().events, module.events().len());
                prop_assert!(text.matches("\nevent ").count() >= module.events().len());
            }
        }

        #[test]
        fn modinfo_is_read_or_missing(info in proptest::collection::vec(any::<u8>(), 1..80)) {
            let bytes = Elf::new(X86).with_modinfo(&[MODINFO, &info].concat());
            let module = Module::parse(&bytes).expect("a module");
            prop_assert_eq!(&module.identity().name, "some");
            let (name, vermagic) = (b"name=".as_slice(), b"vermagic=".as_slice());
            let entries = || info.split(|byte| *byte == 0);
            let is_whole = [name, vermagic].iter().all(|key| entries().any(|entry| entry.starts_with(key)));
            prop_assert_eq!(Module::parse(&Elf::new(X86).with_modinfo(&info)).is_ok(), is_whole);
        }
    }
}
