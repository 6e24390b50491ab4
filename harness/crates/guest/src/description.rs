//! What a guest is.

use std::fmt;

use arch::Arch;

use super::modules::ModuleSource;

/// The name of a guest: that of its file, such as `ppc64le`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuestName(String);

impl GuestName {
    /// A name; the caller has taken it from a file's name.
    pub fn new(name: &str) -> GuestName {
        GuestName(name.to_owned())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for GuestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A setting that is not obvious, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quirk {
    /// The words of the setting, as they stand on a command line.
    pub set: Vec<String>,
    /// Why it is set, and when it can go.
    pub why: String,
}

/// A message that the guest's kernel prints on its console, with the reason why it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownMessage {
    /// A regular expression for the whole line, without level and time stamp.
    pub pattern: String,
    /// Where it comes from, and what it means.
    pub reason: String,
    /// Whether a run of all trials may end without it, as it depends on the host and not on the trials.
    pub sometimes: bool,
    /// Its line in the guest's file, from 1.
    pub line: usize,
}

/// How QEMU is started for a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QemuSpec {
    /// The program.
    pub binary: String,
    /// The Debian package that has it.
    pub package: String,
    /// The machine type, as `-machine` takes it.
    pub machine: String,
    /// Further arguments.
    pub arguments: Vec<Quirk>,
}

/// What is set under one accelerator only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccelSpec {
    /// The CPU model, as `-cpu` takes it.
    pub cpu: String,
    /// Options added to the accelerator, as `-accel` takes them.
    pub options: Vec<Quirk>,
    /// Options added to the machine type.
    pub machine: Vec<Quirk>,
    /// Further arguments.
    pub arguments: Vec<Quirk>,
    /// Further arguments on the kernel's command line.
    pub kernel_arguments: Vec<Quirk>,
}

/// How a guest's kernel is built and started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelSpec {
    /// `ARCH=` of the kernel's own makefiles.
    pub make_arch: String,
    /// `CROSS_COMPILE=`; empty for the host's own compiler.
    pub cross: String,
    /// The file that QEMU boots, relative to the build directory.
    pub image: String,
    /// Config fragments in `images/kernel/`, in order; a later one wins.
    pub fragments: Vec<String>,
    /// Further arguments on the kernel's command line.
    pub arguments: Vec<Quirk>,
}

/// A machine description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    /// Its name.
    pub name: GuestName,
    /// Its architecture.
    pub arch: Arch,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Number of CPUs.
    pub cpus: u64,
    /// The console's device, as the kernel names it.
    pub console: String,
    /// Debian's name of the architecture, for the userland's packages.
    pub debian_arch: String,
    /// How QEMU is started.
    pub qemu: QemuSpec,
    /// What is added under TCG.
    pub tcg: AccelSpec,
    /// What is added under KVM.
    pub kvm: AccelSpec,
    /// How the kernel is built and started.
    pub kernel: KernelSpec,
    /// The guest, of another architecture, in which what this one records is decoded a second time.
    pub decoder: Option<GuestName>,
    /// Messages at warning level or above that a healthy kernel prints in it. Any other is a splat.
    pub known_messages: Vec<KnownMessage>,
    /// Messages after which a boot says nothing of the kernel: the host did not give the guest time to measure its
    /// clocks.
    pub boot_errors: Vec<KnownMessage>,
    /// The modules that every trial can load.
    pub modules: Vec<ModuleSource>,
}
