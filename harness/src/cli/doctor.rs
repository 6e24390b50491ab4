//! `goldtrace doctor`.

use camino::Utf8Path;
use clap::Args;
use xshell::cmd;

use super::error::CommandError;
use super::options::{Inputs, ProjectOption};
use super::status::Status;
use image::Store;
use trial::case::MissingGolden;
use vm::process;
use vm::qemu::{Accel, AccelChoice, WantedAccel};

/// Print what the host has, what is missing, and which accelerator each guest gets
#[derive(Debug, Args)]
pub(super) struct Doctor {}

/// Programs that builds need, each with its package.
const TOOLS: [(&str, &str); 13] = [
    ("apt-get", "apt"),
    ("dpkg-deb", "dpkg"),
    ("tar", "tar"),
    ("xz", "xz-utils"),
    ("patch", "patch"),
    ("make", "make"),
    ("gcc", "gcc"),
    ("ccache", "ccache"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("pkg-config", "pkgconf"),
    ("perl", "perl"),
];

impl Doctor {
    #[expect(clippy::unused_self, reason = "every command is run alike")]
    pub(super) fn run(&self, option: &ProjectOption) -> Result<Status, CommandError> {
        let project = option.project()?;
        let inputs = Inputs::load(&project, MissingGolden::IsAnError)?;
        let mut missing = Vec::new();

        anstream::println!("tools:");
        for (tool, package) in TOOLS {
            look(tool, package, &mut missing);
        }
        for guest in &inputs.guests {
            if !guest.kernel.cross.is_empty() {
                let gcc = format!("{}gcc", guest.kernel.cross);
                look(&gcc, &format!("gcc-{}", guest.kernel.cross.trim_end_matches('-')), &mut missing);
            }
        }

        anstream::println!("guests:");
        let sh = xshell::Shell::new().map_err(|e| CommandError::Guest(e.to_string()))?;
        for guest in &inputs.guests {
            let binary = &guest.qemu.binary;
            look(binary, &guest.qemu.package, &mut missing);
            if let Ok(version) = process::read(cmd!(sh, "{binary} --version")) {
                anstream::println!("  {}: {}", guest.name, version.lines().next().unwrap_or_default());
            }
            // A probe boot needs an image, which a look at the host must not build.
            let choice = AccelChoice::make(guest, WantedAccel::Auto, || Ok(()));
            match choice {
                Ok(AccelChoice { accel: Accel::Kvm, .. }) => {
                    anstream::println!("  {}: kvm, if a probe boot answers when a run begins", guest.name);
                }
                Ok(AccelChoice { accel, why }) => {
                    anstream::println!("  {}: {} ({why})", guest.name, accel.name())
                }
                Err(why) => anstream::println!("  {}: {why}", guest.name),
            }
        }

        let store = Store::open_default()?;
        anstream::println!("cache: {}", store.root());
        anstream::println!("  {} products, {}", count(&store.root().join("products")), free(store.root()));
        anstream::println!("cases: {}", inputs.cases.len());

        if missing.is_empty() {
            anstream::println!("nothing is missing");
            return Ok(Status::Success);
        }
        anstream::println!("missing: {}; `ci/bootstrap` installs what goldtrace needs", missing.join(", "));
        Ok(Status::Infrastructure)
    }
}

fn look(tool: &str, package: &str, missing: &mut Vec<String>) {
    match which::which(tool) {
        Ok(path) => anstream::println!("  {tool}: {}", path.display()),
        Err(_) => {
            anstream::println!("  {tool}: MISSING (package {package})");
            missing.push(tool.to_owned());
        }
    }
}

fn count(dir: &Utf8Path) -> usize {
    dir.read_dir_utf8().map_or(0, Iterator::count)
}

fn free(dir: &Utf8Path) -> String {
    match rustix::fs::statvfs(dir.as_std_path()) {
        Ok(stat) => format!("{:.1} GiB free", (stat.f_bavail * stat.f_frsize) as f64 / f64::from(1 << 30)),
        Err(error) => format!("free space unknown: {error}"),
    }
}
