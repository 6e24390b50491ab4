//! A guest that was booted once and saved when its agent was ready: its trials go on from there.
//!
//! What is saved has run nothing of a case. A guest whose boot shows a splat is not saved: each of its trials boots, and
//! says so of its own boot.

use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use camino::Utf8Path;

use image::{Builder, ImageError, SnapshotInputs};
use vm::qemu::{self, Boot, Machine, MachineLogs, Mode, Origin, Snapshot, StopReason};
use vm::{Request, Session, SessionError, StepEnd, Work};

use super::prepared_guest::PreparedGuest;
use super::saved_guest::SavedGuest;

/// What a guest does before it is saved, so that what each trial does first is in its memory already: the agent forks,
/// and busybox starts and forks.
const WARM_UP: &str = "echo | cat";
/// How long that may take.
const WARM_UP_TIMEOUT: Duration = Duration::from_secs(30);

/// What a guest does when it is restored for the first time: each CPU has to run something, and to wake up again by its
/// timer.
const TRY: &str = "cpu=0; while [ $cpu -lt $(nproc) ]; do taskset $(printf %x $((1 << cpu))) usleep 1000; cpu=$((cpu + 1)); done";
/// How long it may take to get there, and to do that.
const TRY_TIMEOUT: Duration = Duration::from_secs(10);
/// The file of a snapshot that cannot be used. It has no other, and says why.
const UNUSABLE: &str = "unusable";

/// The snapshot of a guest, from the cache or made now.
///
/// # Errors
/// Why its trials have to boot: among others, this QEMU was tried before and does not restore the guest.
pub(super) fn saved_guest(builder: &Arc<Builder>, guest: &PreparedGuest) -> Result<SavedGuest, ImageError> {
    let machine = guest.boot(Mode::Agent, true).machine();
    let qemu = qemu::identity(&guest.guest).map_err(|error| ImageError::Host(error.to_string()))?;
    let inputs = SnapshotInputs {
        guest: guest.guest.name.as_str(),
        kernel: guest.kernel.kernel.product.id(),
        initramfs: &guest.rootfs.id,
        machine: &machine,
        qemu: &qemu,
    };
    let find = || builder.snapshot(&inputs, |directory| save(guest, directory));
    let label = format!("snapshot of guest {}", guest.guest.name);
    let product = find()?;
    if let Ok(why) = fs::read_to_string(product.dir.join(UNUSABLE)) {
        let qemu = &guest.guest.qemu.binary;
        return Err(ImageError::Host(format!("{qemu} saves it and does not restore it: {why}")));
    }
    let (snapshot, product) = match Snapshot::load(&product.dir) {
        Ok(snapshot) => (snapshot, product),
        // It is whole, and was saved when the host was another: its clock ran at another frequency.
        Err(error) => {
            builder.notice(&format!("warning: the {label} is made again: {error}"));
            builder.discard(&product)?;
            let product = find()?;
            let snapshot =
                Snapshot::load(&product.dir).map_err(|error| ImageError::Host(error.to_string()))?;
            (snapshot, product)
        }
    };
    Ok(SavedGuest::new(snapshot, product, builder.clone(), label))
}

/// Boot the guest, let it do what every trial does first, and keep it as it is then.
fn save(guest: &PreparedGuest, directory: &Utf8Path) -> Result<(), ImageError> {
    let fail = |what: String| ImageError::Host(format!("failed to save guest {}: {what}", guest.guest.name));
    let logs = MachineLogs::unnamed()?;
    let boot = guest.boot(Mode::Agent, true);
    let machine = Machine::start(&boot, logs).map_err(|error| fail(error.to_string()))?;
    let release = &guest.kernel.kernel.release;
    let mut session = Session::open(machine, release, guest.guest.cpus, guest.boot_timeout)
        .map_err(|failed| interrupted(&failed.error).unwrap_or_else(|| fail(failed.error.to_string())))?;
    session.machine().wait_for_boot_messages().map_err(|stop| fail(stop.to_string()))?;
    let answer = session.request(&Request {
        work: Work::Run(WARM_UP.to_owned()),
        cwd: "/".to_owned(),
        timeout: WARM_UP_TIMEOUT * guest.kernel.slowness(),
        output_limit: 1 << 16,
    });
    let answer = answer.map_err(|error| interrupted(&error).unwrap_or_else(|| fail(error.to_string())))?;
    if answer.end != StepEnd::Exited(0) {
        return Err(fail(format!("`{WARM_UP}`: {}", answer.end)));
    }
    session.save(directory).map_err(|error| fail(error.to_string()))?;
    match try_it(guest, directory) {
        Ok(()) => Ok(()),
        Err(error) => match interrupted(&error) {
            Some(interrupted) => Err(interrupted),
            None => Ok(replace(directory, &error.to_string())?),
        },
    }
}

/// Restore the guest that was just saved in `directory`, and see whether its CPUs and timers run: not every QEMU restores
/// all that it saves.
fn try_it(guest: &PreparedGuest, directory: &Utf8Path) -> Result<(), SessionError> {
    let failed = |why: String| SessionError::Stopped(StopReason::Port(why));
    let snapshot = Snapshot::load(directory).map_err(|error| failed(error.to_string()))?;
    let boot = Boot { origin: Origin::Snapshot(Arc::new(snapshot)), ..guest.boot(Mode::Agent, false) };
    let logs = MachineLogs::unnamed().map_err(|error| failed(error.to_string()))?;
    let machine = Machine::start(&boot, logs).map_err(|error| failed(error.to_string()))?;
    let (kernel, timeout) = (&guest.kernel, TRY_TIMEOUT * guest.kernel.slowness());
    let opened = Session::open(machine, &kernel.kernel.release, guest.guest.cpus, timeout);
    let mut session = opened.map_err(|failed| failed.error)?;
    let (work, cwd) = (Work::Run(TRY.to_owned()), "/".to_owned());
    let answer = session.request(&Request { work, cwd, timeout, output_limit: 1 << 16 })?;
    match answer.end {
        StepEnd::Exited(0) => Ok(()),
        end => Err(failed(format!("`{TRY}`: {end}"))),
    }
}

/// Keep `why` in place of a snapshot.
fn replace(directory: &Utf8Path, why: &str) -> io::Result<()> {
    fs::remove_dir_all(directory)?;
    fs::create_dir(directory)?;
    fs::write(directory.join(UNUSABLE), why)
}

fn interrupted(error: &SessionError) -> Option<ImageError> {
    matches!(error, SessionError::Stopped(StopReason::Interrupted))
        .then(|| ImageError::Io(std::io::ErrorKind::Interrupted.into()))
}
