//! What trials boot: each guest with its image and accelerator, made ready once.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::time::Duration;

use super::plan::Trial;
use crate::agent::Session;
use crate::golden::Facts;
use crate::guest::{Guest, GuestName};
use crate::image::{Builder, GuestImage, ImageError};
use crate::qemu::{Accel, AccelChoice, Boot, Console, Machine, Mode, StartError, Wanted};
use camino::Utf8Path;

/// How long a probe boot under KVM may take; a boot that works takes a fraction of a second.
const PROBE_LIMIT: Duration = Duration::from_secs(10);

/// How long a guest may take from QEMU's start to the agent's greeting. A boot takes about a
/// second; a busy host may need many times that.
const BOOT_LIMIT: Duration = Duration::from_secs(90);

/// A guest that is ready to boot.
#[derive(Debug, Clone)]
pub struct Bench {
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

/// All guests of a run.
#[derive(Debug, Clone, Default)]
pub struct Lab {
    benches: BTreeMap<GuestName, Bench>,
}

impl Lab {
    /// Build or find the image of each guest and choose its accelerator.
    ///
    /// # Errors
    /// When an image cannot be made, or the wanted accelerator cannot be used.
    pub fn prepare(builder: &Builder<'_>, guests: &[&Guest], wanted: Wanted) -> Result<Lab, ImageError> {
        let mut lab = Lab::default();
        for guest in guests {
            let image = builder.image(guest)?;
            let config = image.kernel.config()?;
            let accel =
                AccelChoice::make(guest, wanted, || probe(guest, &image)).map_err(ImageError::Other)?;
            let on = |line: &str| {
                let (symbol, value) = line.split_once('=')?;
                (value != "n").then(|| symbol.to_owned())
            };
            let symbols = config.lines().filter(|line| !line.starts_with('#')).filter_map(on).collect();
            let bench = Bench { guest: (*guest).clone(), image, accel, boot_limit: BOOT_LIMIT, symbols };
            lab.benches.insert(guest.name.clone(), bench);
        }
        Ok(lab)
    }

    /// The bench of a guest.
    ///
    /// # Panics
    /// When the lab was not prepared for it: planning and preparing disagree.
    pub fn bench(&self, guest: &GuestName) -> &Bench {
        self.benches.get(guest).unwrap_or_else(|| panic!("the lab has no guest {guest}"))
    }

    /// The same lab with one guest's bench changed.
    #[must_use]
    pub fn with_changed(mut self, guest: &GuestName, change: impl FnOnce(&mut Bench)) -> Lab {
        self.benches.entry(guest.clone()).and_modify(change);
        self
    }

    /// The perf that runs on the host; `None` when no trial needs one.
    pub fn host_perf(&self) -> Option<&Utf8Path> {
        None
    }

    /// All of them, in the order of their names.
    pub fn benches(&self) -> impl Iterator<Item = &Bench> {
        self.benches.values()
    }

    /// Why a trial cannot be run in this lab; `None` when it can.
    pub fn obstacle(&self, trial: &Trial<'_>) -> Option<String> {
        let bench = self.bench(&trial.guest.name);
        let missing: Vec<&str> =
            trial.case.requires.iter().map(String::as_str).filter(|s| !bench.symbols.contains(*s)).collect();
        if missing.is_empty() {
            return None;
        }
        Some(format!("the kernel of guest {} has no {}", trial.guest.name, missing.join(", ")))
    }
}

impl Bench {
    /// What a golden's conditions can ask of the guest.
    pub fn facts(&self) -> Facts {
        let config = self.symbols.iter().filter_map(|symbol| symbol.strip_prefix("CONFIG_"));
        let kvm = (self.accel.accel == Accel::Kvm).then(|| "kvm".to_owned());
        Facts {
            arch: self.guest.arch.name().to_owned(),
            kernel: Facts::version_of(&self.image.kernel.release),
            config: config.map(str::to_owned).collect(),
            features: kvm.into_iter().collect(),
        }
    }

    /// Start the guest. See [`Machine::start`].
    ///
    /// # Errors
    /// When QEMU cannot be started.
    pub fn start(&self, mode: Mode, logs: &Utf8Path, console: Console) -> Result<Machine, StartError> {
        start(&self.guest, &self.image, self.accel.accel, mode, false, logs, console)
    }

    /// Start the guest for a trial; `shares_memory` as in [`Machine::start`].
    ///
    /// # Errors
    /// When QEMU cannot be started.
    pub fn start_trial(&self, shares_memory: bool, logs: &Utf8Path) -> Result<Machine, StartError> {
        let accel = self.accel.accel;
        start(&self.guest, &self.image, accel, Mode::Agent, shares_memory, logs, Console::Watched)
    }
}

fn start(
    guest: &Guest,
    image: &GuestImage,
    accel: Accel,
    mode: Mode,
    shares_memory: bool,
    logs: &Utf8Path,
    console: Console,
) -> Result<Machine, StartError> {
    let kernel = image.kernel.image();
    // The socket is the machine's own; this one is a placeholder that it replaces.
    let boot = Boot {
        guest,
        accel,
        kernel: &kernel,
        initramfs: &image.initramfs,
        socket: Utf8Path::new(""),
        mode,
        shared: None,
    };
    Machine::start(&boot, shares_memory, logs, console)
}

/// Boot under KVM and see whether the agent answers.
fn probe(guest: &Guest, image: &GuestImage) -> Result<(), String> {
    let logs = tempfile::tempdir().map_err(|e| e.to_string())?;
    let path = Utf8Path::from_path(logs.path()).ok_or("the temporary folder's name is not UTF-8")?;
    let machine = start(guest, image, Accel::Kvm, Mode::Agent, false, path, Console::Watched)
        .map_err(|e| e.error.to_string())?;
    let opened = Session::open(machine, &image.kernel.release, guest.cpus, PROBE_LIMIT);
    opened
        .map(drop)
        .map_err(|failed| format!("{} {}", failed.error, failed.machine.stderr()).trim().to_owned())
}
