//! The processor architectures that goldtrace knows.
//!
//! This is the one list of them: guest files, the conditions of goldens, the reader of kernel modules and the
//! choice of the accelerator all look here. A new architecture is a new row of [`ALL`]; everything else that a guest
//! needs is data in its own file.
//!
//! This crate knows no guest and no QEMU.

use std::fmt;

/// An architecture: a row of [`ALL`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchRow {
    /// The name that guest files and goldens use, such as `ppc64le`.
    pub name: &'static str,
    /// `e_machine` in the ELF header of its kernels, modules and programs (elf.h).
    pub elf_machine: u16,
    /// The order of a word's bytes in memory.
    pub byte_order: ByteOrder,
    /// Bits of a kernel pointer and of `long`.
    pub word_bits: u32,
    /// Whether the host that runs goldtrace is one.
    pub is_host: bool,
}

/// The order of a word's bytes in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// The lowest byte comes first.
    Little,
    /// The highest byte comes first.
    Big,
}

/// All architectures, in the order of their names.
pub static ALL: [ArchRow; 2] = [
    ArchRow {
        name: "ppc64le",
        elf_machine: 21, // EM_PPC64
        byte_order: ByteOrder::Little,
        word_bits: 64,
        is_host: cfg!(all(target_arch = "powerpc64", target_endian = "little")),
    },
    ArchRow {
        name: "x86_64",
        elf_machine: 62, // EM_X86_64
        byte_order: ByteOrder::Little,
        word_bits: 64,
        is_host: cfg!(target_arch = "x86_64"),
    },
];

/// An architecture that goldtrace knows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Arch(&'static ArchRow);

impl Arch {
    /// The architecture of this name; `None` for one that is not in the list.
    pub fn named(name: &str) -> Option<Arch> {
        ALL.iter().find(|row| row.name == name).map(Arch)
    }

    /// The architecture with this `e_machine`; `None` for one that is not in the list.
    pub fn of_elf_machine(machine: u16) -> Option<Arch> {
        ALL.iter().find(|row| row.elf_machine == machine).map(Arch)
    }

    /// The architecture of the host; `None` where goldtrace has no guest like it.
    pub fn host() -> Option<Arch> {
        ALL.iter().find(|row| row.is_host).map(Arch)
    }

    /// The names of all, in order.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        ALL.iter().map(|row| row.name)
    }
}

impl std::ops::Deref for Arch {
    type Target = ArchRow;

    fn deref(&self) -> &ArchRow {
        self.0
    }
}

impl fmt::Debug for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_name_and_by_elf_machine() {
        for row in &ALL {
            assert_eq!(Arch::named(row.name).expect("listed").elf_machine, row.elf_machine);
            assert_eq!(Arch::of_elf_machine(row.elf_machine).expect("listed").name, row.name);
        }
        assert_eq!(Arch::named("arm64"), None);
        assert_eq!(Arch::of_elf_machine(0), None);
        assert!(ALL.is_sorted_by_key(|row| row.name));
    }
}
