//! Why a file cannot be read as a kernel module.

/// What is wrong with a module's file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModuleError {
    /// The file does not begin as ELF files do. Compressed modules do not, either.
    #[error("not an ELF file")]
    NotElf,
    /// It is for machines of another word size or byte order.
    #[error(
        "not a 64-bit little-endian ELF file: modules of other word sizes and byte orders cannot be read"
    )]
    NotLittle64,
    /// It is a program, a library or a core dump.
    #[error("not a relocatable file: its ELF type is {0}, and that of a module is 1 (ET_REL)")]
    NotRelocatable(u16),
    /// No known architecture has this ELF machine.
    #[error(
        "built for the unknown ELF machine {0} (known: {known})", known = known_machines()
    )]
    Machine(u16),
    /// Its architecture has words of another size or byte order than the structures that are read here.
    #[error(
        "structures of {arch} are not 64-bit little-endian (its words have {bits} bits): they cannot be read"
    )]
    Layout {
        /// The architecture's name.
        arch: &'static str,
        /// Bits of its words.
        bits: u32,
    },
    /// It is broken as an ELF file.
    #[error("broken ELF file: {0}")]
    Broken(String),
    /// It has no `.modinfo`, or it is empty.
    #[error("no section .modinfo: not a kernel module")]
    NoModinfo,
    /// `.modinfo` does not say something that every module says.
    #[error("no `{0}=` in section .modinfo")]
    NotInModinfo(&'static str),
    /// Something of an event cannot be found, or not be read.
    #[error("missing pointer from {holder} to {part}")]
    Missing {
        /// The symbol of the event's `trace_event_call`, or the place that should lead to one.
        holder: String,
        /// What is missing.
        part: String,
    },
    /// A section of pointers does not fit what it points to.
    #[error("{section} holds {pointers} pointers, but there are {found} {what}")]
    Count {
        /// The section's name.
        section: &'static str,
        /// How many pointers its size is worth, or its relocations.
        pointers: usize,
        /// How many things there are.
        found: usize,
        /// What they are.
        what: &'static str,
    },
}

impl ModuleError {
    pub(super) fn missing(holder: &str, part: impl Into<String>) -> ModuleError {
        ModuleError::Missing { holder: holder.to_owned(), part: part.into() }
    }
}

/// The architectures with their ELF machines, for a message.
fn known_machines() -> String {
    let machines: Vec<String> =
        arch::ALL.iter().map(|row| format!("{} {}", row.elf_machine, row.name)).collect();
    machines.join(", ")
}
