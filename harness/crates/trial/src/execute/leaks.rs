//! Memory that nothing points to any more: a kernel with kmemleak looks for it when it is asked to.

use std::time::Duration;

use vm::{Request, Session, StepEnd, Work};

use super::abort::{Abort, HarnessError};
use super::problem::excerpt;

/// The symbol of a kernel that can look (lib/Kconfig.debug).
pub(super) const SYMBOL: &str = "CONFIG_DEBUG_KMEMLEAK";

/// The kernel reports an object that is five seconds old (`MSECS_MIN_AGE`, mm/kmemleak.c:111, Linux 7.2.12) and has not
/// changed since the scan before (`update_checksum`); with `verbose`, on the console and at warning level.
const SCRIPT: &str = "\
echo 1 > /sys/module/kmemleak/parameters/verbose
sleep 6
echo scan > /sys/kernel/debug/kmemleak
echo scan > /sys/kernel/debug/kmemleak
";

/// A scan reads all memory; it takes a second or two under TCG, more with other detectors.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Let the kernel look for leaked memory. What it finds is on the console, a splat for each call trace.
///
/// # Errors
/// When it does not look, as when kmemleak has turned itself off, or when the guest is lost.
pub(super) fn look_for_leaks(session: &mut Session) -> Result<(), Abort> {
    let request = Request {
        work: Work::Run(SCRIPT.to_owned()),
        cwd: "/".to_owned(),
        timeout: TIMEOUT,
        output_limit: 1 << 16,
    };
    let answer = session.request(&request)?;
    match answer.end {
        StepEnd::Exited(0) => Ok(()),
        end => Err(HarnessError::Leaks { end, stderr: excerpt(&answer.stderr) }.into()),
    }
}
