//! apt on one suite of a mirror, with a source list and a state of its own.
//!
//! Packages of another suite or architecture than the host's are read without touching the host's apt. Of the host's
//! configuration only [`Transport`](super::transport) counts: whether an index must be signed is not the host's
//! choice, and its hooks do not run. One process at a time uses the state of a suite; a download that
//! is interrupted is kept, and the next one goes on where it ended.

use std::fs::{self, File};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use vm::process::{self, LoggedCommand, LoggedError, run_logged};
use xshell::{Cmd, Shell, cmd};

use super::candidate::Candidate;
use super::mirror::Mirror;
use crate::digest::file_digest;
use crate::environment::{Network, clean};
use crate::error::ImageError;
use crate::progress::ProgressSink;
use crate::store::{Store, make_dir, remove_older, write_whole};
use crate::toolchain::{require, shell};

/// What downloads one file, resumes it and checks its digest. It is part of Debian's package apt.
const HELPER: &str = "/usr/lib/apt/apt-helper";
/// apt itself gives up on a mirror that sends nothing (Acquire::http::Timeout); these stop what would never end.
const INDEX_TIMEOUT: Duration = Duration::from_secs(30 * 60);
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(12 * 3600);
/// On each command line of apt, where no file's settings come after them (apt.conf(5)): an index must be signed, and a
/// package must be in a signed index.
const SIGNED: [&str; 4] = [
    "-oAcquire::AllowInsecureRepositories=false",
    "-oAcquire::AllowWeakRepositories=false",
    "-oAcquire::AllowDowngradeToInsecureRepositories=false",
    "-oAPT::Get::AllowUnauthenticated=false",
];
/// How long the part of a download is kept for its continuation.
const PARTIAL_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
/// The label under which the progress of reading an index is shown.
pub(super) const INDEX_LABEL: &str = "package versions";

/// apt on one suite, locked against other users of its state.
pub(super) struct Apt<'a> {
    suite: String,
    dir: Utf8PathBuf,
    config: Utf8PathBuf,
    log: Utf8PathBuf,
    progress: &'a dyn ProgressSink,
    sh: Shell,
    _lock: File,
}

impl<'a> Apt<'a> {
    /// A private apt for `suite` of a mirror, with the packages of `archs`.
    ///
    /// # Errors
    /// When the state cannot be written, or another process keeps it too long.
    pub(super) fn open(
        store: &Store,
        mirror: &Mirror,
        suite: &str,
        archs: &[String],
        progress: &'a dyn ProgressSink,
    ) -> Result<Apt<'a>, ImageError> {
        require("apt-get")?;
        let lock = store.lock(&format!("apt-{suite}"), &format!("with the packages of {suite}"), progress)?;
        let dir = store.root().join("apt").join(suite);
        for sub in ["state/lists/partial", "cache/archives/partial", "etc", "partial"] {
            make_dir(&dir.join(sub))?;
        }
        remove_older(&dir.join("partial"), PARTIAL_MAX)?;
        let log = store.root().join("logs").join(format!("apt-{suite}.log"));
        let _ = fs::remove_file(&log);
        let (config, list) = (dir.join("etc/apt.conf"), dir.join("etc/sources.list"));
        let Mirror { uri, trust, .. } = mirror;
        let options = format!("arch={} target=Packages {trust}", archs.join(","));
        write_whole(&list, &format!("deb [{options}] {uri} {suite} main\n"))?;
        write_whole(&config, &configuration(&dir, archs, mirror))?;
        if mirror.transport.takes_expired_index {
            progress.notice(
                "warning: the host's apt takes an index that has expired (Acquire::Check-Valid-Until or \
                 Acquire::Check-Date is false): package versions may be old",
            );
        }
        Ok(Apt { suite: suite.to_owned(), dir, config, log, progress, sh: shell()?, _lock: lock })
    }

    /// Fetch the suite's signed index.
    ///
    /// # Errors
    /// [`ImageError::Index`] with what apt prints.
    pub(super) fn update(&self) -> Result<(), ImageError> {
        self.progress.line(INDEX_LABEL, &format!("reading the index of {}", self.suite));
        self.run(cmd!(self.sh, "apt-get {SIGNED...} update --error-on=any -q"), INDEX_TIMEOUT, |_| ())
            .map_err(|error| {
                or_interrupt(error, |reason| ImageError::Index { suite: self.suite.clone(), reason })
            })
    }

    /// The package's newest version in the suite.
    ///
    /// # Errors
    /// When the suite has no such package.
    pub(super) fn candidate(&self, package: &str, arch: &str) -> Result<Candidate, ImageError> {
        let mut found = self.candidates(&[(package, arch)])?;
        Ok(found.pop().expect("one for each that was asked for"))
    }

    /// The newest version in the suite of each package, given with its architecture. All are looked
    /// up at once: each start of apt reads the whole index.
    ///
    /// # Errors
    /// Every package that the suite does not have.
    pub(super) fn candidates(&self, wanted: &[(&str, &str)]) -> Result<Vec<Candidate>, ImageError> {
        let names = wanted.iter().map(|(package, arch)| format!("{package}:{arch}"));
        let command = cmd!(self.sh, "apt-cache {SIGNED...} show --no-all-versions {names...}");
        let shown = match self.read(command) {
            // It fails when it knows none of them, and not when it knows some.
            Err(error) if error.to_string().contains("No packages found") => String::new(),
            other => other?,
        };
        let found = wanted.iter().map(|(package, arch)| Candidate::in_stanzas(&shown, package, arch));
        let found: Vec<Option<Candidate>> = found.collect();
        let missing = wanted.iter().zip(&found).filter(|(_, candidate)| candidate.is_none());
        let missing: Vec<String> = missing.map(|((package, arch), _)| format!("{package}:{arch}")).collect();
        if !missing.is_empty() {
            return Err(ImageError::UnknownPackage { suite: self.suite.clone(), packages: missing });
        }
        Ok(found.into_iter().flatten().collect())
    }

    /// Download exactly `candidate` to `file`, or the part of it that an interrupted download has left.
    ///
    /// # Errors
    /// When the mirror no longer has that version, or the file is not the one in the index.
    pub(super) fn download(
        &self,
        candidate: &Candidate,
        file: &Utf8Path,
        label: &str,
    ) -> Result<(), ImageError> {
        let Candidate { package, arch, version, sha256, .. } = candidate;
        let failed = |reason: String| ImageError::Download {
            package: format!("{package}:{arch}"),
            version: version.clone(),
            reason,
        };
        let uris = cmd!(self.sh, "apt-get {SIGNED...} download --print-uris -q {package}:{arch}={version}");
        let uris = self.read(uris).map_err(|error| or_interrupt(error.into(), failed))?;
        // 'URI' NAME SIZE DIGEST
        let uri = uris.lines().find_map(|line| line.strip_prefix('\'')?.split_once('\'').map(|(uri, _)| uri));
        let uri = uri.ok_or_else(|| failed("apt-get prints no address for it".to_owned()))?;

        let partial = self.dir.join("partial").join(format!("{package}_{arch}_{sha256}.deb"));
        let command = cmd!(
            self.sh,
            "{HELPER} {SIGNED...} -q -o APT::Status-Fd=1 download-file {uri} {partial} SHA256:{sha256}"
        );
        self.progress.line(label, &format!("downloading {package} {version}"));
        self.run(command, DOWNLOAD_TIMEOUT, |line| {
            if let Some(percent) = percent(line) {
                self.progress.line(label, &format!("downloading {package} {version}: {percent} %"));
            }
        })
        .map_err(|error| or_interrupt(error, failed))?;
        let digest = file_digest(&partial).map_err(|e| ImageError::file("read", &partial, e))?;
        if digest.as_str() != sha256 {
            let _ = fs::remove_file(&partial);
            return Err(failed(format!(
                "its SHA-256 is {}, and the suite's index has {sha256}",
                digest.as_str()
            )));
        }
        // For a mirror on this host apt leaves a link to the mirror's own file.
        fs::copy(&partial, file).map_err(|e| ImageError::file("copy", &partial, e))?;
        fs::remove_file(&partial).map_err(|e| ImageError::file("remove", &partial, e))
    }

    /// What apt prints of what it knows.
    fn read(&self, command: Cmd<'_>) -> std::io::Result<String> {
        let sh = Shell::new().map_err(std::io::Error::other)?;
        process::read(clean(command.env("APT_CONFIG", &self.config), &sh, Network::Unused))
    }

    fn run(&self, command: Cmd<'_>, timeout: Duration, on_line: impl FnMut(&str)) -> Result<(), ImageError> {
        let sh = shell()?;
        let command = clean(command.env("APT_CONFIG", &self.config), &sh, Network::ThroughProxies);
        Ok(run_logged(LoggedCommand { command, log: &self.log, timeout }, on_line)?)
    }
}

/// The error that says what apt printed, unless the user has interrupted.
fn or_interrupt(error: ImageError, with: impl FnOnce(String) -> ImageError) -> ImageError {
    if error.is_interrupt() {
        return error;
    }
    match &error {
        ImageError::Command(LoggedError::Failed { tail, .. }) => with(errors_of(tail)),
        other => with(other.to_string()),
    }
}

/// The errors among the lines that apt has printed; all lines when none is marked.
fn errors_of(printed: &str) -> String {
    let lines = || printed.lines().map(str::trim).filter(|line| !line.starts_with("dlstatus:"));
    let errors: Vec<&str> = lines().filter(|l| l.starts_with("E: ") || l.starts_with("W: ")).collect();
    if errors.is_empty() { lines().collect::<Vec<_>>().join("\n") } else { errors.join("\n") }
}

/// The whole per cent of `dlstatus:1:45.3333:Retrieving file 1 of 1`.
fn percent(line: &str) -> Option<u32> {
    line.strip_prefix("dlstatus:")?.split(':').nth(1)?.split('.').next()?.parse().ok()
}

/// apt's configuration: nothing of the host's sources, state, pins and settings but how it reaches the mirror. This
/// file is read before those that `Dir::Etc` names (apt.conf(5)), so it can leave them out.
fn configuration(dir: &Utf8Path, archs: &[String], mirror: &Mirror) -> String {
    let Mirror { retries, transport, .. } = mirror;
    let archs = archs.iter().map(|arch| format!("\"{arch}\";")).collect::<String>();
    // apt drops to a user that cannot write below root's own cache, and warns of it.
    let user = if rustix::process::geteuid().is_root() { "root" } else { "" };
    format!(
        "{}\
         Dir::Etc::Main \"/dev/null\";\n\
         Dir::Etc::Parts \"/dev/null\";\n\
         Dir::Etc::Preferences \"/dev/null\";\n\
         Dir::Etc::PreferencesParts \"/dev/null\";\n\
         #clear APT::Architectures;\n\
         APT::Architectures {{ {archs} }};\n\
         Dir::Etc::SourceList \"{dir}/etc/sources.list\";\n\
         Dir::Etc::SourceParts \"/dev/null\";\n\
         Dir::State \"{dir}/state\";\n\
         Dir::State::Lists \"{dir}/state/lists\";\n\
         Dir::State::status \"/dev/null\";\n\
         Dir::Cache \"{dir}/cache\";\n\
         Acquire::Languages \"none\";\n\
         Acquire::Retries \"{retries}\";\n\
         Acquire::http::Proxy::127.0.0.1 \"DIRECT\";\n\
         APT::Sandbox::User \"{user}\";\n",
        transport.settings
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Answer, Heard, Repository};
    use super::*;
    use crate::error::ErrorKind;

    const PACKAGES: [(&str, &str, &str); 2] = [("linux", "7.2.13-1", ""), ("busy", "1", "")];

    fn apt<'h>(repository: &Repository, heard: &'h Heard) -> Apt<'h> {
        let archs = ["amd64".to_owned()];
        Apt::open(&repository.store, &repository.mirror, "test", &archs, heard).expect("opens")
    }

    #[test]
    fn interrupted_download_goes_on_where_it_ended() {
        let (repository, heard) = (Repository::serve(&PACKAGES), Heard::default());
        let apt = apt(&repository, &heard);
        apt.update().expect("an index");
        let candidate = apt.candidate("linux", "amd64").expect("there");
        let file = repository.file("linux.deb");
        repository.answer(&[Answer::Cut(2000)]);
        let error = apt.download(&candidate, &file, "package").expect_err("cut");
        assert_eq!(error.kind(), ErrorKind::Download);
        let text = error.to_string();
        assert!(text.starts_with("failed to download linux:amd64 7.2.13-1: "), "{text}");
        assert!(text.contains("help: run the command again, and what has arrived is kept"), "{text}");
        assert!(!file.exists());

        repository.answer(&[]);
        apt.download(&candidate, &file, "package").expect("downloaded");
        assert_eq!(file_digest(&file).expect("readable").as_str(), candidate.sha256);
        let requests = repository.requests("linux.deb");
        assert_eq!(requests.last().map(String::as_str), Some("pool/linux.deb from 2000"), "{requests:?}");
        assert!(heard.text().contains("downloading linux 7.2.13-1: 100 %"), "{}", heard.text());
    }

    #[test]
    fn old_part_of_a_download_is_removed_and_a_new_one_is_kept() {
        let (repository, heard) = (Repository::serve(&PACKAGES), Heard::default());
        drop(apt(&repository, &heard));
        let partial = repository.store.root().join("apt/test/partial");
        for (name, days) in [("old", 31), ("new", 29)] {
            let file = File::create(partial.join(name)).expect("created");
            let time = std::time::SystemTime::now() - Duration::from_secs(days * 24 * 3600);
            file.set_modified(time).expect("set");
        }
        drop(apt(&repository, &heard));
        assert!(!partial.join("old").exists() && partial.join("new").exists());
    }

    #[test]
    fn file_with_another_digest_is_refused() {
        let (repository, heard) = (Repository::serve(&PACKAGES), Heard::default());
        let apt = apt(&repository, &heard);
        apt.update().expect("an index");
        let candidate = apt.candidate("busy", "amd64").expect("there");
        repository.answer(&[Answer::Wrong; 8]);
        let file = repository.file("busy.deb");
        let text = apt.download(&candidate, &file, "package").expect_err("wrong").to_string();
        assert!(text.contains("Hash Sum mismatch"), "{text}");
        assert!(!file.exists());
    }

    #[test]
    fn every_unknown_package_is_named() {
        let (repository, heard) = (Repository::serve(&PACKAGES), Heard::default());
        let apt = apt(&repository, &heard);
        apt.update().expect("an index");
        let error =
            apt.candidates(&[("a", "amd64"), ("busy", "amd64"), ("b", "amd64")]).expect_err("unknown");
        assert_eq!(
            error.to_string(),
            "Debian test has no usable package a:amd64, b:amd64 (named in images/sources.yaml)"
        );
    }

    #[test]
    fn unreachable_mirror_is_an_index_error_with_its_suite() {
        let (repository, heard) = (Repository::serve(&[]), Heard::default());
        let mirror = Mirror { uri: "http://127.0.0.1:9/".to_owned(), ..repository.mirror.clone() };
        let apt =
            Apt::open(&repository.store, &mirror, "test", &["amd64".to_owned()], &heard).expect("opens");
        let text = apt.update().expect_err("no mirror").to_string();
        assert!(text.starts_with("failed to read the package index of Debian test: E: "), "{text}");
        assert!(text.contains("help: check the network"), "{text}");
    }

    /// Settings of a careless host, and a hook.
    fn careless(file: &Utf8Path) -> String {
        format!(
            "Acquire::AllowInsecureRepositories \"true\";\nAcquire::AllowWeakRepositories \"true\";\n\
             Acquire::AllowDowngradeToInsecureRepositories \"true\";\nAPT::Get::AllowUnauthenticated \"true\";\n\
             APT::Update::Pre-Invoke {{ \"touch {file}\"; }};\n"
        )
    }

    fn unsigned() -> Repository {
        let mut repository = Repository::serve(&PACKAGES);
        repository.mirror.trust = "signed-by=/usr/share/keyrings/debian-archive-keyring.gpg".to_owned();
        repository
    }

    #[test]
    fn unsigned_index_is_refused_whatever_the_files_of_apt_allow() {
        let (repository, heard) = (unsigned(), Heard::default());
        let apt = apt(&repository, &heard);
        let parts = repository.file("apt.conf.d");
        make_dir(&parts).expect("made");
        fs::write(parts.join("99careless"), careless(&repository.file("hook"))).expect("written");
        // As if the file could not keep apt from reading the host's.
        let text = fs::read_to_string(&apt.config).expect("readable");
        fs::write(&apt.config, text + &format!("Dir::Etc::Parts \"{parts}\";\n")).expect("written");
        let text = apt.update().expect_err("unsigned").to_string();
        assert!(text.contains("is not signed"), "{text}");
        // Its packages are not known either, so none can be downloaded.
        let error = apt.candidate("busy", "amd64").expect_err("unknown");
        assert!(matches!(error, ImageError::UnknownPackage { .. }), "{error}");
    }

    #[test]
    fn files_of_the_hosts_apt_are_not_read() {
        let (repository, heard) = (Repository::serve(&PACKAGES), Heard::default());
        let apt = apt(&repository, &heard);
        let sh = shell().expect("a shell");
        let settings =
            process::read(cmd!(sh, "apt-config dump").env("APT_CONFIG", &apt.config)).expect("read");
        let value = |name: &str| {
            let line = settings.lines().rev().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.unwrap_or_default().to_owned()
        };
        for name in ["Main", "Parts", "Preferences", "PreferencesParts", "SourceParts"] {
            // apt's own names of these are in lower case.
            let found = [name.to_owned(), name.to_lowercase()].map(|n| value(&format!("Dir::Etc::{n}")));
            assert!(found.contains(&"\"/dev/null\";".to_owned()), "{name}: {found:?}");
        }
        assert!(!settings.contains("Invoke"), "hooks of the host:\n{settings}");
    }

    #[test]
    fn proxy_of_the_host_is_used() {
        let (mut repository, heard) = (Repository::serve(&PACKAGES), Heard::default());
        let proxy = repository.mirror.uri.clone();
        repository.mirror.uri = "http://goldtrace-test.invalid/".to_owned();
        repository.mirror.transport.settings = format!("Acquire::http::Proxy \"{proxy}\";\n");
        apt(&repository, &heard).update().expect("an index");
        let requests = repository.requests("InRelease");
        assert!(
            requests[0].starts_with("http://goldtrace-test.invalid/dists/test/InRelease"),
            "{requests:?}"
        );
    }

    #[test]
    fn host_that_takes_an_expired_index_gets_a_warning() {
        let (mut repository, heard) = (Repository::serve(&PACKAGES), Heard::default());
        apt(&repository, &heard);
        assert_eq!(heard.text(), "");
        repository.mirror.transport.takes_expired_index = true;
        apt(&repository, &heard);
        assert!(heard.text().starts_with("warning: the host's apt takes an index"), "{}", heard.text());
    }

    #[test]
    fn percent_is_read_from_apts_status() {
        assert_eq!(percent("dlstatus:1:45.3333:Retrieving file 1 of 1"), Some(45));
        assert_eq!(percent("Get:1 http://m a 1"), None);
    }
}
