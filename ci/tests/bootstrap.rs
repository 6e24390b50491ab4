//! `ci/bootstrap` on a pretended Debian system: what it asks apt-get for, and what it prints when apt-get would do more.
//!
//! The programs that it calls are scripts that write down their arguments, so nothing of this machine is changed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory of pretended programs.
struct Host {
    dir: tempfile::TempDir,
}

impl Host {
    /// A host without any of the packages, whose user has this id. `apt_get` is a shell script.
    fn new(uid: u32, apt_get: &str) -> Host {
        let host = Host { dir: tempfile::tempdir().expect("a directory") };
        host.program("id", &format!("echo {uid}"));
        host.program("dpkg-query", "exit 1");
        host.program("cargo", "exit 0");
        host.program("apt-get", &format!("echo \"$*\" >>{}\n{apt_get}", host.calls_file().display()));
        host
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.dir.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    }

    fn calls_file(&self) -> PathBuf {
        self.dir.path().join("calls")
    }

    /// The command lines of apt-get.
    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.calls_file()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn bootstrap(&self) -> (i32, String) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("bootstrap");
        let path = format!("{}:/usr/bin:/bin", self.dir.path().display());
        let Output { status, stdout, stderr } =
            Command::new(script).env("PATH", path).output().expect("runs");
        let text = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        (status.code().expect("a status"), text)
    }
}

/// What apt-get(8) prints of a simulation that removes packages, and its refusal under --no-remove.
const REMOVES: &str = "\
case \" $* \" in
*' --simulate '*)
	echo 'Remv qemu-utils [1:9.0+other1]'
	echo 'Remv qemu-block-extra [1:9.0+other1] []'
	echo 'Inst qemu-system-x86 (1:7.2 Debian:12/stable [amd64])'
	;;
*' --no-remove '*) echo 'E: Packages need to be removed but remove is disabled.' >&2; exit 100 ;;
esac";

#[test]
fn missing_packages_are_installed_and_none_is_removed() {
    let host = Host::new(0, "");
    let (status, text) = host.bootstrap();
    assert_eq!(status, 0, "{text}");
    let calls = host.calls();
    let installs: Vec<&String> = calls.iter().filter(|call| call.contains("install")).collect();
    assert!(!installs.is_empty(), "{calls:?}");
    for install in installs {
        assert!(install.contains("--simulate") || install.contains("--no-remove"), "{install}");
        assert!(install.contains(" qemu-system-x86"), "{install}");
    }
}

#[test]
fn packages_in_conflict_are_named_and_nothing_is_installed() {
    let host = Host::new(0, REMOVES);
    let (status, text) = host.bootstrap();
    assert_eq!(status, 1, "{text}");
    let conflict = "these installed packages conflict with them: qemu-utils qemu-block-extra\n";
    assert!(text.contains(conflict), "{text}");
    assert!(text.contains("help: "), "{text}");
    let calls = host.calls();
    assert!(calls.iter().all(|call| !call.contains("install") || call.contains("--simulate")), "{calls:?}");
}

#[test]
fn what_apt_cannot_install_is_shown_in_its_own_words() {
    let host =
        Host::new(0, "case \" $* \" in *' install '*) echo 'E: Unmet dependencies: x' >&2; exit 100;; esac");
    let (status, text) = host.bootstrap();
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("E: Unmet dependencies: x"), "{text}");
    assert!(text.contains("ci/bootstrap: apt-get cannot install"), "{text}");
}

#[test]
fn user_without_rights_gets_a_command_that_removes_nothing() {
    let host = Host::new(1000, "");
    let (status, text) = host.bootstrap();
    assert_eq!(status, 1, "{text}");
    let command = "sudo apt-get install --no-install-recommends --no-remove bc ";
    assert!(text.contains(command), "{text}");
    assert_eq!(host.calls(), [""; 0]);
}
