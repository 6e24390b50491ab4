//! What executes a guest's instructions: KVM where it really works, else TCG.

use std::fs::{self, File};

use guest::{AccelSpec, Guest};

/// An accelerator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accel {
    /// QEMU's own translator: any guest on any host.
    Tcg,
    /// The host's hypervisor.
    Kvm,
}

impl Accel {
    /// What is set for a guest under it.
    pub fn spec(self, guest: &Guest) -> &AccelSpec {
        match self {
            Accel::Tcg => &guest.tcg,
            Accel::Kvm => &guest.kvm,
        }
    }

    /// Its name, as QEMU has it.
    pub fn name(self) -> &'static str {
        match self {
            Accel::Tcg => "tcg",
            Accel::Kvm => "kvm",
        }
    }
}

/// Which accelerator the user wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedAccel {
    /// KVM where it works, else TCG.
    Auto,
    /// TCG.
    Tcg,
    /// KVM, or an error.
    Kvm,
}

/// The accelerator to use, and why that one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccelChoice {
    /// The accelerator.
    pub accel: Accel,
    /// Why.
    pub why: String,
}

/// What the host shows of KVM, without a guest started.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HostKvm {
    /// /dev/kvm is there.
    present: bool,
    /// Why it cannot be opened for reading and writing; `None` when it can.
    open_error: Option<String>,
    /// The CPU says that it can virtualise.
    cpu_flag: bool,
}

impl HostKvm {
    fn look() -> HostKvm {
        let device = "/dev/kvm";
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        HostKvm {
            present: fs::exists(device).unwrap_or(false),
            open_error: File::options().read(true).write(true).open(device).err().map(|e| e.to_string()),
            cpu_flag: cfg!(not(target_arch = "x86_64"))
                || cpuinfo.split_whitespace().any(|word| word == "vmx" || word == "svm"),
        }
    }

    /// Why KVM is out of the question for `guest`; `None` when only a probe boot can show.
    fn obstacle(&self, guest: &Guest) -> Option<String> {
        if !guest.arch.is_host {
            return Some(format!("a {} guest cannot run on this host's processor", guest.arch.name));
        }
        if !self.present {
            return Some("/dev/kvm does not exist".to_owned());
        }
        if let Some(error) = &self.open_error {
            return Some(format!("/dev/kvm exists but cannot be opened: {error}"));
        }
        if !self.cpu_flag {
            return Some(
                "/dev/kvm exists and opens, but cannot be used: /proc/cpuinfo has neither vmx nor svm, \
                 so this machine's processor does not offer virtualisation, and a guest would hang"
                    .to_owned(),
            );
        }
        None
    }
}

impl AccelChoice {
    /// Choose for `guest`. A present device proves nothing, so `probe` boots the guest under KVM
    /// with a short timeout; it is only called when nothing else rules KVM out.
    ///
    /// # Errors
    /// When KVM is wanted and cannot be used: why.
    pub fn make(
        guest: &Guest,
        wanted: WantedAccel,
        probe: impl FnOnce() -> Result<(), String>,
    ) -> Result<AccelChoice, String> {
        AccelChoice::from_host(&HostKvm::look(), guest, wanted, probe)
    }

    fn from_host(
        host: &HostKvm,
        guest: &Guest,
        wanted: WantedAccel,
        probe: impl FnOnce() -> Result<(), String>,
    ) -> Result<AccelChoice, String> {
        if wanted == WantedAccel::Tcg {
            return Ok(AccelChoice { accel: Accel::Tcg, why: "requested by --accel".to_owned() });
        }
        let obstacle = host
            .obstacle(guest)
            .or_else(|| probe().err().map(|e| format!("a probe boot under KVM did not answer: {e}")));
        match (obstacle, wanted) {
            (None, _) => Ok(AccelChoice { accel: Accel::Kvm, why: "a probe boot answered".to_owned() }),
            (Some(why), WantedAccel::Auto | WantedAccel::Tcg) => Ok(AccelChoice { accel: Accel::Tcg, why }),
            (Some(why), WantedAccel::Kvm) => Err(format!("guest {} cannot run under KVM: {why}", guest.name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use guest::read_guest;

    fn guest(arch: &str) -> Guest {
        let text = format!(
            "arch: {arch}\nmemory: 256\ncpus: 2\nconsole: c\ndebian_arch: d\n\
             qemu: {{binary: q, package: p, machine: m}}\naccelerators: {{tcg: {{cpu: a}}, kvm: {{cpu: b}}}}\n\
             kernel: {{make_arch: x, image: vmlinux, fragments: []}}\n"
        );
        read_guest("g", "g.yaml", &text, "/".into()).expect("valid")
    }

    fn hosts_own() -> Guest {
        guest(if cfg!(target_arch = "x86_64") { "x86_64" } else { "ppc64le" })
    }

    const USABLE: HostKvm = HostKvm { present: true, open_error: None, cpu_flag: true };

    #[test]
    fn device_that_opens_is_not_a_proof() {
        let host = HostKvm { cpu_flag: false, ..USABLE };
        let choice = AccelChoice::from_host(&host, &hosts_own(), WantedAccel::Auto, || panic!("no probe"))
            .expect("tcg");
        assert_eq!(choice.accel, Accel::Tcg);
        assert!(choice.why.contains("neither vmx nor svm"), "{}", choice.why);
    }

    #[test]
    fn only_a_probe_boot_is_a_proof() {
        let choice =
            AccelChoice::from_host(&USABLE, &hosts_own(), WantedAccel::Auto, || Ok(())).expect("kvm");
        assert_eq!(choice.accel, Accel::Kvm);
        let choice =
            AccelChoice::from_host(&USABLE, &hosts_own(), WantedAccel::Auto, || Err("silence".into()));
        let choice = choice.expect("tcg");
        assert_eq!(choice.accel, Accel::Tcg);
        assert!(choice.why.contains("silence"), "{}", choice.why);
    }

    #[test]
    fn requested_kvm_that_cannot_be_used_is_an_error() {
        let host = HostKvm { present: false, open_error: Some("gone".into()), cpu_flag: true };
        let error =
            AccelChoice::from_host(&host, &hosts_own(), WantedAccel::Kvm, || Ok(())).expect_err("none");
        assert!(error.contains("/dev/kvm does not exist"), "{error}");
        let foreign = guest(if cfg!(target_arch = "x86_64") { "ppc64le" } else { "x86_64" });
        assert!(AccelChoice::from_host(&USABLE, &foreign, WantedAccel::Kvm, || Ok(())).is_err());
    }
}
