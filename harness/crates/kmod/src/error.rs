//! Why a file cannot be read as a kernel module.

/// What is wrong with a module's file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModuleError {
    /// The file does not begin as ELF files do. Compressed modules do not, either.
    #[error("failed to read the module: it is no ELF file")]
    NotElf,
    /// It is for machines of another word size or byte order.
    #[error("failed to read the module: it is not of 64 bits and little-endian")]
    NotLittle64,
    /// It is a program, a library or a core dump.
    #[error(
        "failed to read the module: it is no relocatable file (its ELF type is {0}, and that of a module 1)"
    )]
    NotRelocatable(u16),
    /// Its relocations are not known here.
    #[error(
        "failed to read the module: it is for machine {0}, and only 62 (x86-64) and 21 (ppc64) are known"
    )]
    Machine(u16),
    /// It is broken as an ELF file.
    #[error("failed to read the module as ELF: {0}")]
    Broken(String),
    /// It has no `.modinfo`, or it is empty.
    #[error("failed to read the module: it has no section .modinfo")]
    NoModinfo,
    /// `.modinfo` does not say something that every module says.
    #[error("the module's .modinfo has no `{0}=`")]
    NotInModinfo(&'static str),
    /// Something of an event cannot be found, or not be read.
    #[error("{holder} points to no {part}")]
    Missing {
        /// The symbol of the event's `trace_event_call`, or the place that should lead to one.
        holder: String,
        /// What is missing.
        part: String,
    },
    /// A section of pointers does not fit what it points to.
    #[error("{section} holds {pointers} pointers, and there are {found} {what}")]
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
