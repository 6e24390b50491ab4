//! A package as a suite's index has it.

use serde::{Deserialize, Serialize};

/// A package as a suite has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Candidate {
    /// Its name.
    pub(crate) package: String,
    /// Debian's name of its architecture, as it was asked for.
    pub(crate) arch: String,
    /// Its version.
    pub(crate) version: String,
    /// The SHA-256 of the .deb, from the suite's signed index.
    pub(crate) sha256: String,
    /// Its `Depends:` field.
    pub(crate) depends: String,
}

impl Candidate {
    /// Its version without Debian's epoch and revision, such as `7.2.13`.
    pub(crate) fn upstream_version(&self) -> &str {
        let version = self.version.split_once(':').map_or(self.version.as_str(), |(_, rest)| rest);
        version.rsplit_once('-').map_or(version, |(upstream, _)| upstream)
    }

    /// A package of a test.
    #[cfg(test)]
    pub(crate) fn named(package: &str, version: &str) -> Candidate {
        let text = |text: &str| text.to_owned();
        let (arch, sha256, depends) = (text("amd64"), text("0"), String::new());
        Candidate { package: text(package), arch, version: text(version), sha256, depends }
    }

    /// The package in the paragraphs that `apt-cache show` prints.
    pub(super) fn in_stanzas(shown: &str, package: &str, arch: &str) -> Option<Candidate> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_is_found_by_name_and_architecture() {
        let shown = "Package: a\nArchitecture: amd64\nVersion: 1\nSHA256: x\n\n\
                     Package: a\nArchitecture: ppc64el\nVersion: 2\nSHA256: y\nDepends: b\n\n\
                     Package: d\nArchitecture: all\nVersion: 3\nSHA256: z\n";
        let version = |package, arch| Candidate::in_stanzas(shown, package, arch).map(|c| c.version);
        assert_eq!(version("a", "ppc64el").as_deref(), Some("2"));
        assert_eq!(version("d", "amd64").as_deref(), Some("3"));
        assert_eq!(version("b", "amd64"), None);
    }
}
