//! `goldtrace doctor`.

use camino::Utf8Path;
use clap::Args;
use xshell::cmd;

use super::error::CommandError;
use super::options::{Inputs, ProjectOption};
use super::status::Status;
use image::{PROGRAMS, Store, cross_programs};
use trial::case::MissingGolden;
use vm::process;
use vm::qemu::{Accel, AccelChoice, WantedAccel};

/// Print what the host has, what is missing, and which accelerator each guest gets
#[derive(Debug, Args)]
pub(super) struct Doctor {}

impl Doctor {
    #[expect(clippy::unused_self, reason = "every command is run alike")]
    pub(super) fn run(&self, option: &ProjectOption) -> Result<Status, CommandError> {
        let project = option.project()?;
        let inputs = Inputs::load(&project, MissingGolden::IsAnError)?;
        let mut missing = Vec::new();

        print_line!("tools:")?;
        for (tool, package) in PROGRAMS {
            look(tool, package, &mut missing)?;
        }
        for guest in &inputs.guests {
            for (program, package) in cross_programs(&guest.kernel.cross) {
                look(&program, &package, &mut missing)?;
            }
        }

        print_line!("guests:")?;
        let sh = xshell::Shell::new().map_err(|e| CommandError::Guest(e.to_string()))?;
        for guest in &inputs.guests {
            let binary = &guest.qemu.binary;
            look(binary, &guest.qemu.package, &mut missing)?;
            if let Ok(version) = process::read(cmd!(sh, "{binary} --version")) {
                print_line!("  {}: {}", guest.name, version.lines().next().unwrap_or_default())?;
            }
            // A probe boot needs an image, which a look at the host must not build.
            let choice = AccelChoice::make(guest, WantedAccel::Auto, || Ok(()));
            match choice {
                Ok(AccelChoice { accel: Accel::Kvm, .. }) => {
                    print_line!("  {}: kvm, if a probe boot answers when a run begins", guest.name)?;
                }
                Ok(AccelChoice { accel, why }) => {
                    print_line!("  {}: {} ({why})", guest.name, accel.name())?;
                }
                Err(why) => print_line!("  {}: {why}", guest.name)?,
            }
        }

        // The cache is looked at and not made.
        let cache = Store::default_root()?;
        print_line!("cache: {cache}")?;
        let products = cache.join("products");
        print_line!("  {} products, {}", count(&products), free(&cache))?;
        let (snapshots, bytes) = snapshots(&products);
        let mib = bytes >> 20;
        print_line!(
            "  {snapshots} snapshots of guests among them, {mib} MiB; each goes when it was not used for a week"
        )?;
        let trees = count(&cache.join("trees"));
        if trees > 0 {
            print_line!("  {trees} trees that patched kernels were built in, 2 to 3 GB each, four at most")?;
        }
        print_line!("cases: {}", inputs.cases.len())?;

        if missing.is_empty() {
            print_line!("nothing is missing")?;
            return Ok(Status::Success);
        }
        missing.sort();
        missing.dedup();
        print_line!("missing packages: {}\nhelp: `ci/bootstrap` installs them", missing.join(" "))?;
        Ok(Status::Infrastructure)
    }
}

/// Print where a program is; when it is nowhere, its package is missing.
fn look(tool: &str, package: &str, missing: &mut Vec<String>) -> Result<(), CommandError> {
    match which::which(tool) {
        Ok(path) => print_line!("  {tool}: {}", path.display())?,
        Err(_) => {
            print_line!("  {tool}: MISSING (package {package})")?;
            missing.push(package.to_owned());
        }
    }
    Ok(())
}

fn count(dir: &Utf8Path) -> usize {
    dir.read_dir_utf8().map_or(0, Iterator::count)
}

/// How many snapshots of guests there are, and their size in bytes.
fn snapshots(products: &Utf8Path) -> (usize, u64) {
    let directories = products.read_dir_utf8().into_iter().flatten().flatten();
    let of_snapshot = |name: &str| name.starts_with("snapshot-");
    let sizes = directories.filter(|entry| of_snapshot(entry.file_name())).map(|entry| {
        let files = entry.path().read_dir_utf8().into_iter().flatten().flatten();
        files.map(|file| file.metadata().map_or(0, |found| found.len())).sum::<u64>()
    });
    sizes.fold((0, 0), |(count, bytes), size| (count + 1, bytes + size))
}

/// What is free on the file system of a directory, which need not exist yet.
fn free(dir: &Utf8Path) -> String {
    let dir = dir.ancestors().find(|dir| dir.exists()).unwrap_or(Utf8Path::new("."));
    match rustix::fs::statvfs(dir.as_std_path()) {
        Ok(stat) => format!("{:.1} GiB free", (stat.f_bavail * stat.f_frsize) as f64 / f64::from(1 << 30)),
        Err(error) => format!("free space unknown: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bootstrap_installs_the_packages_of_all_tools() {
        let root = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let bootstrap = std::fs::read_to_string(root.join("ci/bootstrap")).expect("readable");
        let guests = guest::load_all(&guest::Project::at(root).expect("a project")).expect("valid guests");
        let mut packages: Vec<String> = PROGRAMS.iter().map(|(_, package)| (*package).to_owned()).collect();
        for guest in &guests {
            packages.push(guest.qemu.package.clone());
            packages.extend(cross_programs(&guest.kernel.cross).into_iter().map(|(_, package)| package));
        }
        // Every Debian system has these.
        packages.retain(|package| !["apt", "dpkg", "tar"].contains(&package.as_str()));
        for package in packages {
            assert!(bootstrap.lines().any(|line| line == package), "ci/bootstrap does not install {package}");
        }
    }
}
