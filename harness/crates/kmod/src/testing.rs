//! Small modules for tests, written as a linker writes them.

use std::collections::BTreeMap;

use object::write::{Object, Relocation, SectionId, Symbol, SymbolId, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, RelocationEncoding, RelocationFlags, RelocationKind, SectionKind,
    SymbolFlags, SymbolKind, SymbolScope,
};

/// A thing in a section that can be pointed to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Thing {
    section: SectionId,
    offset: u64,
    symbol: Option<SymbolId>,
}

/// A module that is being written.
pub(super) struct Elf {
    object: Object<'static>,
    /// Whether relocations name a section and an offset rather than a symbol.
    by_section: bool,
    x86: bool,
    /// The pointer that is left out.
    without: &'static str,
    system: Option<Thing>,
    sections: BTreeMap<String, SectionId>,
}

/// How a module is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModuleStyle {
    pub(super) x86: bool,
    pub(super) by_section: bool,
}

pub(super) const X86: ModuleStyle = ModuleStyle { x86: true, by_section: true };
#[cfg(test)]
pub(super) const PPC: ModuleStyle = ModuleStyle { x86: false, by_section: false };
#[cfg(test)]
pub(super) const STYLES: [ModuleStyle; 4] =
    [X86, PPC, ModuleStyle { by_section: false, ..X86 }, ModuleStyle { by_section: true, ..PPC }];

pub(super) const MODINFO: &[u8] =
    b"license=GPL\0depends=one,two\0name=some\0vermagic=7.2.0 SMP mod_unload \0";
pub(super) const FORMAT: &str = r#""foo %s %d", REC->foo, ZOO"#;

impl Elf {
    pub(super) fn new(style: ModuleStyle) -> Elf {
        Elf::broken(style, "none")
    }

    /// One in which a pointer is not there: `HOLDER.MEMBER`, each as in [`Elf::event`].
    pub(super) fn broken(style: ModuleStyle, without: &'static str) -> Elf {
        let machine = if style.x86 { Architecture::X86_64 } else { Architecture::PowerPc64 };
        let object = Object::new(BinaryFormat::Elf, machine, Endianness::Little);
        Elf {
            object,
            by_section: style.by_section,
            x86: style.x86,
            without,
            system: None,
            sections: BTreeMap::new(),
        }
    }

    fn section(&mut self, name: &str) -> SectionId {
        let kind = if name == ".text" { SectionKind::Text } else { SectionKind::Data };
        let add = || self.object.add_section(Vec::new(), name.into(), kind);
        *self.sections.entry(name.to_owned()).or_insert_with(add)
    }

    /// Bytes in a section, and a symbol for them unless the name is empty.
    pub(super) fn thing(&mut self, section: &str, name: &str, bytes: &[u8]) -> Thing {
        let section = self.section(section);
        let offset = self.object.append_section_data(section, bytes, 8);
        let symbol = (!name.is_empty()).then(|| {
            self.object.add_symbol(Symbol {
                name: name.into(),
                value: offset,
                size: bytes.len() as u64,
                kind: SymbolKind::Data,
                scope: SymbolScope::Compilation,
                weak: false,
                section: SymbolSection::Section(section),
                flags: SymbolFlags::None,
            })
        });
        Thing { section, offset, symbol }
    }

    pub(super) fn text(&mut self, section: &str, name: &str, text: &str) -> Thing {
        self.thing(section, name, format!("{text}\0").as_bytes())
    }

    /// A pointer at an offset of a thing, unless it is the one that is left out.
    pub(super) fn point(&mut self, label: &str, from: Thing, offset: u64, to: Thing) {
        self.relocate(label, from, offset, to, (RelocationKind::Absolute, 64));
    }

    fn relocate(&mut self, label: &str, from: Thing, offset: u64, to: Thing, how: (RelocationKind, u8)) {
        if label == self.without {
            return;
        }
        let (symbol, addend) = match to.symbol.filter(|_| !self.by_section) {
            Some(symbol) => (symbol, 0),
            None => (self.object.section_symbol(to.section), to.offset as i64),
        };
        let (kind, size) = how;
        let flags = RelocationFlags::Generic { kind, encoding: RelocationEncoding::Generic, size };
        let relocation = Relocation { offset: from.offset + offset, symbol, addend, flags };
        self.object.add_relocation(from.section, relocation).expect("a relocation");
    }

    fn system(&mut self, name: &str) -> Thing {
        let symbol = format!("str__{}__trace_system_name", name.replace('-', "_"));
        self.text(".rodata", &symbol, name)
    }

    /// The class `NAME` with two fields, and what prints its events.
    fn class(&mut self, custom: bool, name: &str, system: Thing) -> [Thing; 3] {
        let c = if custom { "custom_" } else { "" };
        let probe = self.thing(".text", &format!("trace_{c}event_raw_event_{name}.constprop.0"), &[0; 16]);
        let print = self.thing(".text", &format!("trace_{c}raw_output_{name}.isra.0"), &[0; 16]);
        let mut entries = [0_u8; 120];
        for (at, words) in [(16, [10_u32, 1, 2, 0, 10]), (56, [4, 4, 3, 0, 0])] {
            for (index, word) in words.into_iter().enumerate() {
                entries[at + 4 * index..][..4].copy_from_slice(&word.to_le_bytes());
            }
        }
        let fields = self.thing(".data", &format!("trace_{c}event_fields_{name}"), &entries);
        for (at, text) in [(0, "char[10]"), (8, "foo"), (40, "int"), (48, "bar")] {
            let text = self.text(".rodata", "", text);
            self.point(["field.type", "field.name"][at as usize % 40 / 8], fields, at, text);
        }
        if self.without == "field.end" {
            let text = self.text(".rodata", "", "int");
            [80, 88].into_iter().for_each(|at| self.point("field", fields, at, text));
        }
        let class = self.thing(".ref.data", &format!("{c}event_class_{name}"), &[0; 72]);
        self.point("class.system", class, 0, system);
        self.point("class.probe", class, 8, probe);
        self.point("class.fields", class, 32, fields);
        let funcs = self.thing(".data", &format!("trace_{c}event_type_funcs_{name}"), &[0; 32]);
        self.point("funcs.trace", funcs, 0, print);
        let format = self.text(".data", &format!("{c}print_fmt_{name}"), FORMAT);
        [class, funcs, format]
    }

    fn call(&mut self, custom: bool, name: &str, [class, funcs, format]: [Thing; 3], named: Thing) -> Thing {
        let c = if custom { "custom_" } else { "" };
        let call = self.thing(".data", &format!("{c}event_{name}"), &[0; 120]);
        self.point("call.class", call, 16, class);
        self.point("call.tp", call, 24, named);
        self.point("call.funcs", call, 56, funcs);
        self.point("call.print_fmt", call, 64, format);
        let pointer = self.thing("_ftrace_events", &format!("__{c}event_{name}"), &[0; 8]);
        self.point("_ftrace_events", pointer, 0, call);
        call
    }

    /// An event with its tracepoint, as its call.
    pub(super) fn event(&mut self, name: &str) -> Thing {
        let system = self.sample_system();
        let class = self.class(false, name, system);
        let named = self.text("__tracepoints_strings", &format!("__tpstrtab_{name}"), name);
        let ext = self.thing(".data", &format!("__tracepoint_ext_{name}"), &[0; 24]);
        for (at, function) in [(0, "start"), (8, "stop")] {
            let function = self.thing(".text", function, &[0; 8]);
            self.point("ext", ext, at, function);
        }
        // As on x86-64, where alignment leaves room between two.
        let tracepoint = self.thing("__tracepoints", &format!("__tracepoint_{name}"), &[0; 72]);
        let space = self.section("__tracepoints");
        self.object.append_section_data(space, &[0; 24], 1);
        self.point("tracepoint.name", tracepoint, 0, named);
        self.point("tracepoint.ext", tracepoint, 64, ext);
        let size = if self.x86 { 4 } else { 8 };
        let pointer = self.thing("__tracepoints_ptrs", "", &vec![0; size]);
        let how = if self.x86 { (RelocationKind::Relative, 32) } else { (RelocationKind::Absolute, 64) };
        self.relocate("__tracepoints_ptrs", pointer, 0, tracepoint, how);
        self.call(false, name, class, tracepoint)
    }

    /// An event of `TRACE_CUSTOM_EVENT`.
    pub(super) fn custom(&mut self, name: &str) {
        let system = self.system("custom");
        let class = self.class(true, name, system);
        let named = self.text(".rodata", "", name);
        self.call(true, name, class, named);
    }

    /// A name that is replaced in the events of [`Elf::event`].
    pub(super) fn eval(&mut self, string: &str, value: i64) {
        let system = self.sample_system();
        let mut bytes = [0; 24];
        bytes[16..].copy_from_slice(&value.to_le_bytes());
        let map = self.thing(".init.data", &format!("__TRACE_SYSTEM_{string}"), &bytes);
        let text = self.text(".rodata", "", string);
        self.point("eval.system", map, 0, system);
        self.point("eval.string", map, 8, text);
        let pointer = self.thing("_ftrace_eval_map", &format!("TRACE_SYSTEM_{string}"), &[0; 8]);
        self.point("_ftrace_eval_map", pointer, 0, map);
    }

    fn sample_system(&mut self) -> Thing {
        let system = self.system.unwrap_or_else(|| self.system("sample-trace"));
        self.system = Some(system);
        system
    }

    /// The whole file.
    pub(super) fn bytes(self) -> Vec<u8> {
        self.object.write().expect("an ELF file")
    }

    /// The file with this for `.modinfo`.
    pub(super) fn with_modinfo(mut self, modinfo: &[u8]) -> Vec<u8> {
        self.thing(".modinfo", "", modinfo);
        self.bytes()
    }
}

/// A module with two events, a custom one and two names.
pub(super) fn sample(elf: Elf) -> Vec<u8> {
    let mut elf = elf;
    elf.event("foo_late");
    elf.custom("sched_switch");
    elf.event("foo_bar");
    elf.eval("ZOO", 8);
    elf.eval("sizeof(int)", 4);
    elf.with_modinfo(MODINFO)
}
