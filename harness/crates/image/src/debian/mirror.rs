//! The Debian mirror that the host's own apt sources name.

use xshell::cmd;

use super::transport::Transport;
use crate::error::ImageError;
use crate::toolchain::{ask, shell};

/// What the archive's signatures are checked with.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A Debian mirror, and the suite that the host's own packages come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mirror {
    /// The mirror's address.
    pub(super) uri: String,
    /// The host's suite, by its codename.
    pub(super) suite: String,
    /// How apt checks its signature: an option of a line of a source list.
    pub(super) trust: String,
    /// How often apt tries again after a failed transfer, with growing pauses.
    pub(super) retries: u32,
    /// How the host's apt reaches its mirrors.
    pub(super) transport: Transport,
}

impl Mirror {
    /// What the host's own apt sources name.
    ///
    /// # Errors
    /// When they cannot be read, or name no Debian mirror.
    pub(super) fn of_host() -> Result<Mirror, ImageError> {
        let (sh, format) = (shell()?, "$(REPO_URI)|$(COMPONENT)|$(CODENAME)");
        let targets = ask("apt-get", cmd!(sh, "apt-get indextargets --format {format}"))?;
        let mirror = Mirror::in_targets(&targets).ok_or_else(|| {
            ImageError::Host(
                "the host's apt sources name no Debian mirror: none of them has a URI that ends in /debian\n\
                 help: goldtrace builds on Debian only; add a line such as `deb http://MIRROR/debian SUITE main`"
                    .to_owned(),
            )
        })?;
        let settings = ask("apt-config", cmd!(sh, "apt-config dump"))?;
        Ok(Mirror { transport: Transport::in_settings(&settings), ..mirror })
    }

    /// The first target of Debian's main component, and before others one of a whole suite: those
    /// of updates and backports have a dash in their names.
    fn in_targets(targets: &str) -> Option<Mirror> {
        let usable = |line: &str| {
            let mut fields = line.split('|');
            let (uri, component, suite) = (fields.next()?, fields.next()?, fields.next()?);
            let right = component == "main" && uri.trim_end_matches('/').ends_with("/debian");
            right.then(|| Mirror {
                uri: uri.to_owned(),
                suite: suite.to_owned(),
                trust: format!("signed-by={KEYRING}"),
                retries: 3,
                transport: Transport::default(),
            })
        };
        targets.lines().filter_map(usable).min_by_key(|mirror| mirror.suite.contains('-'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_mirror_is_that_of_a_whole_suite() {
        let found = |targets: &str| Mirror::in_targets(targets).map(|a| (a.uri, a.suite));
        let targets = "http://m/debian-security/|main|bookworm-security\n\
                       http://m/debian|contrib|trixie\n\
                       http://m/debian|main|bookworm-updates\n\
                       http://m/debian/|main|bookworm\n\
                       http://m/debian/|main|trixie\n";
        assert_eq!(found(targets), Some(("http://m/debian/".to_owned(), "bookworm".to_owned())));
        assert_eq!(found("http://m/other|main|bookworm\n"), None);
    }
}
