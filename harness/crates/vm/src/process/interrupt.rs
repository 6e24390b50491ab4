//! The user's interrupt: Ctrl-C, SIGTERM and SIGHUP.
//!
//! The first one kills every process group that we started, so that a wait for one of them
//! goes on and finds [`check`] failing; files are then put away by the ordinary way out. A second
//! one ends goldtrace at once.

use std::collections::BTreeSet;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static GROUPS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// The exit status of a command that was interrupted, as shells have it for SIGINT.
pub const EXIT_STATUS: u8 = 130;

/// Watch for interrupts from now on. Call it once, early.
///
/// # Errors
/// When the signal handlers cannot be installed.
pub fn watch() -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::Builder::new().name("interrupt".into()).spawn(move || {
        for _ in signals.forever() {
            if INTERRUPTED.swap(true, Ordering::SeqCst) {
                std::process::exit(i32::from(EXIT_STATUS));
            }
            for leader in GROUPS.lock().expect("no panic while held").iter() {
                if let Some(leader) = Pid::from_raw(*leader) {
                    let _ = kill_process_group(leader, Signal::KILL);
                }
            }
        }
    })?;
    Ok(())
}

/// Whether the user has interrupted.
pub fn happened() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// An error when the user has interrupted.
///
/// # Errors
/// Of kind [`io::ErrorKind::Interrupted`], once an interrupt has come.
pub fn check() -> io::Result<()> {
    if happened() { Err(io::Error::new(io::ErrorKind::Interrupted, "interrupted")) } else { Ok(()) }
}

pub(super) fn register(leader: Pid) {
    GROUPS.lock().expect("no panic while held").insert(leader.as_raw_nonzero().get());
    // An interrupt between the caller's check and here has missed this group.
    if happened() {
        let _ = kill_process_group(leader, Signal::KILL);
    }
}

pub(super) fn forget(leader: Pid) {
    GROUPS.lock().expect("no panic while held").remove(&leader.as_raw_nonzero().get());
}
