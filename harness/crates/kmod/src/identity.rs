//! A module's identity: what decides whether a kernel loads it, and what has to be loaded before.

use object::elf;
use object::endian::LittleEndian;
use object::read::elf::ElfFile64;
use object::{Object as _, ObjectSection as _};

use super::error::ModuleError;

/// What a module's file says of the module as a whole. It can be read of any 64-bit little-endian
/// machine, and whatever its events are like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its name, as `lsmod` prints it; that of the file may have `-` for `_`.
    pub name: String,
    /// The ELF machine: 62 is x86-64, 21 ppc64.
    pub machine: u16,
    /// The kernel it was built for, and how that was configured (include/linux/vermagic.h, Linux
    /// 7.2), without the space after the last word.
    pub vermagic: String,
    /// The modules that must be loaded before.
    pub depends: Vec<String>,
}

impl Identity {
    /// Read it from a module's file.
    ///
    /// # Errors
    /// When it is not a relocatable ELF file of 64 bits and little-endian, and when its `.modinfo` has
    /// no name or no vermagic.
    pub fn parse(bytes: &[u8]) -> Result<Identity, ModuleError> {
        let half = |at: usize| bytes.get(at..at + 2).map_or(0, |half| u16::from_le_bytes([half[0], half[1]]));
        if !bytes.starts_with(b"\x7fELF") {
            return Err(ModuleError::NotElf);
        }
        if bytes.get(4..6) != Some(&[elf::ELFCLASS64.0, elf::ELFDATA2LSB.0]) {
            return Err(ModuleError::NotLittle64);
        }
        if half(16) != elf::ET_REL.0 {
            return Err(ModuleError::NotRelocatable(half(16)));
        }
        let broken = |error: object::Error| ModuleError::Broken(error.to_string());
        let file: ElfFile64<'_, LittleEndian> = ElfFile64::parse(bytes).map_err(broken)?;
        let info = match file.section_by_name_bytes(b".modinfo") {
            Some(section) => section.data().map_err(broken)?,
            None => &[],
        };
        if info.is_empty() {
            return Err(ModuleError::NoModinfo);
        }
        let said = |key: &'static str| modinfo(info, key).ok_or(ModuleError::NotInModinfo(key));
        let depends = modinfo(info, "depends").unwrap_or_default();
        Ok(Identity {
            name: said("name")?,
            machine: half(18),
            vermagic: said("vermagic")?.trim_end().to_owned(),
            depends: depends.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        })
    }
}

/// The value of the first `KEY=VALUE`; each ends in a zero byte.
fn modinfo(info: &[u8], key: &str) -> Option<String> {
    let value = |line: &[u8]| {
        let value = line.strip_prefix(key.as_bytes())?.strip_prefix(b"=")?;
        Some(String::from_utf8_lossy(value).into_owned())
    };
    info.split(|byte| *byte == 0).find_map(value)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Elf, PPC, X86, sample};
    use super::*;

    fn error(bytes: &[u8]) -> String {
        Identity::parse(bytes).expect_err("not a module").to_string()
    }

    #[test]
    fn identity_is_read_from_modinfo_and_the_header() {
        let identity = Identity::parse(&sample(Elf::new(X86))).expect("a module");
        assert_eq!((identity.name.as_str(), identity.machine), ("some", 62));
        assert_eq!(identity.vermagic, "7.2.0 SMP mod_unload");
        assert_eq!(identity.depends, ["one", "two"]);
        assert_eq!(Identity::parse(&sample(Elf::new(PPC))).expect("a module").machine, 21);
    }

    #[test]
    fn identity_is_read_for_an_unknown_machine_too() {
        let mut elf = sample(Elf::new(X86));
        elf[18] = 183;
        assert_eq!(Identity::parse(&elf).expect("a module").machine, 183);
    }

    #[test]
    fn file_that_is_not_a_module_is_an_error() {
        let mut elf = sample(Elf::new(X86));
        assert_eq!(error(b"\xfd7zXZ\0"), "not an ELF file");
        assert_eq!(error(b""), error(b"\x7fELX"));
        let change = |at: usize, byte: u8| {
            let mut changed = elf.clone();
            changed[at] = byte;
            error(&changed)
        };
        assert_eq!(
            change(4, 1),
            "not a 64-bit little-endian ELF file: modules of other word sizes and byte orders cannot be read"
        );
        assert_eq!(change(5, 2), change(4, 1));
        assert_eq!(
            change(16, 3),
            "not a relocatable file: its ELF type is 3, and that of a module is 1 (ET_REL)"
        );
        elf.truncate(64);
        assert!(error(&elf).starts_with("broken ELF file: "), "{}", error(&elf));
    }

    #[test]
    fn module_without_name_or_vermagic_is_an_error() {
        let modinfo = |text: &[u8]| error(&Elf::new(X86).with_modinfo(text));
        assert_eq!(error(&Elf::new(X86).bytes()), "no section .modinfo: not a kernel module");
        assert_eq!(modinfo(b"vermagic=b\0"), "no `name=` in section .modinfo");
        assert_eq!(modinfo(b"name=b\0xvermagic=b\0"), "no `vermagic=` in section .modinfo");
    }
}
