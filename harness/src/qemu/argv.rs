//! QEMU's arguments.

use camino::Utf8Path;

use super::accel::Accel;
use crate::guest::Guest;

/// The name of the agent's virtio-serial port, as `guests/agent/agent.h` has it.
pub const AGENT_PORT: &str = "goldtrace.agent";

/// What a guest is booted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The agent answers requests.
    Agent,
    /// A shell on the console.
    Shell,
    /// Nothing: QEMU stops before the first instruction and opens its monitor where the agent's
    /// port would be.
    Stopped,
}

/// One start of a guest.
#[derive(Debug, Clone, Copy)]
pub struct Boot<'a> {
    /// Which guest.
    pub guest: &'a Guest,
    /// What executes its instructions.
    pub accel: Accel,
    /// The kernel's image.
    pub kernel: &'a Utf8Path,
    /// The initramfs.
    pub initramfs: &'a Utf8Path,
    /// A socket that we listen on and QEMU connects to, for the agent's port.
    pub socket: &'a Utf8Path,
    /// What for.
    pub mode: Mode,
}

/// The words after the program's name. The console is QEMU's standard input and output.
pub fn arguments(boot: &Boot<'_>) -> Vec<String> {
    let Boot { guest, accel, kernel, initramfs, socket, mode } = boot;
    let spec = &guest.qemu;
    let mut machine = spec.machine.clone();
    if *accel == Accel::Tcg {
        for quirk in &spec.machine_tcg {
            machine = format!("{machine},{}", quirk.set.join(","));
        }
    }
    let cpu = match accel {
        Accel::Tcg => &spec.cpu_tcg,
        Accel::Kvm => &spec.cpu_kvm,
    };
    let mut words: Vec<String> = Vec::new();
    let mut add = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
    // No default devices, so no network; no configuration of the user's; a guest that resets ends.
    add(&["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]);
    add(&["-machine", &machine, "-accel", accel.name(), "-cpu", cpu]);
    add(&["-smp", &guest.cpus.to_string(), "-m", &format!("{}M", guest.memory_mib)]);
    for quirk in &spec.arguments {
        add(&quirk.set.iter().map(String::as_str).collect::<Vec<_>>());
    }
    add(&["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"]);
    let channel = format!("socket,id=agent,path={}", option_value(socket.as_str()));
    if *mode == Mode::Stopped {
        add(&["-S", "-chardev", &channel, "-mon", "chardev=agent,mode=control"]);
    } else {
        add(&["-device", "virtio-serial-pci"]);
        if *mode == Mode::Agent {
            add(&["-chardev", &channel]);
            add(&["-device", &format!("virtserialport,chardev=agent,name={AGENT_PORT}")]);
        }
    }
    add(&["-kernel", kernel.as_str(), "-initrd", initramfs.as_str()]);
    add(&["-append", &kernel_command_line(guest, *mode)]);
    words
}

/// A kernel that panics or oopses resets at once, which ends QEMU. The console carries warnings and
/// worse, so that a splat is seen; in a shell, everything.
fn kernel_command_line(guest: &Guest, mode: Mode) -> String {
    let mut words = vec![format!("console={}", guest.console), "panic=-1".to_owned(), "oops=panic".to_owned()];
    match mode {
        Mode::Shell => words.push("goldtrace.mode=shell".to_owned()),
        Mode::Agent | Mode::Stopped => words.push("loglevel=5".to_owned()),
    }
    for quirk in &guest.kernel.arguments {
        words.extend(quirk.set.iter().cloned());
    }
    words.join(" ")
}

/// A value inside an option list: QEMU ends a value at a comma, and reads two as one.
fn option_value(text: &str) -> String {
    text.replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::guest::load_all;
    use crate::project::Project;

    fn shown(name: &str, accel: Accel, mode: Mode) -> String {
        let root = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let guests = load_all(&Project::at(root).expect("a project")).expect("valid guests");
        let guest = guests.iter().find(|g| g.name.as_str() == name).expect("the guest");
        let words = arguments(&Boot {
            guest,
            accel,
            kernel: Utf8Path::new("/cache/kernel"),
            initramfs: Utf8Path::new("/cache/initramfs.cpio"),
            socket: Utf8Path::new("/tmp/a,b/agent"),
            mode,
        });
        words.iter().fold(String::new(), |text, word| {
            let gap = if text.is_empty() { "" } else if word.starts_with('-') { "\n" } else { " " };
            format!("{text}{gap}{word}")
        })
    }

    fn check(name: &str, accel: Accel, mode: Mode, expected: &Expect) {
        expected.assert_eq(&shown(name, accel, mode));
    }

    #[test]
    fn ppc64le() {
        check("ppc64le", Accel::Tcg, Mode::Agent, &expect![[""]]);
    }

    #[test]
    fn x86_64() {
        check("x86_64", Accel::Tcg, Mode::Agent, &expect![[""]]);
    }

    #[test]
    fn x86_64_under_kvm_has_no_tcg_workaround() {
        check("x86_64", Accel::Kvm, Mode::Agent, &expect![[""]]);
    }

    #[test]
    fn a_shell_has_no_agent_port() {
        check("x86_64", Accel::Tcg, Mode::Shell, &expect![[""]]);
    }

    #[test]
    fn no_guest_has_a_network_device() {
        for name in ["ppc64le", "x86_64"] {
            let words = shown(name, Accel::Tcg, Mode::Agent);
            for word in ["-nic", "-net", "virtio-net", "e1000", "user,"] {
                assert!(!words.contains(word), "{name}: {word}");
            }
        }
    }
}
