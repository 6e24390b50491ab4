//! What trials boot, made when the first trial wants it.
//!
//! [`PreparedGuests`] makes each kernel and root file system once, and chooses each guest's accelerator once, whichever
//! threads ask. A product that cannot be made is an error of the trials that need it, and of no other.
//!
//! This module runs no case, knows no golden and prints nothing.

mod error;
mod once;
mod prepared_guest;
mod probe;
mod save;
mod saved_guest;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use diagnostic::did_you_mean;
use guest::{Guest, GuestName};
use image::{Builder, ImageError, Rootfs, RootfsSpec, plain_name};
use vm::qemu::{Accel, AccelChoice, WantedAccel};

use crate::case::{Action, Case, Step};
use crate::plan::Trial;
pub use error::PrepareError;
use once::Once;
pub(crate) use prepared_guest::Launched;
pub use prepared_guest::{PreparedGuest, PreparedKernel};
use save::saved_guest;
use saved_guest::SavedGuest;

/// All that the trials of a run boot.
pub struct PreparedGuests {
    builder: Arc<Builder>,
    accel: WantedAccel,
    isolation: Isolation,
    /// All guests of the project.
    known: Vec<Guest>,
    guests: Mutex<BTreeMap<GuestName, Arc<Products>>>,
}

/// How a trial gets a guest that no other trial has touched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Isolation {
    /// It is restored from a snapshot, under TCG; elsewhere it boots.
    #[default]
    Snapshot,
    /// It boots.
    Boot,
}

/// What was made for a guest so far.
#[derive(Default)]
struct Products {
    kernel: Once<PreparedKernel>,
    accel: Once<AccelChoice>,
    rootfs: Mutex<BTreeMap<RootfsSpec, Arc<Once<Rootfs>>>>,
    /// `None` where a guest is not saved.
    saved: Mutex<BTreeMap<RootfsSpec, Arc<OnceSaved>>>,
}

type OnceSaved = Once<Option<Arc<SavedGuest>>>;

/// Why a trial has nothing to boot.
#[derive(Debug, Clone)]
pub enum Unprepared {
    /// The guest lacks what the case requires: what.
    Skip(String),
    /// What it boots could not be made.
    Failed(PrepareError),
}

impl From<PrepareError> for Unprepared {
    fn from(error: PrepareError) -> Unprepared {
        Unprepared::Failed(error)
    }
}

impl PreparedGuests {
    /// Guests whose products `builder` makes, none of which is made yet. `guests` are all of the project's.
    pub fn new(
        builder: Builder,
        guests: &[Guest],
        accel: WantedAccel,
        isolation: Isolation,
    ) -> PreparedGuests {
        let (builder, known) = (Arc::new(builder), guests.to_vec());
        PreparedGuests { builder, accel, isolation, known, guests: Mutex::default() }
    }

    /// A guest's kernel.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn kernel(&self, guest: &Guest) -> Result<PreparedKernel, PrepareError> {
        self.products(guest).kernel.get(|| {
            let kernel = self.builder.kernel(guest)?;
            let config = kernel.config()?;
            Ok::<_, ImageError>(PreparedKernel::new(kernel, &config, self.builder.changes()))
        })
    }

    /// A guest with its kernel and this root file system.
    ///
    /// # Errors
    /// When one of them cannot be made, or the wanted accelerator cannot be used.
    pub fn guest(&self, guest: &Guest, spec: &RootfsSpec) -> Result<PreparedGuest, PrepareError> {
        let kernel = self.kernel(guest)?;
        let accel = self.accel(guest)?;
        let rootfs = self.rootfs(guest, spec)?;
        Ok(PreparedGuest::new(guest, kernel, rootfs, accel))
    }

    /// The guest of a trial, with all that its case requires.
    ///
    /// # Errors
    /// Why the trial is skipped, or what could not be made.
    pub fn trial(&self, trial: &Trial<'_>) -> Result<PreparedGuest, Unprepared> {
        let Trial { case, guest, .. } = trial;
        // Nothing is built for a trial that is skipped.
        if let Some(why) = self.kernel(guest)?.obstacle(case, guest) {
            return Err(Unprepared::Skip(why));
        }
        let mut prepared = self.guest(guest, &rootfs_of(case))?;
        check_modules(case, &prepared)?;
        if let Some(step) = case.steps.iter().find(|step| matches!(step.action, Action::Decode { .. })) {
            prepared.decoder = Some(Arc::new(self.decoder(trial, step)?));
        }
        match prepared.obstacle(case) {
            Some(why) => Err(Unprepared::Skip(why)),
            None if case.boots() => Ok(self.with_snapshot(prepared, &rootfs_of(case))?),
            None => Ok(prepared),
        }
    }

    /// The guest with what its trials go on from. A guest that cannot be saved boots for each of them, with a
    /// warning.
    ///
    /// # Errors
    /// When the user interrupts.
    pub fn with_snapshot(
        &self,
        guest: PreparedGuest,
        spec: &RootfsSpec,
    ) -> Result<PreparedGuest, PrepareError> {
        // KVM's state of a machine is only good for the same processor and kernel of the host, and a boot takes little.
        if self.isolation == Isolation::Boot || guest.accel.accel != Accel::Tcg {
            return Ok(guest);
        }
        let once = {
            let products = self.products(&guest.guest);
            let mut all = products.saved.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(spec.clone()).or_default().clone()
        };
        let saved = once.get(|| match saved_guest(&self.builder, &guest) {
            Ok(saved) => Ok(Some(Arc::new(saved))),
            Err(error) if error.is_interrupt() => Err(error),
            Err(error) => {
                let name = &guest.guest.name;
                self.builder.notice(&format!("warning: each trial of guest {name} boots: {error}"));
                Ok(None)
            }
        })?;
        Ok(PreparedGuest { saved, ..guest })
    }

    /// Make what these trials boot now. Returns the trials that have nothing to boot, each with the error of its
    /// product. Ends early when the user interrupts.
    pub fn prepare_all<'t, 'p>(&self, trials: &'t [Trial<'p>]) -> Vec<(&'t Trial<'p>, PrepareError)> {
        let mut failed = Vec::new();
        for trial in trials {
            if let Err(Unprepared::Failed(error)) = self.trial(trial) {
                let interrupted = error.is_interrupt();
                failed.push((trial, error));
                if interrupted {
                    break;
                }
            }
        }
        failed
    }

    /// Whether each of the user's patches changes something of what was made until now.
    ///
    /// # Errors
    /// When one does not.
    pub fn check_patches(&self) -> Result<(), ImageError> {
        self.builder.check_patches()
    }

    /// The guest that decodes what the guest of a trial records.
    fn decoder(&self, trial: &Trial<'_>, step: &Step) -> Result<PreparedGuest, PrepareError> {
        let Trial { case, guest, .. } = trial;
        let named = guest.decoder.as_ref();
        let decoder = self.known.iter().find(|known| Some(&known.name) == named);
        let decoder = decoder.ok_or_else(|| PrepareError::NoDecoder {
            file: case.file.clone(),
            line: step.line,
            guest: guest.name.clone(),
        })?;
        let spec = RootfsSpec { perf: true, modules: Vec::new() };
        self.with_snapshot(self.guest(decoder, &spec)?, &spec)
    }

    /// What executes a guest's instructions. Where that is not certain, the guest is booted to see.
    ///
    /// # Errors
    /// When the wanted accelerator cannot be used.
    pub fn accel(&self, guest: &Guest) -> Result<AccelChoice, PrepareError> {
        self.products(guest).accel.get(|| {
            let plain = || -> Result<PreparedGuest, PrepareError> {
                let accel = AccelChoice { accel: Accel::Tcg, why: String::new() };
                let kernel = self.kernel(guest)?;
                let rootfs = self.rootfs(guest, &RootfsSpec::default())?;
                Ok(PreparedGuest::new(guest, kernel, rootfs, accel))
            };
            let probe = || probe::probe(plain().map_err(|error| error.to_string())?);
            AccelChoice::make(guest, self.accel, probe).map_err(PrepareError::Accelerator)
        })
    }

    fn rootfs(&self, guest: &Guest, spec: &RootfsSpec) -> Result<Rootfs, PrepareError> {
        let kernel = self.kernel(guest)?.kernel;
        let products = self.products(guest);
        let rootfs = {
            let mut all = products.rootfs.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(spec.clone()).or_default().clone()
        };
        rootfs.get(|| self.builder.rootfs(guest, &kernel, spec))
    }

    fn products(&self, guest: &Guest) -> Arc<Products> {
        let mut guests = self.guests.lock().unwrap_or_else(PoisonError::into_inner);
        guests.entry(guest.name.clone()).or_default().clone()
    }
}

/// What a case needs in its guest.
pub fn rootfs_of(case: &Case) -> RootfsSpec {
    RootfsSpec { perf: case.requires.perf, modules: case.modules.clone() }
}

/// Check that the modules that steps name are in the guest.
fn check_modules(case: &Case, prepared: &PreparedGuest) -> Result<(), PrepareError> {
    let names = || prepared.rootfs.modules.iter().map(|module| module.name.as_str());
    for (step, module) in case.named_modules() {
        if names().any(|name| name == plain_name(module)) {
            continue;
        }
        let help = did_you_mean(module, names())
            .unwrap_or_else(|| format!("it has: {}", names().collect::<Vec<_>>().join(", ")));
        return Err(PrepareError::UnknownModule {
            file: case.file.clone(),
            line: step.line,
            guest: prepared.guest.name.clone(),
            module: module.to_owned(),
            help,
        });
    }
    Ok(())
}
