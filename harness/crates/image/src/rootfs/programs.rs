//! What runs in a guest besides its kernel: busybox and the agent.

use std::fs;
use std::time::Duration;

use xshell::{Shell, cmd};

use crate::debian::apt::Deb;
use crate::error::ImageError;
use crate::progress::ProgressSink;
use crate::store::{BuildDir, Product, Recipe, Store};
use guest::Guest;
use guest::Project;
use vm::process::{self, LoggedCommand, run_logged};

const AGENT_FILES: [&str; 4] = ["agent.c", "agent.h", "init.c", "protocol.h"];
const AGENT_FLAGS: [&str; 8] =
    ["-std=gnu11", "-D_GNU_SOURCE", "-Os", "-static", "-s", "-Wall", "-Wextra", "-Wno-unused-result"];
const LIMIT: Duration = Duration::from_secs(300);

/// The static busybox out of its package, as a product whose only file is `busybox`.
pub(crate) fn busybox(
    store: &Store,
    guest: &Guest,
    deb: &Deb<'_>,
    progress: &dyn ProgressSink,
) -> Result<Product, ImageError> {
    let recipe = Recipe::new("busybox", guest.name.as_str()).with("package", deb.sha256());
    store.product(&recipe, progress, |build_dir| {
        let sh = Shell::new().map_err(|e| ImageError::Other(e.to_string()))?;
        let BuildDir { out, scratch, log, .. } = build_dir;
        let file = deb.file()?;
        run_logged(
            LoggedCommand { command: cmd!(sh, "dpkg-deb -x {file} {scratch}"), log, timeout: LIMIT },
            |_| (),
        )?;
        // Debian's merged /usr: older packages have it in /bin.
        let found =
            ["usr/bin/busybox", "bin/busybox"].map(|p| scratch.join(p)).into_iter().find(|p| p.is_file());
        let found = found.ok_or_else(|| ImageError::Other(format!("{file} holds no busybox")))?;
        fs::copy(&found, out.join("busybox")).map_err(|e| ImageError::file("copy", found, e))?;
        Ok(())
    })
}

/// The agent, compiled for the guest, as a product whose only file is `init`.
pub(crate) fn agent(
    store: &Store,
    project: &Project,
    guest: &Guest,
    progress: &dyn ProgressSink,
) -> Result<Product, ImageError> {
    let sh = Shell::new().map_err(|e| ImageError::Other(e.to_string()))?;
    let gcc = format!("{}gcc", guest.kernel.cross);
    let version = process::read(cmd!(sh, "{gcc} --version")).map_err(|e| {
        ImageError::Other(format!("{e}\nno compiler for guest {}: run `ci/bootstrap`", guest.name))
    })?;
    let mut recipe = Recipe::new("agent", guest.name.as_str())
        .with("compiler", version)
        .with("command", format!("{gcc} {}", AGENT_FLAGS.join(" ")));
    for file in AGENT_FILES {
        let path = project.path("guests/agent").join(file);
        recipe = recipe.with(file, fs::read_to_string(&path).map_err(|e| ImageError::file("read", path, e))?);
    }
    store.product(&recipe, progress, |build_dir| {
        let BuildDir { out, scratch, log, .. } = build_dir;
        // Compile what was hashed, not what the folder may hold by now.
        for file in AGENT_FILES {
            let path = scratch.join(file);
            fs::write(&path, &recipe.inputs[file]).map_err(|e| ImageError::file("write", path, e))?;
        }
        let sources = AGENT_FILES.iter().filter(|f| f.ends_with(".c")).map(|f| scratch.join(f));
        let command = cmd!(sh, "{gcc} {AGENT_FLAGS...} -o {out}/init {sources...}");
        run_logged(LoggedCommand { command, log, timeout: LIMIT }, |_| ())?;
        Ok(())
    })
}
