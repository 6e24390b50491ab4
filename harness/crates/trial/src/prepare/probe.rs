//! A probe boot: whether a guest answers under KVM.

use std::time::Duration;

use vm::Session;
use vm::qemu::{Accel, AccelChoice, MachineLogs, Mode};

use super::prepared_guest::PreparedGuest;

/// How long the boot may take; one that works takes a fraction of a second.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Boot the guest under KVM, whatever was chosen for it, and wait for the agent's greeting.
pub(super) fn probe(guest: PreparedGuest) -> Result<(), String> {
    let accel = AccelChoice { accel: Accel::Kvm, why: "a probe boot".to_owned() };
    let guest = PreparedGuest { accel, ..guest };
    let logs = MachineLogs::unnamed().map_err(|error| error.to_string())?;
    let machine = guest.start(Mode::Agent, logs).map_err(|e| e.error.to_string())?;
    match Session::open(machine, &guest.kernel.kernel.release, guest.guest.cpus, PROBE_TIMEOUT) {
        Ok(_) => Ok(()),
        Err(failed) => {
            Err(format!("{} {}", failed.error, failed.machine.stderr().unwrap_or_default()).trim().to_owned())
        }
    }
}
