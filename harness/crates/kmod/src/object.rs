//! A relocatable ELF file as a graph: things that have a place, and pointers from one to another.
//!
//! In such a file a pointer is a relocation. It names either a symbol or, for what is local to its
//! source file, often only a section and an offset in it; both become a [`SectionOffset`] here, and a place
//! is in the symbol that covers it. This module knows ELF and nothing of tracing.

use std::collections::BTreeMap;
use std::ops::Range;

use arch::{ArchRow, ByteOrder};
use object::endian::LittleEndian;
use object::read::elf::ElfFile64;
use object::{
    Object as _, ObjectSection as _, ObjectSymbol as _, RelocationKind, RelocationTarget, SymbolKind,
};

use super::error::ModuleError;

/// A place in a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SectionOffset {
    section: usize,
    /// Bytes from the section's start.
    offset: u64,
}

impl SectionOffset {
    /// This many bytes further on.
    pub(super) fn plus(self, bytes: u64) -> SectionOffset {
        SectionOffset { offset: self.offset.wrapping_add(bytes), ..self }
    }
}

/// What a pointer leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pointee {
    /// Something in this file; with the name that the relocation itself has for it.
    Here(SectionOffset, Option<String>),
    /// A symbol that the kernel or another module defines.
    Elsewhere(String),
}

/// A named thing with a size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Symbol {
    pub(super) name: String,
    pub(super) place: SectionOffset,
    /// In bytes, at least 1.
    size: u64,
}

impl Symbol {
    /// Whether a place is in it.
    pub(super) fn covers(&self, place: SectionOffset) -> bool {
        let distance = place.offset.checked_sub(self.place.offset);
        place.section == self.place.section && distance.is_some_and(|bytes| bytes < self.size)
    }
}

#[derive(Debug)]
struct Section<'f> {
    name: String,
    size: u64,
    /// Empty for sections that are zeroes and not in the file.
    data: &'f [u8],
    pointers: BTreeMap<u64, Pointee>,
}

/// The file.
#[derive(Debug)]
pub(super) struct Object<'f> {
    sections: BTreeMap<usize, Section<'f>>,
    symbols: BTreeMap<SectionOffset, Vec<Symbol>>,
}

impl<'f> Object<'f> {
    /// Read a file that is known to be relocatable, of 64 bits and little-endian.
    pub(super) fn parse(machine: u16, bytes: &'f [u8]) -> Result<Object<'f>, ModuleError> {
        let arch = arch::Arch::of_elf_machine(machine).ok_or(ModuleError::Machine(machine))?;
        check_layout(&arch)?;
        Object::read(bytes).map_err(|error| ModuleError::Broken(error.to_string()))
    }

    fn read(bytes: &'f [u8]) -> object::Result<Object<'f>> {
        let file: ElfFile64<'_, LittleEndian> = ElfFile64::parse(bytes)?;
        let mut sections = BTreeMap::new();
        for section in file.sections() {
            let mut pointers = BTreeMap::new();
            for (offset, relocation) in section.relocations() {
                let whole = (relocation.kind(), relocation.size()) == (RelocationKind::Absolute, 64);
                let short = (relocation.kind(), relocation.size()) == (RelocationKind::Relative, 32);
                if let (true, RelocationTarget::Symbol(index)) = (whole || short, relocation.target()) {
                    let symbol = file.symbol_by_index(index)?;
                    if let Some(target) = target(&symbol, relocation.addend()) {
                        pointers.insert(offset, target);
                    }
                }
            }
            let name = String::from_utf8_lossy(section.name_bytes()?).into_owned();
            let section_data = section.data()?;
            let read = Section { name, size: section.size(), data: section_data, pointers };
            sections.insert(section.index().0, read);
        }
        let mut symbols: BTreeMap<SectionOffset, Vec<Symbol>> = BTreeMap::new();
        for symbol in file.symbols().filter(|symbol| symbol.size() > 0) {
            let named = !matches!(symbol.kind(), SymbolKind::Section | SymbolKind::File);
            let Some(section) = symbol.section_index().filter(|_| named) else { continue };
            let place = SectionOffset { section: section.0, offset: symbol.address() };
            let name = String::from_utf8_lossy(symbol.name_bytes()?).into_owned();
            symbols.entry(place).or_default().push(Symbol { name, place, size: symbol.size() });
        }
        symbols.values_mut().for_each(|aliases| aliases.sort_by(|a, b| a.name.cmp(&b.name)));
        Ok(Object { sections, symbols })
    }

    /// Bytes that all sections of this name have, and the places of all pointers in them.
    pub(super) fn section(&self, name: &str) -> (u64, Vec<(SectionOffset, &Pointee)>) {
        let named = || self.sections.iter().filter(|(_, section)| section.name == name);
        let places = named().flat_map(|(index, section)| {
            let place = |offset: &u64| SectionOffset { section: *index, offset: *offset };
            section.pointers.iter().map(move |(offset, target)| (place(offset), target))
        });
        (named().map(|(_, section)| section.size).fold(0, u64::saturating_add), places.collect())
    }

    /// The name of the section in which a place is.
    pub(super) fn section_of(&self, place: SectionOffset) -> &str {
        self.sections.get(&place.section).map_or("", |section| &section.name)
    }

    /// All symbols of a section.
    pub(super) fn symbols_in<'o>(&'o self, section: &str) -> impl Iterator<Item = &'o Symbol> {
        self.symbols.values().flatten().filter(move |symbol| self.section_of(symbol.place) == section)
    }

    /// The pointers in a symbol, in order.
    pub(super) fn pointers(&self, symbol: &Symbol) -> impl Iterator<Item = &Pointee> {
        let Range { start, end } = symbol.place.offset..symbol.place.offset.saturating_add(symbol.size);
        let section = self.sections.get(&symbol.place.section);
        section.into_iter().flat_map(move |section| section.pointers.range(start..end)).map(|(_, to)| to)
    }

    /// The pointer at a place.
    pub(super) fn pointer(&self, place: SectionOffset) -> Option<&Pointee> {
        self.sections.get(&place.section)?.pointers.get(&place.offset)
    }

    /// The symbol that a pointer leads into, if it is of this file. Of several with one place it is
    /// the one that the pointer names, or the first by name.
    pub(super) fn symbol(&self, target: &Pointee) -> Option<&Symbol> {
        let Pointee::Here(place, name) = target else { return None };
        let (_, aliases) = self.symbols.range(..=place).next_back()?;
        let covers = |symbol: &&Symbol| symbol.covers(*place);
        let named = |symbol: &&Symbol| Some(&symbol.name) == name.as_ref();
        aliases.iter().find(|symbol| covers(symbol) && named(symbol)).or_else(|| aliases.iter().find(covers))
    }

    /// The name of what a pointer leads into, in this file or elsewhere.
    pub(super) fn name<'o>(&'o self, target: &'o Pointee) -> Option<&'o str> {
        match target {
            Pointee::Elsewhere(name) => Some(name),
            Pointee::Here(..) => self.symbol(target).map(|symbol| symbol.name.as_str()),
        }
    }

    /// The text that a pointer leads to, up to a zero byte. It is in UTF-8.
    pub(super) fn string(&self, target: &Pointee) -> Option<String> {
        let Pointee::Here(place, _) = target else { return None };
        let start = usize::try_from(place.offset).ok()?;
        let data = self.sections.get(&place.section)?.data.get(start..)?;
        let end = memchr::memchr(0, data)?;
        String::from_utf8(data[..end].to_vec()).ok()
    }

    /// Little-endian bytes at a place, which may be in a section that holds only zeroes.
    fn read_bytes<const N: usize>(&self, place: SectionOffset) -> Option<[u8; N]> {
        let section = self.sections.get(&place.section)?;
        let end = place.offset.checked_add(N as u64).filter(|end| *end <= section.size)?;
        if section.data.is_empty() {
            return Some([0; N]);
        }
        let range = usize::try_from(place.offset).ok()?..usize::try_from(end).ok()?;
        section.data.get(range)?.try_into().ok()
    }

    /// A number of 32 bits.
    pub(super) fn u32(&self, place: SectionOffset) -> Option<u32> {
        self.read_bytes(place).map(u32::from_le_bytes)
    }

    /// A number of 64 bits.
    pub(super) fn u64(&self, place: SectionOffset) -> Option<u64> {
        self.read_bytes(place).map(u64::from_le_bytes)
    }
}

/// The structures of the kernel are read as 64-bit little-endian ones, so an architecture of another layout
/// is an error before any of it is read wrongly.
fn check_layout(row: &ArchRow) -> Result<(), ModuleError> {
    if (row.byte_order, row.word_bits) == (ByteOrder::Little, 64) {
        return Ok(());
    }
    Err(ModuleError::Layout { arch: row.name, bits: row.word_bits })
}

/// Where a relocation against a symbol leads. `None` for an absolute value.
fn target<'f>(symbol: &impl object::ObjectSymbol<'f>, addend: i64) -> Option<Pointee> {
    let name = symbol.name_bytes().ok().filter(|name| !name.is_empty());
    let name = name.map(|name| String::from_utf8_lossy(name).into_owned());
    if symbol.is_undefined() {
        return name.map(Pointee::Elsewhere);
    }
    let offset = symbol.address().wrapping_add_signed(addend);
    let name = name.filter(|_| addend == 0 && symbol.kind() != SymbolKind::Section);
    symbol.section_index().map(|section| Pointee::Here(SectionOffset { section: section.0, offset }, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_other_than_64_bit_little_endian_is_an_error() {
        let check = |row: ArchRow| check_layout(&row).map_err(|error| error.to_string());
        for row in &arch::ALL {
            assert_eq!(check(row.clone()), Ok(()));
        }
        let big = ArchRow { name: "s390x", byte_order: ByteOrder::Big, ..arch::ALL[0].clone() };
        let cause = "structures of s390x are not 64-bit little-endian (its words have 64 bits)";
        assert_eq!(check(big), Err(format!("{cause}: they cannot be read")));
        let short = ArchRow { name: "arm", word_bits: 32, ..arch::ALL[0].clone() };
        assert!(check(short).expect_err("32 bits").contains("its words have 32 bits"));
    }
}
