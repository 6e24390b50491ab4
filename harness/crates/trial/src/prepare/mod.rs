//! What trials boot: each guest with its image and accelerator, made ready once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use crate::case::Case;
use crate::plan::Trial;
use diagnostic::did_you_mean;
use golden::Facts;
use guest::{Guest, GuestName};
use image::{Builder, GuestImage, ImageError, RootfsSpec, plain_name};
use vm::Session;
use vm::qemu::{Accel, AccelChoice, Boot, Console, Machine, Mode, StartError, WantedAccel};

/// How long a probe boot under KVM may take; a boot that works takes a fraction of a second.
const PROBE_LIMIT: Duration = Duration::from_secs(10);

/// How long a guest may take from QEMU's start to the agent's greeting. A boot takes about a
/// second; a busy host may need many times that.
const BOOT_LIMIT: Duration = Duration::from_secs(90);

/// A guest that is ready to boot.
#[derive(Debug, Clone)]
pub struct PreparedGuest {
    /// The guest.
    pub guest: Guest,
    /// What it boots.
    pub image: GuestImage,
    /// What executes its instructions, and why.
    pub accel: AccelChoice,
    /// How long a boot may take.
    pub boot_limit: Duration,
    /// Config symbols that are `y` or `m` in its kernel.
    symbols: BTreeSet<String>,
}

/// Why a guest was not started.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// What it boots cannot be made.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// QEMU cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// All guests of a run.
#[derive(Debug, Clone, Default)]
pub struct PreparedGuests {
    guests: BTreeMap<GuestName, PreparedGuest>,
    host_perf: Option<Utf8PathBuf>,
}

/// What guests are made ready for, besides booting.
#[derive(Debug, Clone, Copy)]
pub struct Needs<'t> {
    trials: &'t [Trial<'t>],
    rootfs: Option<&'t RootfsSpec>,
    perf_in_guests: bool,
    perf_on_host: bool,
}

impl PreparedGuests {
    /// Build or find the image of each guest and choose its accelerator.
    ///
    /// # Errors
    /// When an image cannot be made, or the wanted accelerator cannot be used.
    pub fn prepare(
        builder: &Arc<Builder>,
        guests: &[&Guest],
        wanted: WantedAccel,
        needs: Needs<'_>,
    ) -> Result<PreparedGuests, ImageError> {
        let mut prepared = PreparedGuests::default();
        for guest in guests {
            let image = GuestImage::new(builder, guest)?;
            let config = image.kernel.config()?;
            let accel =
                AccelChoice::make(guest, wanted, || probe(guest, &image)).map_err(ImageError::Host)?;
            let on = |line: &str| {
                let (symbol, value) = line.split_once('=')?;
                (value != "n").then(|| symbol.to_owned())
            };
            let symbols = config.lines().filter(|line| !line.starts_with('#')).filter_map(on).collect();
            let mut ready =
                PreparedGuest { guest: (*guest).clone(), image, accel, boot_limit: BOOT_LIMIT, symbols };
            for spec in needs.rootfs_specs(&ready) {
                if spec.perf {
                    ready.image.add_perf()?;
                }
                ready.image.rootfs(&spec)?;
            }
            needs.check_modules(&ready)?;
            prepared.guests.insert(guest.name.clone(), ready);
        }
        if needs.host_perf(&prepared) {
            prepared.host_perf = Some(builder.host_perf()?);
        }
        Ok(prepared)
    }

    /// The perf that runs on the host, of the same source as the guests' kernels; `None` when it was
    /// made for nothing.
    pub fn host_perf(&self) -> Option<&Utf8Path> {
        self.host_perf.as_deref()
    }

    /// A guest that is ready to boot.
    ///
    /// # Panics
    /// When the guests were not prepared for it: planning and preparing disagree.
    pub fn guest(&self, guest: &GuestName) -> &PreparedGuest {
        self.guests.get(guest).unwrap_or_else(|| panic!("guest {guest} was not prepared"))
    }

    /// The same guests with one of them changed.
    #[must_use]
    pub fn with_changed(
        mut self,
        guest: &GuestName,
        change: impl FnOnce(&mut PreparedGuest),
    ) -> PreparedGuests {
        self.guests.entry(guest.clone()).and_modify(change);
        self
    }

    /// All of them, in the order of their names.
    pub fn guests(&self) -> impl Iterator<Item = &PreparedGuest> {
        self.guests.values()
    }

    /// Why a trial cannot be run; `None` when it can.
    pub fn obstacle(&self, trial: &Trial<'_>) -> Option<String> {
        let ready = self.guest(&trial.guest.name);
        let missing = ready.missing_symbols(trial.case);
        if !missing.is_empty() {
            return Some(format!("the kernel of guest {} has no {}", trial.guest.name, missing.join(", ")));
        }
        if trial.case.requires.tcg && ready.accel.accel != Accel::Tcg {
            return Some(format!(
                "guest {} runs under {}, and the case requires tcg: run it with `--accel tcg`",
                trial.guest.name,
                ready.accel.accel.name()
            ));
        }
        let perf = ready.image.perf.as_ref().filter(|_| trial.case.requires.perf)?;
        (!perf.features.libtraceevent)
            .then(|| format!("perf of guest {} was built without libtraceevent", trial.guest.name))
    }
}

impl<'t> Needs<'t> {
    /// Nothing.
    pub fn nothing() -> Needs<'static> {
        Needs { trials: &[], rootfs: None, perf_in_guests: false, perf_on_host: false }
    }

    /// perf in all guests.
    pub fn perf() -> Needs<'static> {
        Needs { perf_in_guests: true, ..Needs::nothing() }
    }

    /// What these trials need of their guests, but for those that are skipped for want of something
    /// else; and perf on the host when one of them needs it in its guest.
    pub fn of(trials: &'t [Trial<'t>]) -> Needs<'t> {
        Needs { trials, ..Needs::nothing() }
    }

    /// What these trials need, and perf in all guests and on the host.
    pub fn everything(trials: &'t [Trial<'t>]) -> Needs<'t> {
        Needs { trials, perf_in_guests: true, perf_on_host: true, ..Needs::nothing() }
    }

    /// This rootfs in all guests.
    pub fn rootfs(spec: &'t RootfsSpec) -> Needs<'t> {
        Needs { rootfs: Some(spec), ..Needs::nothing() }
    }

    fn rootfs_specs(self, ready: &PreparedGuest) -> Vec<RootfsSpec> {
        let mut rootfs_specs: Vec<RootfsSpec> =
            self.of_guest(ready).map(|trial| rootfs_spec(trial.case)).collect();
        rootfs_specs.extend(self.rootfs.cloned());
        if self.perf_in_guests {
            rootfs_specs.push(RootfsSpec { perf: true, modules: Vec::new() });
        }
        rootfs_specs
    }

    /// Whether the steps of trials name modules that are there.
    fn check_modules(self, ready: &PreparedGuest) -> Result<(), ImageError> {
        for trial in self.of_guest(ready) {
            let rootfs = ready.image.rootfs(&rootfs_spec(trial.case))?;
            let modules = &rootfs.modules;
            for (step, name) in trial.case.named_modules() {
                if modules.iter().any(|module| module.name == plain_name(name)) {
                    continue;
                }
                let names: Vec<&str> = modules.iter().map(|module| module.name.as_str()).collect();
                let help = did_you_mean(name, names.iter().copied())
                    .unwrap_or_else(|| format!("it has: {}", names.join(", ")));
                return Err(ImageError::InvalidInput(format!(
                    "{}:{}: guest {} has no module `{name}`: {help}",
                    trial.case.file, step.line, ready.guest.name
                )));
            }
        }
        Ok(())
    }

    /// The trials of a guest that its kernel can have.
    fn of_guest<'b>(self, ready: &'b PreparedGuest) -> impl Iterator<Item = &'t Trial<'t>> + use<'b, 't> {
        self.trials.iter().filter(|Trial { case, guest }| {
            guest.name == ready.guest.name && ready.missing_symbols(case).is_empty()
        })
    }

    fn host_perf(self, prepared: &PreparedGuests) -> bool {
        self.perf_on_host
            || (!self.trials.is_empty() && prepared.guests().any(|ready| ready.image.perf.is_some()))
    }
}

/// What a case needs of its guests.
pub fn rootfs_spec(case: &Case) -> RootfsSpec {
    RootfsSpec { perf: case.requires.perf, modules: case.modules.clone() }
}

impl PreparedGuest {
    /// What a golden's conditions can ask of the guest.
    pub fn facts(&self) -> Facts {
        let config = self.symbols.iter().filter_map(|symbol| symbol.strip_prefix("CONFIG_"));
        let kvm = (self.accel.accel == Accel::Kvm).then(|| "kvm".to_owned());
        Facts {
            arch: self.guest.arch.name.to_owned(),
            kernel: Facts::version_of(&self.image.kernel.release),
            config: config.map(str::to_owned).collect(),
            features: kvm.into_iter().collect(),
        }
    }

    /// Start the guest. See [`Machine::start`].
    ///
    /// # Errors
    /// When what it boots cannot be made, or QEMU cannot be started.
    pub fn start(
        &self,
        spec: &RootfsSpec,
        mode: Mode,
        logs: &Utf8Path,
        console: Console,
    ) -> Result<Machine, BootError> {
        self.boot(spec, mode, false, logs, console)
    }

    /// Start the guest for a trial of `case`, whose memory is shared when a log is written in it.
    ///
    /// # Errors
    /// As [`PreparedGuest::start`].
    pub fn start_trial(&self, case: &Case, logs: &Utf8Path) -> Result<Machine, BootError> {
        let shares_memory = case.writes_dispatch_log();
        self.boot(&rootfs_spec(case), Mode::Agent, shares_memory, logs, Console::Watched)
    }

    fn boot(
        &self,
        spec: &RootfsSpec,
        mode: Mode,
        shares_memory: bool,
        logs: &Utf8Path,
        console: Console,
    ) -> Result<Machine, BootError> {
        let rootfs = self.image.rootfs(spec)?;
        let kernel = self.image.kernel.image();
        let boot = boot(&self.guest, self.accel.accel, &kernel, &rootfs.initramfs, mode);
        Ok(Machine::start(&boot, shares_memory, logs, console)?)
    }

    /// The config symbols that the case requires and the kernel does not have.
    fn missing_symbols<'c>(&self, case: &'c Case) -> Vec<&'c str> {
        let required = case.requires.symbols.iter().map(String::as_str);
        required.filter(|symbol| !self.symbols.contains(*symbol)).collect()
    }
}

fn boot<'b>(
    guest: &'b Guest,
    accel: Accel,
    kernel: &'b Utf8Path,
    initramfs: &'b Utf8Path,
    mode: Mode,
) -> Boot<'b> {
    // The socket is the machine's own; this one is a placeholder that it replaces.
    Boot { guest, accel, kernel, initramfs, socket: Utf8Path::new(""), mode, shared: None }
}

/// Boot under KVM and see whether the agent answers.
fn probe(guest: &Guest, image: &GuestImage) -> Result<(), String> {
    let logs = tempfile::tempdir().map_err(|e| e.to_string())?;
    let path = Utf8Path::from_path(logs.path()).ok_or("the temporary folder's name is not UTF-8")?;
    let kernel = image.kernel.image();
    let plain = image.rootfs(&RootfsSpec::default()).map_err(|e| e.to_string())?;
    let boot = boot(guest, Accel::Kvm, &kernel, &plain.initramfs, Mode::Agent);
    let machine = Machine::start(&boot, false, path, Console::Watched).map_err(|e| e.error.to_string())?;
    let opened = Session::open(machine, &image.kernel.release, guest.cpus, PROBE_LIMIT);
    opened.map(drop).map_err(|failed| {
        format!("{} {}", failed.error, failed.machine.stderr().unwrap_or_default()).trim().to_owned()
    })
}
