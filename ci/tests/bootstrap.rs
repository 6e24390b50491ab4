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

    /// Where it unpacks what conflicts with the host's packages.
    fn prefix(&self) -> PathBuf {
        self.dir.path().join("prefix")
    }

    /// A package of QEMU in the current directory of apt-get, whose programs run `script`.
    fn qemu_package(&self, script: &str) {
        let root = self.dir.path().join("package");
        fs::create_dir_all(root.join("usr/bin")).expect("made");
        fs::create_dir_all(root.join("DEBIAN")).expect("made");
        let control = "Package: qemu-system\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.org>\n\
                       Description: none\n";
        fs::write(root.join("DEBIAN/control"), control).expect("written");
        for program in ["qemu-system-ppc64", "qemu-system-x86_64"] {
            self.program(&format!("package/usr/bin/{program}"), script);
        }
        let built = Command::new("dpkg-deb").arg("--build").arg(&root).arg(self.dir.path()).output();
        assert!(built.expect("runs").status.success());
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
        let Output { status, stdout, stderr } = Command::new(script)
            .env("PATH", path)
            .env("GOLDTRACE_PREFIX", self.prefix())
            .output()
            .expect("runs");
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

/// Only QEMU conflicts; what it depends on would be installed, and one package upgraded.
const QEMU_REMOVES: &str = "\
case \" $* \" in
*' --simulate '*' qemu-system-x86 '*)
	echo 'Remv qemu-utils [1:9.0+other1]'
	echo 'Inst libfdt1 (1.6 Debian:12/stable [amd64])'
	echo 'Inst libglib2.0-0 [2.74] (2.75 Debian:12/stable [amd64])'
	echo 'Inst qemu-system-x86 (1:7.2 Debian:12/stable [amd64]) []'
	;;
*' download '*) cp \"${0%/*}\"/*.deb . ;;
esac";

#[test]
fn qemu_in_conflict_is_unpacked_beside_the_packages() {
    let host = Host::new(0, QEMU_REMOVES);
    host.qemu_package("echo QEMU $LD_LIBRARY_PATH $*");
    let (status, text) = host.bootstrap();
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("as packages they conflict with qemu-utils\n"), "{text}");
    let calls = host.calls();
    let install = calls.iter().find(|c| c.contains("install") && !c.contains("--simulate")).expect("one");
    assert!(install.contains("--no-remove") && install.contains(" bc "), "{install}");
    assert!(!install.contains("qemu"), "{install}");
    let downloads = calls.iter().find(|call| call.contains(" download ")).expect("one");
    assert!(downloads.ends_with(" libfdt1=1.6 libglib2.0-0=2.75 qemu-system-x86=1:7.2"), "{downloads}");

    let qemu = host.prefix().join("bin/qemu-system-ppc64");
    let printed = Command::new(qemu).args(["-m", "1 G"]).output().expect("runs").stdout;
    let printed = String::from_utf8(printed).expect("text");
    let libraries = host.prefix().join("lib/goldtrace/qemu/usr/lib/");
    assert!(printed.starts_with(&format!("QEMU {}", libraries.display())), "{printed}");
    assert!(printed.ends_with(" -m 1 G\n"), "{printed}");

    // With the other packages there, nothing is left to do; without that QEMU, there is.
    host.program("dpkg-query", "for p in \"$@\"; do case $p in qemu*) ;; *) echo installed $p ;; esac; done");
    assert_eq!(host.bootstrap(), (0, "ci/bootstrap: nothing to install\n".to_owned()));
    fs::remove_file(host.prefix().join("lib/goldtrace/qemu/usr/bin/qemu-system-ppc64")).expect("removed");
    let (status, text) = host.bootstrap();
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("ci/bootstrap: unpacking QEMU in "), "{text}");
}

#[test]
fn unpacked_qemu_that_does_not_start_is_an_error() {
    let host = Host::new(0, QEMU_REMOVES);
    host.qemu_package("echo libx.so: cannot open shared object file >&2; exit 127");
    for _ in 0..2 {
        let (status, text) = host.bootstrap();
        assert_eq!(status, 1, "{text}");
        assert!(text.contains("libx.so: cannot open shared object file\n"), "{text}");
        assert!(text.contains("lib/goldtrace/qemu does not start\n"), "{text}");
    }
    let left = fs::read_dir(host.prefix().join("lib/goldtrace")).expect("there").count();
    assert_eq!(left, 1, "only the QEMU itself");
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
