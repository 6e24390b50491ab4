//! How the host's apt reaches its mirrors: the only part of its configuration that counts here.

/// Settings that are about the way to a mirror: proxies, certificates, timeouts, addresses (apt.conf(5), apt-transport-http(1)).
const GROUPS: [&str; 2] = ["Acquire::http::", "Acquire::https::"];
const SETTINGS: [&str; 2] = ["Acquire::ForceIPv4", "Acquire::ForceIPv6"];

/// A mirror that is frozen on purpose, such as one of snapshot.debian.org, has an index that has expired. Only the
/// host's administrator knows it, and says so with these. They are about time, and not about who signed the index.
const TIME: [&str; 2] = ["Acquire::Check-Valid-Until", "Acquire::Check-Date"];

/// How the host's apt reaches its mirrors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Transport {
    /// Lines of apt's configuration.
    pub(super) settings: String,
    /// Whether an index is taken that has expired.
    pub(super) takes_expired_index: bool,
}

impl Transport {
    /// Out of all that `apt-config dump` prints, a setting a line: `NAME "VALUE";`.
    pub(super) fn in_settings(dump: &str) -> Transport {
        let mut transport = Transport::default();
        for line in dump.lines() {
            let Some((name, value)) = line.split_once(' ') else { continue };
            let is_time = TIME.contains(&name);
            let is_transport = SETTINGS.contains(&name) || GROUPS.iter().any(|group| name.starts_with(group));
            if is_transport || is_time {
                transport.settings += &format!("{line}\n");
            }
            // As apt's StringToBool reads it (apt-pkg/contrib/strutl.cc, apt 2.6).
            let value = value.trim_matches(['"', ';']).to_ascii_lowercase();
            if is_time && ["0", "no", "false", "without", "off", "disable"].contains(&value.as_str()) {
                transport.takes_expired_index = true;
            }
        }
        transport
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_count_and_trust_and_hooks_do_not() {
        let dump = "\
APT::Get::AllowUnauthenticated \"1\";
Acquire::AllowInsecureRepositories \"1\";
Acquire::http \"\";
Acquire::http::Proxy \"http://p:3128/\";
Acquire::https::CaInfo \"/ca.pem\";
Acquire::httpx \"1\";
Acquire::ForceIPv4 \"true\";
APT::Update::Post-Invoke:: \"touch /hook\";
Dir::Etc::Parts \"apt.conf.d\";
";
        let found = Transport::in_settings(dump);
        assert_eq!(
            found.settings,
            "Acquire::http::Proxy \"http://p:3128/\";\nAcquire::https::CaInfo \"/ca.pem\";\nAcquire::ForceIPv4 \"true\";\n"
        );
        assert!(!found.takes_expired_index);
    }

    #[test]
    fn frozen_mirror_is_noticed() {
        for value in ["0", "false", "No"] {
            let line = format!("Acquire::Check-Valid-Until \"{value}\";\n");
            let found = Transport::in_settings(&line);
            assert_eq!(found, Transport { settings: line, takes_expired_index: true });
        }
        assert!(!Transport::in_settings("Acquire::Check-Valid-Until \"1\";\n").takes_expired_index);
    }
}
