//! Debian packages of another suite or architecture than the host's, without touching the host's apt.
//!
//! apt runs with a private source list and state below the cache. The mirror is the one that the
//! host's own sources name for Debian, and apt checks the archive's signature as always. Packages
//! are downloaded and unpacked, never installed.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use xshell::{Shell, cmd};

use crate::digest::file_digest;
use crate::error::ImageError;
use crate::progress::ProgressSink;
use crate::store::{Product, Recipe, Store, make_dir};
use vm::process;

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A package as a suite has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Its name.
    pub package: String,
    /// Debian's name of its architecture, as it was asked for.
    pub arch: String,
    /// Its version.
    pub version: String,
    /// The SHA-256 of the .deb, from the suite's signed index.
    pub sha256: String,
    /// Its `Depends:` field.
    pub depends: String,
}

impl Candidate {
    /// Its version without Debian's epoch and revision, such as `7.2.13`.
    pub fn upstream_version(&self) -> &str {
        let version = self.version.split_once(':').map_or(self.version.as_str(), |(_, rest)| rest);
        version.rsplit_once('-').map_or(version, |(upstream, _)| upstream)
    }

    /// The package in the paragraphs that `apt-cache show` prints.
    fn in_stanzas(shown: &str, package: &str, arch: &str) -> Option<Candidate> {
        shown.split("\n\n").find_map(|stanza| {
            let field = |name: &str| {
                stanza.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::to_owned)
            };
            let of_arch = [arch, "all"].contains(&field("Architecture")?.as_str());
            if field("Package")? != package || !of_arch {
                return None;
            }
            Some(Candidate {
                package: package.to_owned(),
                arch: arch.to_owned(),
                version: field("Version")?,
                sha256: field("SHA256")?,
                depends: field("Depends").unwrap_or_default(),
            })
        })
    }
}

/// apt on one suite.
pub struct Apt<'a> {
    suite: String,
    dir: Utf8PathBuf,
    config: Utf8PathBuf,
    progress: &'a dyn ProgressSink,
    sh: Shell,
}

impl<'a> Apt<'a> {
    /// A private apt for `suite` with the packages of `archs`.
    ///
    /// # Errors
    /// When the host's sources name no Debian mirror, or the state cannot be written.
    pub fn open(
        store: &Store,
        suite: &str,
        archs: &[String],
        progress: &'a dyn ProgressSink,
    ) -> Result<Apt<'a>, ImageError> {
        let sh = Shell::new().map_err(|e| ImageError::Other(e.to_string()))?;
        let DebianArchive { mirror, .. } = DebianArchive::of_host(&sh)?;
        let dir = store.root().join("apt").join(suite);
        for sub in ["state/lists/partial", "cache/archives/partial", "etc"] {
            make_dir(&dir.join(sub))?;
        }
        let config = dir.join("etc/apt.conf");
        let list = dir.join("etc/sources.list");
        let archs_quoted = archs.iter().map(|a| format!("\"{a}\";")).collect::<String>();
        write(
            &list,
            &format!(
                "deb [arch={} target=Packages signed-by={KEYRING}] {mirror} {suite} main\n",
                archs.join(",")
            ),
        )?;
        write(
            &config,
            &format!(
                "#clear APT::Architectures;\n\
                 APT::Architectures {{ {archs_quoted} }};\n\
                 Dir::Etc::SourceList \"{list}\";\n\
                 Dir::Etc::SourceParts \"/dev/null\";\n\
                 Dir::State \"{dir}/state\";\n\
                 Dir::State::Lists \"{dir}/state/lists\";\n\
                 Dir::State::status \"/dev/null\";\n\
                 Dir::Cache \"{dir}/cache\";\n\
                 Acquire::Languages \"none\";\n\
                 Acquire::Retries \"3\";\n\
                 APT::Sandbox::User \"{}\";\n",
                sandbox_user()
            ),
        )?;
        Ok(Apt { suite: suite.to_owned(), dir, config, progress, sh })
    }

    /// Fetch the suite's signed index.
    ///
    /// # Errors
    /// What apt says.
    pub fn update(&self) -> Result<(), ImageError> {
        self.progress.line("package versions", &format!("reading the index of {}", self.suite));
        let config = &self.config;
        process::read(cmd!(self.sh, "apt-get update --error-on=any -q").env("APT_CONFIG", config))?;
        Ok(())
    }

    /// The package's newest version in the suite.
    ///
    /// # Errors
    /// When the suite has no such package.
    pub fn candidate(&self, package: &str, arch: &str) -> Result<Candidate, ImageError> {
        let mut found = self.candidates(&[(package, arch)])?;
        Ok(found.pop().expect("one for each that was asked for"))
    }

    /// The newest version in the suite of each package, given with its architecture. All are looked
    /// up at once: each start of apt reads the whole index.
    ///
    /// # Errors
    /// Every package that the suite does not have.
    pub fn candidates(&self, wanted: &[(&str, &str)]) -> Result<Vec<Candidate>, ImageError> {
        let names = wanted.iter().map(|(package, arch)| format!("{package}:{arch}"));
        let command = cmd!(self.sh, "apt-cache show --no-all-versions {names...}");
        let shown = match process::read(command.env("APT_CONFIG", &self.config)) {
            // It fails when it knows none of them, and not when it knows some.
            Err(error) if error.to_string().contains("No packages found") => String::new(),
            other => other?,
        };
        let found = wanted.iter().map(|(package, arch)| Candidate::in_stanzas(&shown, package, arch));
        let found: Vec<Option<Candidate>> = found.collect();
        let missing = wanted.iter().zip(&found).filter(|(_, candidate)| candidate.is_none());
        let missing: Vec<String> = missing.map(|((package, arch), _)| format!("{package}:{arch}")).collect();
        if !missing.is_empty() {
            return Err(ImageError::Other(format!(
                "Debian {} has no usable package {}",
                self.suite,
                missing.join(", ")
            )));
        }
        Ok(found.into_iter().flatten().collect())
    }

    /// Download exactly `candidate` to `file`.
    ///
    /// # Errors
    /// When the mirror no longer has that version, or the file is not the one in the index.
    fn download(&self, candidate: &Candidate, file: &Utf8Path) -> Result<(), ImageError> {
        let Candidate { package, arch, version, sha256, .. } = candidate;
        let config = &self.config;
        let folder = self.dir.join(format!("download-{}", std::process::id()));
        make_dir(&folder)?;
        let _dir = self.sh.push_dir(folder.as_std_path());
        let got = process::read(
            cmd!(self.sh, "apt-get download -q {package}:{arch}={version}").env("APT_CONFIG", config),
        );
        let found = folder.read_dir_utf8().ok().and_then(|mut entries| {
            entries.find_map(|e| e.ok().filter(|e| e.path().extension() == Some("deb")))
        });
        let result = match (got, found) {
            (Ok(_), Some(deb)) => {
                let digest = file_digest(deb.path()).map_err(|e| ImageError::file("read", deb.path(), e))?;
                if digest.as_str() == sha256 {
                    fs::rename(deb.path(), file).map_err(|e| ImageError::file("move", deb.path(), e))
                } else {
                    Err(ImageError::Other(format!(
                        "{package}:{arch} {version} as downloaded has SHA-256 {}, and the suite's index says {sha256}",
                        digest.as_str()
                    )))
                }
            }
            (Ok(_), None) => {
                Err(ImageError::Other(format!("apt-get downloaded no file for {package}:{arch}")))
            }
            (Err(error), _) => Err(ImageError::Other(format!(
                "{error}\nif the mirror has dropped that version, ask for the newest: `goldtrace build --refresh`"
            ))),
        };
        let _ = fs::remove_dir_all(&folder);
        result
    }
}

/// A package that is fetched when something is made of it, and not before.
pub(crate) struct Deb<'a> {
    pub(crate) store: &'a Store,
    pub(crate) suite: &'a str,
    pub(crate) archs: &'a [String],
    pub(crate) candidate: &'a Candidate,
    pub(crate) progress: &'a dyn ProgressSink,
}

impl Deb<'_> {
    /// The SHA-256 of the .deb, for the recipe of what is made of it.
    pub(crate) fn sha256(&self) -> &str {
        &self.candidate.sha256
    }

    /// Its version without Debian's epoch and revision, such as `7.2.13`.
    pub(crate) fn upstream_version(&self) -> &str {
        self.candidate.upstream_version()
    }

    /// The .deb as a file.
    ///
    /// # Errors
    /// When it is not in the cache and cannot be downloaded.
    pub(crate) fn file(&self) -> Result<Utf8PathBuf, ImageError> {
        let product = deb(self.store, self.suite, self.archs, self.candidate, self.progress)?;
        Ok(product.dir.join("package.deb"))
    }
}

/// The .deb of `candidate`, as a product whose only file is `package.deb`.
///
/// # Errors
/// When it is not in the cache and cannot be downloaded.
fn deb(
    store: &Store,
    suite: &str,
    archs: &[String],
    candidate: &Candidate,
    progress: &dyn ProgressSink,
) -> Result<Product, ImageError> {
    let Candidate { package, arch, version, sha256, .. } = candidate;
    let recipe =
        Recipe::new("package", &format!("{package}-{arch}")).with("version", version).with("sha256", sha256);
    store.product(&recipe, progress, |build_dir| {
        build_dir.progress.line(&build_dir.label, &format!("downloading {package} {version} ({arch})"));
        let apt = Apt::open(store, suite, archs, progress)?;
        if apt.candidate(package, arch).map(|now| now.version).ok().as_ref() != Some(version) {
            apt.update()?;
        }
        apt.download(candidate, &build_dir.out.join("package.deb"))
    })
}

/// Where the host's own packages come from.
#[derive(Debug, PartialEq, Eq)]
struct DebianArchive {
    /// The Debian mirror.
    mirror: String,
    /// The suite, by its codename.
    suite: String,
}

/// The suite that the host's own packages come from, by its codename.
///
/// # Errors
/// When the host's sources name no Debian mirror.
pub(crate) fn host_suite() -> Result<String, ImageError> {
    let sh = Shell::new().map_err(|e| ImageError::Other(e.to_string()))?;
    Ok(DebianArchive::of_host(&sh)?.suite)
}

impl DebianArchive {
    /// What the host's own apt sources name.
    fn of_host(sh: &Shell) -> Result<DebianArchive, ImageError> {
        let format = "$(REPO_URI)|$(COMPONENT)|$(CODENAME)";
        let targets = process::read(cmd!(sh, "apt-get indextargets --format {format}")).map_err(|e| {
            ImageError::Other(format!(
                "the host's apt sources cannot be read (goldtrace builds on Debian only): {e}"
            ))
        })?;
        DebianArchive::in_targets(&targets).ok_or_else(|| {
            ImageError::Other(
                "the host's apt sources name no Debian mirror: none of them has a URI that ends in /debian"
                    .to_owned(),
            )
        })
    }

    /// The first target of Debian's main component, and before others one of a whole suite: those
    /// of updates and backports have a dash in their names.
    fn in_targets(targets: &str) -> Option<DebianArchive> {
        let usable = |line: &str| {
            let mut fields = line.split('|');
            let (uri, component, suite) = (fields.next()?, fields.next()?, fields.next()?);
            let right = component == "main" && uri.trim_end_matches('/').ends_with("/debian");
            right.then(|| DebianArchive { mirror: uri.to_owned(), suite: suite.to_owned() })
        };
        targets.lines().filter_map(usable).min_by_key(|archive| archive.suite.contains('-'))
    }
}

/// apt drops to a user that cannot write below root's own cache, and says so: stay who we are.
fn sandbox_user() -> &'static str {
    if rustix::process::geteuid().is_root() { "root" } else { "" }
}

fn write(path: &Utf8Path, text: &str) -> Result<(), ImageError> {
    fs::write(path, text).map_err(|e| ImageError::file("write", path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_suite_is_a_whole_one() {
        let found = |targets: &str| DebianArchive::in_targets(targets).map(|a| (a.mirror, a.suite));
        let targets = "http://m/debian-security/|main|bookworm-security\n\
                       http://m/debian|contrib|trixie\n\
                       http://m/debian|main|bookworm-updates\n\
                       http://m/debian/|main|bookworm\n\
                       http://m/debian/|main|trixie\n";
        assert_eq!(found(targets), Some(("http://m/debian/".to_owned(), "bookworm".to_owned())));
        assert_eq!(found("http://m/other|main|bookworm\n"), None);
    }

    #[test]
    fn a_package_is_found_among_others() {
        let shown = "Package: a\nArchitecture: amd64\nVersion: 1\nSHA256: x\n\n\
                     Package: a\nArchitecture: ppc64el\nVersion: 2\nSHA256: y\nDepends: b\n\n\
                     Package: d\nArchitecture: all\nVersion: 3\nSHA256: z\n";
        let version = |package, arch| Candidate::in_stanzas(shown, package, arch).map(|c| c.version);
        assert_eq!(version("a", "ppc64el").as_deref(), Some("2"));
        assert_eq!(version("d", "amd64").as_deref(), Some("3"));
        assert_eq!(version("b", "amd64"), None);
    }
}
