//! What QEMU may do on the host: as good as nothing, should a guest take it over.
//!
//! Its own seccomp filter (`-sandbox`, qemu(1)) refuses new processes and programs, other users' rights and changes of
//! priorities. It never gains privileges by running a program (PR_SET_NO_NEW_PRIVS, prctl(2)). Started by root, it runs
//! as nobody, so that of the host's files it can open those that everybody can; setpriv(1) has dropped root's rights
//! before QEMU's first instruction.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{MemfdFlags, memfd_create};

use super::accel::Accel;

/// QEMU's arguments for its filter.
pub(super) const SANDBOX: [&str; 2] =
    ["-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"];

/// The user and group nobody and nogroup of every Debian system.
const NOBODY: u32 = 65534;

/// Who we are on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Host {
    /// We are root, and there is another user to become.
    drops_root: bool,
    /// The group that may use /dev/kvm.
    kvm_group: Option<u32>,
}

impl Host {
    /// Look at this process and at /dev/kvm.
    pub(super) fn look() -> Host {
        let maps_nobody = |map: &str| maps(&fs::read_to_string(map).unwrap_or_default(), NOBODY);
        let drops_root = rustix::process::geteuid().is_root()
            && maps_nobody("/proc/self/uid_map")
            && maps_nobody("/proc/self/gid_map");
        let kvm_group = fs::metadata("/dev/kvm").ok().map(|device| device.gid()).filter(|group| *group != 0);
        Host { drops_root, kvm_group }
    }

    /// The file, or a copy of it in memory where QEMU may not read it: a descriptor is opened again by its path in
    /// /proc, for which the file's mode counts and not that of its directories.
    ///
    /// # Errors
    /// When it cannot be copied.
    pub(super) fn for_qemu(self, mut file: File) -> io::Result<File> {
        const READ_BY_OTHERS: u32 = 0o004;
        if !self.drops_root || file.metadata()?.mode() & READ_BY_OTHERS != 0 {
            return Ok(file);
        }
        let mut copy = File::from(memfd_create("goldtrace-file", MemfdFlags::CLOEXEC)?);
        io::copy(&mut file, &mut copy)?;
        Ok(copy)
    }
}

/// The words before those of QEMU. Under KVM the group of /dev/kvm is kept, as QEMU opens the device itself.
pub(super) fn confinement(host: Host, accel: Accel) -> Vec<String> {
    let mut words = vec!["setpriv".to_owned(), "--no-new-privs".to_owned()];
    if host.drops_root {
        words.extend([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")]);
        words.push(match host.kvm_group.filter(|_| accel == Accel::Kvm) {
            Some(group) => format!("--groups={group}"),
            None => "--clear-groups".to_owned(),
        });
    }
    words
}

/// Whether a user namespace has an id, by its map of ids (user_namespaces(7)): lines of the first id inside, the first
/// outside, and how many.
fn maps(map: &str, id: u32) -> bool {
    map.lines().any(|line| {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [inside, _, count] = numbers[..] else { return false };
        (inside..inside + count).contains(&u64::from(id))
    })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn words(drops_root: bool, kvm_group: Option<u32>, accel: Accel) -> String {
        confinement(Host { drops_root, kvm_group }, accel).join(" ")
    }

    #[test]
    fn root_becomes_nobody_and_keeps_the_group_of_kvm_only_where_it_is_used() {
        let nobody = "setpriv --no-new-privs --reuid=65534 --regid=65534";
        assert_eq!(words(true, Some(104), Accel::Tcg), format!("{nobody} --clear-groups"));
        assert_eq!(words(true, Some(104), Accel::Kvm), format!("{nobody} --groups=104"));
        assert_eq!(words(true, None, Accel::Kvm), format!("{nobody} --clear-groups"));
        assert_eq!(words(false, Some(104), Accel::Kvm), "setpriv --no-new-privs");
    }

    #[test]
    fn file_that_only_root_may_read_is_copied_for_nobody() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("kernel");
        for (mode, drops_root, is_copied) in
            [(0o644, true, false), (0o600, true, true), (0o600, false, false)]
        {
            fs::write(&path, "content").expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
            let file = File::open(&path).expect("there");
            let host = Host { drops_root, kvm_group: None };
            let given = host.for_qemu(file).expect("readable");
            let is_same = given.metadata().expect("there").ino() == fs::metadata(&path).expect("there").ino();
            assert_eq!(!is_same, is_copied);
            let again = fs::read_to_string(format!("/proc/self/fd/{}", given.as_raw_fd()));
            assert_eq!(again.expect("opened again"), "content");
            fs::remove_file(&path).expect("removed");
        }
    }

    #[test]
    fn user_that_the_namespace_does_not_have_is_not_used() {
        assert!(maps("         0          0 4294967295\n", NOBODY));
        assert!(maps("0 1000 1\n1 100000 65536\n", NOBODY));
        for map in ["0 1000 1\n", "0 100000 65534\n", "", "x"] {
            assert!(!maps(map, NOBODY), "{map}");
        }
    }
}
