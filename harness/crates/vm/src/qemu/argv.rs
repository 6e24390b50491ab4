//! QEMU's arguments.

use super::accel::Accel;
use super::boot::{Boot, Mode, Origin};
use super::confine::SANDBOX;
use super::descriptors::{AGENT, INITRAMFS, KERNEL, MONITOR, RAM, path};
use guest::{Guest, Quirk};

/// The name of the agent's virtio-serial port, as `guests/agent/init.c` has it.
const AGENT_PORT: &str = "goldtrace.agent";

/// What stands for the frequency of the host's time stamp counter, in kHz, in an argument for the kernel.
const HOST_TSC_KHZ: &str = "$HOST_TSC_KHZ";

/// The words after the program's name. The console is QEMU's standard input and output; the other descriptors are those
/// of [`descriptors`](super::descriptors). An argument for the kernel with [`HOST_TSC_KHZ`] is left out where that is
/// unknown.
pub(super) fn arguments(boot: &Boot<'_>, host_tsc_khz: impl FnOnce() -> Option<u64>) -> Vec<String> {
    let Boot { guest, accel, mode, shares_memory, origin } = boot;
    let spec = &guest.qemu;
    let own = accel.spec(guest);
    let mut machine = with_options(&spec.machine, &own.machine);
    if boot.has_memory_file() {
        machine.push_str(",memory-backend=ram");
    }
    let accel_options = with_options(accel.name(), &own.options);
    let mut words: Vec<String> = Vec::new();
    let mut add = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
    // No default devices, so no network; no configuration of the user's; a guest that resets ends.
    add(&["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]);
    add(&SANDBOX);
    add(&["-machine", &machine, "-accel", &accel_options, "-cpu", &own.cpu]);
    add(&["-smp", &guest.cpus.to_string(), "-m", &format!("{}M", guest.memory_mib)]);
    for quirk in spec.arguments.iter().chain(&own.arguments) {
        add(&quirk.set.iter().map(String::as_str).collect::<Vec<_>>());
    }
    add(&["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"]);
    if boot.has_memory_file() {
        let (size, ram) = (guest.memory_mib, path(RAM));
        // What a guest writes that is restored from a snapshot is its own, unless we share its memory.
        let share = if *shares_memory { "on" } else { "off" };
        add(&["-object", &format!("memory-backend-file,id=ram,size={size}M,share={share},mem-path={ram}")]);
        add(&["-chardev", &format!("socket,id=monitor,fd={MONITOR}")]);
        add(&["-mon", "chardev=monitor,mode=control"]);
    }
    let channel = format!("socket,id=agent,fd={AGENT}");
    if *mode == Mode::Stopped {
        add(&["-S", "-chardev", &channel, "-mon", "chardev=agent,mode=control"]);
    } else {
        add(&["-device", "virtio-serial-pci,max_ports=2", "-chardev", &channel]);
        add(&["-device", &format!("virtserialport,chardev=agent,name={AGENT_PORT}")]);
    }
    match origin {
        Origin::Kernel { .. } => {
            add(&["-kernel", &path(KERNEL), "-initrd", &path(INITRAMFS)]);
            add(&["-append", &kernel_command_line(guest, *accel, host_tsc_khz)]);
        }
        // It waits until the monitor says where the state comes from.
        Origin::Snapshot(_) => add(&["-incoming", "defer"]),
    }
    words
}

impl Boot<'_> {
    /// How QEMU is started, without what differs from start to start on one host.
    pub fn machine(&self) -> String {
        arguments(self, || Some(0)).join(" ")
    }
}

/// `base,option,option...`
fn with_options(base: &str, quirks: &[Quirk]) -> String {
    quirks
        .iter()
        .flat_map(|quirk| &quirk.set)
        .fold(base.to_owned(), |text, option| format!("{text},{option}"))
}

/// The console's level: it carries messages below it, so warnings (4) and what is more severe.
pub const CONSOLE_LEVEL: u32 = 5;

/// The level of messages that name none: `CONFIG_MESSAGE_LOGLEVEL_DEFAULT` (lib/Kconfig.debug).
pub const MESSAGE_LEVEL: u32 = 4;

/// A kernel that panics or oopses resets at once, which ends QEMU. The console carries warnings and worse, each line
/// with its level (`<4>`; `console_msg_format_setup`, kernel/printk/printk.c:2611), so that a splat is seen.
fn kernel_command_line(guest: &Guest, accel: Accel, host_tsc_khz: impl FnOnce() -> Option<u64>) -> String {
    let mut words =
        vec![format!("console={}", guest.console), "panic=-1".to_owned(), "oops=panic".to_owned()];
    words.push(format!("loglevel={CONSOLE_LEVEL}"));
    words.push("console_msg_format=syslog".to_owned());
    for quirk in guest.kernel.arguments.iter().chain(&accel.spec(guest).kernel_arguments) {
        words.extend(quirk.set.iter().cloned());
    }
    if words.iter().any(|word| word.contains(HOST_TSC_KHZ)) {
        match host_tsc_khz() {
            Some(khz) => {
                words.iter_mut().for_each(|word| *word = word.replace(HOST_TSC_KHZ, &khz.to_string()))
            }
            None => words.retain(|word| !word.contains(HOST_TSC_KHZ)),
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;
    use expect_test::{Expect, expect};

    use super::*;
    use guest::Project;
    use guest::load_all;

    fn shown(name: &str, accel: Accel, mode: Mode) -> String {
        shown_with(name, accel, mode, false, Some(2_445_406))
    }

    fn shown_with(
        name: &str,
        accel: Accel,
        mode: Mode,
        shares_memory: bool,
        host_tsc_khz: Option<u64>,
    ) -> String {
        let root = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).expect("the workspace");
        let guests = load_all(&Project::at(root).expect("a project")).expect("valid guests");
        let guest = guests.iter().find(|g| g.name.as_str() == name).expect("the guest");
        let boot = Boot {
            guest,
            accel,
            origin: Origin::Kernel {
                kernel: "/cache/kernel".into(),
                initramfs: "/cache/initramfs.cpio".into(),
            },
            mode,
            shares_memory,
        };
        let words = arguments(&boot, || host_tsc_khz);
        words.iter().fold(String::new(), |text, word| {
            let gap = if text.is_empty() {
                ""
            } else if word.starts_with('-') {
                "\n"
            } else {
                " "
            };
            format!("{text}{gap}{word}")
        })
    }

    fn check(name: &str, accel: Accel, mode: Mode, expected: &Expect) {
        expected.assert_eq(&shown(name, accel, mode));
    }

    #[test]
    fn ppc64le() {
        check(
            "ppc64le",
            Accel::Tcg,
            Mode::Agent,
            &expect![[r#"
                -nodefaults
                -no-user-config
                -no-reboot
                -display none
                -sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny
                -machine pseries,x-vof=on,cap-cfpc=broken,cap-sbbc=broken,cap-ibs=broken,cap-ccf-assist=off
                -accel tcg,thread=single
                -cpu power9
                -smp 2
                -m 256M
                -prom-env goldtrace=1
                -global spapr-pci-host-bridge.dma_win_size=0x1000000
                -chardev stdio,id=console,signal=off
                -serial chardev:console
                -device virtio-serial-pci,max_ports=2
                -chardev socket,id=agent,fd=5
                -device virtserialport,chardev=agent,name=goldtrace.agent
                -kernel /proc/self/fd/6
                -initrd /proc/self/fd/7
                -append console=hvc0 panic=-1 oops=panic loglevel=5 console_msg_format=syslog hash_pointers=always mitigations=off"#]],
        );
    }

    #[test]
    fn x86_64() {
        check(
            "x86_64",
            Accel::Tcg,
            Mode::Agent,
            &expect![[r#"
                -nodefaults
                -no-user-config
                -no-reboot
                -display none
                -sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny
                -machine q35,sata=off,smbus=off,usb=off,smm=off,vmport=off
                -accel tcg,thread=single
                -cpu max,-erms
                -smp 2
                -m 256M
                -bios qboot.rom
                -chardev stdio,id=console,signal=off
                -serial chardev:console
                -device virtio-serial-pci,max_ports=2
                -chardev socket,id=agent,fd=5
                -device virtserialport,chardev=agent,name=goldtrace.agent
                -kernel /proc/self/fd/6
                -initrd /proc/self/fd/7
                -append console=ttyS0 panic=-1 oops=panic loglevel=5 console_msg_format=syslog retain_initrd hash_pointers=always no_timer_check tsc=reliable tsc_early_khz=2445406"#]],
        );
    }

    #[test]
    fn x86_64_under_kvm_has_no_tcg_workaround() {
        check(
            "x86_64",
            Accel::Kvm,
            Mode::Agent,
            &expect![[r#"
            -nodefaults
            -no-user-config
            -no-reboot
            -display none
            -sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny
            -machine q35
            -accel kvm
            -cpu host
            -smp 2
            -m 256M
            -bios qboot.rom
            -chardev stdio,id=console,signal=off
            -serial chardev:console
            -device virtio-serial-pci,max_ports=2
            -chardev socket,id=agent,fd=5
            -device virtserialport,chardev=agent,name=goldtrace.agent
            -kernel /proc/self/fd/6
            -initrd /proc/self/fd/7
            -append console=ttyS0 panic=-1 oops=panic loglevel=5 console_msg_format=syslog retain_initrd hash_pointers=always"#]],
        );
    }

    #[test]
    fn shared_memory_and_its_monitor_are_descriptors() {
        let words = shown_with("ppc64le", Accel::Tcg, Mode::Agent, true, None);
        for line in [
            "cap-ccf-assist=off,memory-backend=ram\n",
            "\n-object memory-backend-file,id=ram,size=256M,share=on,mem-path=/proc/self/fd/8\n",
            "\n-chardev socket,id=monitor,fd=9\n-mon chardev=monitor,mode=control\n",
        ] {
            assert!(words.contains(line), "no `{line}` in:\n{words}");
        }
    }

    #[test]
    fn argument_with_an_unknown_frequency_is_left_out() {
        let words = shown_with("x86_64", Accel::Tcg, Mode::Agent, false, None);
        assert!(words.ends_with("no_timer_check tsc=reliable"), "{words}");
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
