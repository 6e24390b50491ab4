//! The environment of the commands that make images.
//!
//! A command sees of our own environment what finds programs and temporary files, and nothing else. Variables reach
//! into builds in ways that no key of a product could list: make takes KBUILD_OUTPUT, KCFLAGS, LLVM, LOCALVERSION and
//! MAKEFLAGS out of it, gcc takes CPATH, C_INCLUDE_PATH and GCC_EXEC_PREFIX, ccache whatever begins with CCACHE_, tar
//! TAR_OPTIONS. [`clean`] is called where commands are started, so that no build can forget it.

use std::ffi::{OsStr, OsString};
use std::process::Command;

use xshell::{Cmd, Shell};

/// What every command gets of our environment.
const KEPT: [&str; 3] = ["PATH", "HOME", "TMPDIR"];

/// How the host reaches the network (apt-transport-http(1)): apt gets these too. Programs read the names in lower
/// case, some in upper case.
const PROXIES: [&str; 5] = ["http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"];

/// Whether a command uses the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Network {
    /// It does not.
    Unused,
    /// It does, through the host's proxies.
    ThroughProxies,
}

/// `command` with a clean environment: the variables that it sets itself, those that it may keep of ours, and
/// `LC_ALL=C`. `sh` is a fresh shell that makes it.
pub(crate) fn clean<'s>(command: Cmd<'_>, sh: &'s Shell, network: Network) -> Cmd<'s> {
    let ours = std::env::vars_os().map(|(name, _)| name);
    clean_of(command, sh, network, ours)
}

fn clean_of<'s>(
    command: Cmd<'_>,
    sh: &'s Shell,
    network: Network,
    ours: impl Iterator<Item = OsString>,
) -> Cmd<'s> {
    let command = Command::from(command);
    if let Some(directory) = command.get_current_dir() {
        sh.change_dir(directory);
    }
    let mut clean = sh.cmd(command.get_program()).args(command.get_args()).env("LC_ALL", "C");
    // Removing the rest by name, and not all at once: what starts the command passes on only changes.
    for name in ours.filter(|name| !is_kept(name, network) && name != "LC_ALL") {
        clean = clean.env_remove(name);
    }
    for (name, value) in command.get_envs() {
        clean = match value {
            Some(value) => clean.env(name, value),
            None => clean.env_remove(name),
        };
    }
    clean
}

fn is_kept(name: &OsStr, network: Network) -> bool {
    let is_proxy = || PROXIES.iter().any(|proxy| name.eq_ignore_ascii_case(proxy));
    KEPT.iter().any(|kept| name == *kept) || (network == Network::ThroughProxies && is_proxy())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use xshell::cmd;

    use super::*;

    /// Variables that change what a build makes, each with what reads it.
    const HOSTILE: [&str; 24] = [
        // The kernel's makefiles.
        "KBUILD_OUTPUT",
        "KBUILD_EXTMOD",
        "KBUILD_EXTRA_SYMBOLS",
        "KCFLAGS",
        "KAFLAGS",
        "HOSTCFLAGS",
        "LLVM",
        "LOCALVERSION",
        "ARCH",
        "CROSS_COMPILE",
        // make.
        "MAKEFLAGS",
        "MAKELEVEL",
        "GNUMAKEFLAGS",
        // gcc.
        "CPATH",
        "C_INCLUDE_PATH",
        "COMPILER_PATH",
        "GCC_EXEC_PREFIX",
        "LIBRARY_PATH",
        // ccache.
        "CCACHE_SLOPPINESS",
        "CCACHE_COMPILERCHECK",
        // tar and gzip, the locale's messages.
        "TAR_OPTIONS",
        "GZIP",
        "LANGUAGE",
        "LC_ALL",
    ];

    fn environment(command: Cmd<'_>) -> BTreeSet<(OsString, Option<OsString>)> {
        let owned = |text: &OsStr| text.to_owned();
        Command::from(command).get_envs().map(|(name, value)| (owned(name), value.map(owned))).collect()
    }

    #[test]
    fn hostile_variables_are_removed_and_own_ones_stay() {
        let (sh, fresh) = (Shell::new().expect("a shell"), Shell::new().expect("a shell"));
        let command = cmd!(sh, "make all").env("CCACHE_DIR", "/c").env("ARCH", "x86");
        let ours = HOSTILE.iter().chain(&["PATH", "HOME", "http_proxy"]).map(OsString::from);
        let changes = environment(clean_of(command, &fresh, Network::Unused, ours));
        let change = |name: &str, value: Option<&str>| (name.into(), value.map(OsString::from));
        let mut expected: BTreeSet<_> =
            HOSTILE.iter().chain(&["http_proxy"]).map(|name| change(name, None)).collect();
        for (name, value) in [("ARCH", "x86"), ("LC_ALL", "C")] {
            expected.remove(&change(name, None));
            expected.insert(change(name, Some(value)));
        }
        expected.insert(change("CCACHE_DIR", Some("/c")));
        assert_eq!(changes, expected);
    }

    #[test]
    fn proxies_are_kept_for_the_network() {
        let (sh, fresh) = (Shell::new().expect("a shell"), Shell::new().expect("a shell"));
        let ours = ["https_proxy", "NO_PROXY", "APT_CONFIG"].map(OsString::from).into_iter();
        let changes =
            environment(clean_of(cmd!(sh, "apt-get update"), &fresh, Network::ThroughProxies, ours));
        assert_eq!(
            changes,
            BTreeSet::from([("APT_CONFIG".into(), None), ("LC_ALL".into(), Some("C".into()))])
        );
    }
}
