//! What runs in a guest besides its kernel: busybox and the agent.

use std::fs;
use std::time::Duration;

use guest::Guest;
use xshell::cmd;

use crate::context::BuildContext;
use crate::error::ImageError;
use crate::store::{BuildDir, Product, Recipe};
use crate::toolchain::{ask, shell};

const AGENT_FILES: [&str; 6] = ["agent.c", "agent.h", "init.c", "protocol.h", "pump.c", "pump.h"];
const AGENT_FLAGS: [&str; 8] =
    ["-std=gnu11", "-D_GNU_SOURCE", "-Os", "-static", "-s", "-Wall", "-Wextra", "-Wno-unused-result"];
const TIMEOUT: Duration = Duration::from_secs(300);

/// The static busybox out of its package, as a product whose only file is `busybox`.
///
/// # Errors
/// When the package cannot be had, or holds no busybox.
pub(crate) fn busybox(context: &BuildContext<'_>, guest: &Guest) -> Result<Product, ImageError> {
    let package = context.busybox(&guest.debian_arch)?;
    let recipe = Recipe::new("busybox", guest.arch.name).with("package", package.sha256());
    context.product(&recipe, |build_dir| {
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

/// The agent, compiled for the guest, as a product whose only file is `init`.
///
/// # Errors
/// A missing compiler, or source that does not compile.
pub(crate) fn agent(context: &BuildContext<'_>, guest: &Guest) -> Result<Product, ImageError> {
    let gcc = format!("{}gcc", guest.kernel.cross);
    let sh = shell()?;
    let version = ask(&gcc, cmd!(sh, "{gcc} --version"))?;
    let mut recipe = Recipe::new("agent", guest.arch.name)
        .with("compiler", version)
        .with("command", format!("{gcc} {}", AGENT_FLAGS.join(" ")));
    for file in AGENT_FILES {
        let path = context.project.path("guests/agent").join(file);
        recipe = recipe.with(file, fs::read_to_string(&path).map_err(|e| ImageError::file("read", path, e))?);
    }
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
