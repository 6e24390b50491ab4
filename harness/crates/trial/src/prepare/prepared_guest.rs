//! A guest that is ready to boot, as plain data.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use golden::Facts;
use guest::Guest;
use image::{BuiltKernel, Rootfs};
use vm::qemu::{Accel, AccelChoice, Boot, Machine, MachineLogs, Mode, Origin, StartError};
use vm::{OpenError, Session};

use super::saved_guest::{SavedGuest, is_refusal};
use crate::case::Case;

/// How long a guest may take from QEMU's start to the agent's greeting. A boot takes about a
/// second; a busy host may need many times that.
const BOOT_TIMEOUT: Duration = Duration::from_secs(90);

/// Detectors that look at each access to memory, each lock or each allocation: a kernel with one of them is several
/// times slower.
const SLOW: [&str; 5] =
    ["CONFIG_KASAN", "CONFIG_KCSAN", "CONFIG_KMSAN", "CONFIG_PROVE_LOCKING", "CONFIG_DEBUG_KMEMLEAK"];

/// A kernel and its configuration.
#[derive(Debug, Clone)]
pub struct PreparedKernel {
    /// The kernel.
    pub kernel: BuiltKernel,
    /// Config symbols that are `y` or `m` in it, `CONFIG_` included.
    pub symbols: Arc<BTreeSet<String>>,
    /// How it differs from the one that the project describes, one line each.
    pub changes: Vec<String>,
}

/// A guest that is ready to boot: with a kernel, a root file system and an accelerator.
#[derive(Clone)]
pub struct PreparedGuest {
    /// The guest.
    pub guest: Guest,
    /// Its kernel.
    pub kernel: PreparedKernel,
    /// What it boots with the kernel.
    pub rootfs: Rootfs,
    /// What executes its instructions, and why.
    pub accel: AccelChoice,
    /// The guest, of another architecture, that decodes what this one records; `None` where nothing is decoded.
    pub decoder: Option<Arc<PreparedGuest>>,
    /// How long a boot may take.
    pub boot_timeout: Duration,
    /// What its trials go on from; `None` where each boots.
    pub(super) saved: Option<Arc<SavedGuest>>,
}

impl PreparedKernel {
    pub(super) fn new(kernel: BuiltKernel, config: &str, changes: Vec<String>) -> PreparedKernel {
        let symbols = symbols(config);
        PreparedKernel { kernel, symbols: Arc::new(symbols), changes }
    }

    /// How many times longer a guest may take with this kernel than timeouts say.
    pub fn slowness(&self) -> u32 {
        slowness(&self.symbols)
    }

    /// Why a case cannot be run with this kernel, whatever else is made; `None` when it can.
    pub(super) fn obstacle(&self, case: &Case, guest: &Guest) -> Option<String> {
        let required = case.requires.symbols.iter().map(String::as_str);
        let missing: Vec<&str> = required.filter(|symbol| !self.symbols.contains(*symbol)).collect();
        (!missing.is_empty())
            .then(|| format!("the kernel of guest {} has no {}", guest.name, missing.join(", ")))
    }
}

impl PreparedGuest {
    pub(super) fn new(
        guest: &Guest,
        kernel: PreparedKernel,
        rootfs: Rootfs,
        accel: AccelChoice,
    ) -> PreparedGuest {
        let guest = guest.clone();
        let boot_timeout = BOOT_TIMEOUT * kernel.slowness();
        PreparedGuest { guest, kernel, rootfs, accel, decoder: None, boot_timeout, saved: None }
    }

    /// What a golden's conditions can ask of the guest.
    pub fn facts(&self) -> Facts {
        facts(&self.guest, &self.kernel, &self.accel)
    }

    /// Why a case cannot be run in this guest; `None` when it can.
    pub fn obstacle(&self, case: &Case) -> Option<String> {
        let guest = &self.guest.name;
        if let Some(why) = self.kernel.obstacle(case, &self.guest) {
            return Some(why);
        }
        if case.requires.tcg && self.accel.accel != Accel::Tcg {
            let accel = self.accel.accel.name();
            return Some(format!(
                "guest {guest} runs under {accel}, and the case requires tcg: run it with `--accel tcg`"
            ));
        }
        let with_perf = case.requires.perf.then_some(self).into_iter().chain(self.decoder.as_deref());
        let lacks = |guest: &&PreparedGuest| {
            guest.rootfs.perf.as_ref().is_some_and(|perf| !perf.features.libtraceevent)
        };
        let lacking = with_perf.into_iter().find(lacks)?;
        Some(format!("perf of guest {} was built without libtraceevent", lacking.guest.name))
    }

    /// The same guest, and the one that decodes what it records, for trials that boot them.
    #[must_use]
    pub fn booting(self) -> PreparedGuest {
        let decoder = self.decoder.map(|decoder| Arc::new(PreparedGuest::clone(&decoder).booting()));
        PreparedGuest { saved: None, decoder, ..self }
    }

    /// Boot the guest, whatever was saved of it. See [`Machine::start`].
    ///
    /// # Errors
    /// When QEMU cannot be started.
    pub fn start(&self, mode: Mode, logs: MachineLogs) -> Result<Machine, StartError> {
        Machine::start(&self.boot(mode, false), logs)
    }

    /// Start the guest, by restoring it where it was saved, and wait until its agent is ready. Its logs have no name.
    ///
    /// # Errors
    /// Why there is no such guest.
    pub fn start_session(&self) -> Result<Session, String> {
        let launched = self.launch(false, None).map_err(|error| error.to_string())?;
        self.open(launched).map_err(|failed| failed.error.to_string())
    }

    /// Start the guest, by restoring it where it was saved, with its logs in `directory`; without one they have no name.
    ///
    /// # Errors
    /// When QEMU cannot be started.
    pub(crate) fn launch(
        &self,
        shares_memory: bool,
        directory: Option<&Utf8Path>,
    ) -> Result<Launched, StartError> {
        let snapshot = self.saved.as_ref().and_then(|saved| saved.snapshot());
        let boot = self.boot(Mode::Agent, shares_memory);
        let boot = match snapshot {
            Some(snapshot) => Boot { origin: Origin::Snapshot(snapshot), ..boot },
            None => boot,
        };
        let logs = directory.map_or_else(MachineLogs::unnamed, MachineLogs::in_directory);
        let logs = logs.map_err(|error| StartError { error, command: self.guest.qemu.binary.clone() })?;
        let machine = Machine::start(&boot, logs)?;
        Ok(Launched { machine, shares_memory, directory: directory.map(Utf8Path::to_owned) })
    }

    /// Wait until the guest's agent is ready. A guest that was to be restored, and was not, boots.
    ///
    /// # Errors
    /// When it does not get that far.
    pub(crate) fn open(&self, launched: Launched) -> Result<Session, Box<OpenError>> {
        let Launched { machine, shares_memory, directory } = launched;
        let open =
            |machine| Session::open(machine, &self.kernel.kernel.release, self.guest.cpus, self.boot_timeout);
        let failed = match open(machine) {
            Err(failed) if failed.machine.is_restored() && is_refusal(&failed.error) => failed,
            opened => return opened,
        };
        if let Some(saved) = &self.saved {
            let stderr = failed.machine.stderr().unwrap_or_default();
            saved.refuse(format!("{} {stderr}", failed.error).trim_end());
        }
        match self.launch(shares_memory, directory.as_deref()) {
            Ok(launched) => open(launched.machine),
            // The error that it has already says more than one of a file or a process.
            Err(_) => Err(failed),
        }
    }

    /// How a machine of this guest was started, as its results keep it: the command line, and for a guest that was
    /// restored that which boots it.
    pub(crate) fn command_file(&self, machine: &Machine) -> String {
        let command = machine.command();
        if !machine.is_restored() {
            return format!("{command}\n");
        }
        let boot = self.boot(Mode::Agent, false).command();
        format!("{command}\n# It went on from a snapshot of the guest that this boots:\n{boot}\n")
    }

    /// How the guest is booted.
    pub(super) fn boot(&self, mode: Mode, shares_memory: bool) -> Boot<'_> {
        Boot {
            guest: &self.guest,
            accel: self.accel.accel,
            origin: Origin::Kernel {
                kernel: self.kernel.kernel.image(),
                initramfs: self.rootfs.initramfs.clone(),
            },
            mode,
            shares_memory,
        }
    }
}

/// A guest whose QEMU was started.
pub(crate) struct Launched {
    /// The machine.
    pub(crate) machine: Machine,
    shares_memory: bool,
    directory: Option<Utf8PathBuf>,
}

/// What a golden's conditions can ask of a guest with this kernel under this accelerator.
pub(super) fn facts(guest: &Guest, kernel: &PreparedKernel, accel: &AccelChoice) -> Facts {
    let config = kernel.symbols.iter().filter_map(|symbol| symbol.strip_prefix("CONFIG_"));
    let kvm = (accel.accel == Accel::Kvm).then(|| "kvm".to_owned());
    Facts {
        arch: guest.arch.name.to_owned(),
        kernel: Facts::version_of(&kernel.kernel.release),
        config: config.map(str::to_owned).collect(),
        features: kvm.into_iter().collect(),
    }
}

/// How many times slower a kernel with these symbols may be.
fn slowness(symbols: &BTreeSet<String>) -> u32 {
    if SLOW.iter().any(|symbol| symbols.contains(*symbol)) { 10 } else { 1 }
}

/// The symbols of a `.config` that are on.
fn symbols(config: &str) -> BTreeSet<String> {
    let on = |line: &str| {
        let (symbol, value) = line.split_once('=')?;
        (value != "n").then(|| symbol.to_owned())
    };
    config.lines().filter(|line| !line.starts_with('#')).filter_map(on).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_with_a_slow_detector_may_take_longer() {
        let of = |config: &str| slowness(&symbols(config));
        assert_eq!(of("CONFIG_SMP=y\nCONFIG_UBSAN=y\n# CONFIG_KASAN is not set\n"), 1);
        for detector in SLOW {
            assert_eq!(of(&format!("CONFIG_SMP=y\n{detector}=y\n")), 10);
        }
    }

    #[test]
    fn symbols_that_are_off_are_left_out() {
        let config = "# CONFIG_A is not set\nCONFIG_B=y\nCONFIG_C=m\nCONFIG_D=\"text\"\nCONFIG_E=n\n";
        let names: Vec<String> = symbols(config).into_iter().collect();
        assert_eq!(names, ["CONFIG_B", "CONFIG_C", "CONFIG_D"]);
    }
}
