//! What runs in a guest besides its kernel: busybox and the agent.

use std::fs;
use std::time::Duration;

use guest::Guest;
use xshell::cmd;

use crate::context::BuildContext;
use crate::debian::Package;
use crate::error::ImageError;
use crate::store::{BuildDir, Product, Recipe};
use crate::toolchain;

const AGENT_FILES: [&str; 22] = [
    "agent.c",
    "agent.h",
    "child.c",
    "child.h",
    "file.c",
    "file.h",
    "frame.c",
    "frame.h",
    "init.c",
    "input.c",
    "input.h",
    "protocol.h",
    "pump.c",
    "pump.h",
    "request.c",
    "request.h",
    "resume.c",
    "resume.h",
    "terminal.c",
    "terminal.h",
    "timers.c",
    "timers.h",
];
const AGENT_FLAGS: [&str; 8] =
    ["-std=gnu11", "-D_GNU_SOURCE", "-Os", "-static", "-s", "-Wall", "-Wextra", "-Wno-unused-result"];
const TIMEOUT: Duration = Duration::from_secs(300);

/// The static busybox out of its package, as a product whose only file is `busybox`.
///
/// # Errors
/// When the package cannot be had, or holds no busybox.
pub(crate) fn busybox(context: &BuildContext<'_>, guest: &Guest) -> Result<Product, ImageError> {
    let package = context.busybox(&guest.debian_arch)?;
    context.product(&busybox_recipe(&package, guest), |build_dir| {
        let BuildDir { out, scratch, sh, .. } = build_dir;
        let file = package.file(context.store, context.progress)?;
        build_dir.run(cmd!(sh, "dpkg-deb -x {file} {scratch}"), TIMEOUT)?;
        // Debian's merged /usr: older packages have it in /bin.
        let found =
            ["usr/bin/busybox", "bin/busybox"].map(|p| scratch.join(p)).into_iter().find(|p| p.is_file());
        let found = found.ok_or_else(|| ImageError::Lacks { file, what: "busybox".to_owned() })?;
        fs::copy(&found, out.join("busybox")).map_err(|e| ImageError::file("copy", found, e))?;
        Ok(())
    })
}

fn busybox_recipe(package: &Package<'_>, guest: &Guest) -> Recipe {
    Recipe::new("busybox", guest.arch.name).with("package", package.sha256())
}

/// The agent, compiled for the guest, as a product whose only file is `init`.
///
/// # Errors
/// A missing compiler, or source that does not compile.
pub(crate) fn agent(context: &BuildContext<'_>, guest: &Guest) -> Result<Product, ImageError> {
    let gcc = format!("{}gcc", guest.kernel.cross);
    let recipe = agent_recipe(context, guest)?;
    context.product(&recipe, |build_dir| {
        let BuildDir { out, scratch, sh, .. } = build_dir;
        // Compile what was hashed, not what the directory may hold by now.
        for file in AGENT_FILES {
            let path = scratch.join(file);
            fs::write(&path, &recipe.inputs[file]).map_err(|e| ImageError::file("write", path, e))?;
        }
        let sources = AGENT_FILES.iter().filter(|f| f.ends_with(".c")).map(|f| scratch.join(f));
        build_dir.compile(cmd!(sh, "{gcc} {AGENT_FLAGS...} -o {out}/init {sources...}"), TIMEOUT)
    })
}

fn agent_recipe(context: &BuildContext<'_>, guest: &Guest) -> Result<Recipe, ImageError> {
    let gcc = format!("{}gcc", guest.kernel.cross);
    let mut recipe = Recipe::new("agent", guest.arch.name)
        .with("toolchain", toolchain::identity(&guest.kernel.cross)?)
        .with("command", format!("{gcc} {}", AGENT_FLAGS.join(" ")));
    for file in AGENT_FILES {
        let path = context.project.path("guests/agent").join(file);
        recipe = recipe.with(file, fs::read_to_string(&path).map_err(|e| ImageError::file("read", path, e))?);
    }
    Ok(recipe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::testing::{Fixture, assert_inputs_count};

    #[test]
    fn every_input_of_the_agent_counts() {
        let with = |change: &dyn Fn(&mut Fixture)| {
            let fixture = Fixture::with(change);
            agent_recipe(&fixture.context(), &fixture.guest).expect("a compiler")
        };
        let host = |f: &mut Fixture| f.guest.kernel.cross = String::new();
        let mut changed = vec![("toolchain", with(&host)), ("command", with(&host))];
        changed.extend(AGENT_FILES.map(|file| {
            let edit =
                |f: &mut Fixture| fs::write(f.root.join("guests/agent").join(file), "x").expect("written");
            (file, with(&edit))
        }));
        assert_inputs_count(&with(&|_| ()), &[], &changed);
    }

    #[test]
    fn package_of_busybox_counts() {
        let with = |change: fn(&mut Fixture)| {
            let fixture = Fixture::with(change);
            busybox_recipe(&fixture.context().busybox("ppc64el").expect("there"), &fixture.guest)
        };
        let other = with(|f| f.sources.busybox[1].sha256 = "another".to_owned());
        assert_inputs_count(&with(|_| ()), &[], &[("package", other)]);
        // That for another machine does not.
        let base = with(|_| ());
        assert_eq!(with(|f| f.sources.busybox[0].sha256 = "another".to_owned()).digest(), base.digest());
    }

    #[test]
    fn package_without_busybox_lacks_it() {
        let fixture = Fixture::new();
        let context = fixture.context();
        // A package as dpkg-deb(1) makes it, in the place of the one that would be downloaded.
        let package = context.busybox("ppc64el").expect("there");
        let deb = context.product(&package.recipe(), |build_dir| {
            let root = build_dir.scratch.join("root");
            crate::store::make_dir(&root.join("DEBIAN"))?;
            let control = "Package: busybox-static\nVersion: 7.2\nArchitecture: all\nMaintainer: x <x@x>\nDescription: x\n";
            fs::write(root.join("DEBIAN/control"), control)?;
            let BuildDir { out, sh, .. } = build_dir;
            build_dir.run(cmd!(sh, "dpkg-deb --build {root} {out}/package.deb"), TIMEOUT)
        });
        let file = deb.expect("made").dir.join("package.deb");
        let error = busybox(&context, &fixture.guest).map(drop).expect_err("no busybox");
        assert_eq!(error.kind(), ErrorKind::Host);
        assert_eq!(error.to_string(), format!("`{file}` holds no busybox"));
    }
}
