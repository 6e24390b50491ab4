//! Whether a guest's kernel would load a module.

use camino::Utf8Path;

use arch::Arch;
use guest::Guest;
use kmod::Identity;

/// Why the guest, whose kernel has this `vermagic`, would refuse the module in `file`; `None` when it
/// would not. The kernel compares both before anything else (kernel/module/main.c,
/// `elf_validity_check` and `check_modinfo`, Linux 7.2).
pub(super) fn misfit(file: &Utf8Path, module: &Identity, guest: &Guest, vermagic: &str) -> Option<String> {
    let fits = module.machine == guest.arch.elf_machine && module.vermagic == vermagic;
    (!fits).then(|| {
        format!(
            "module `{file}` does not fit guest {}:\n    the module is for {}, vermagic `{}`\n    the guest's \
             kernel is for {}, vermagic `{vermagic}`\ngive the folder of its source (`folder:`), and it is built for \
             each guest; or name the guests that it is for (`guests:` of the case)",
            guest.name,
            machine(module.machine),
            module.vermagic,
            machine(guest.arch.elf_machine),
        )
    })
}

fn machine(number: u16) -> String {
    Arch::of_elf_machine(number).map_or_else(|| format!("ELF machine {number}"), |arch| arch.name.to_owned())
}
