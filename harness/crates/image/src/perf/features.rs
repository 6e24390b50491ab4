//! What a built perf can do.

/// What a built perf can do, of that which trials depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    /// Whether it is linked with libtraceevent: without it there are no tracepoints.
    pub libtraceevent: bool,
}

impl Features {
    /// What the build has found, from its `FEATURE-DUMP`: lines such as `feature-libelf=1`.
    pub(super) fn of_build(dump: &str) -> Features {
        Features { libtraceevent: dump.lines().any(|line| line == "feature-libtraceevent=1") }
    }

    /// The file beside the built perf: one feature a line.
    pub(super) fn to_text(self) -> String {
        format!("{LIBTRACEEVENT}: {}\n", if self.libtraceevent { "on" } else { "off" })
    }

    /// What the file beside a built perf says; `None` when it says nothing usable.
    pub(super) fn parse(text: &str) -> Option<Features> {
        let value = text.lines().find_map(|line| line.strip_prefix(LIBTRACEEVENT)?.strip_prefix(": "))?;
        match value {
            "on" => Some(Features { libtraceevent: true }),
            "off" => Some(Features { libtraceevent: false }),
            _ => None,
        }
    }
}

const LIBTRACEEVENT: &str = "libtraceevent";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libtraceevent_is_read_from_the_feature_dump() {
        let dump = "feature-libelf=1\nfeature-libtraceevent=1\nfeature-zlib=1\n";
        assert!(Features::of_build(dump).libtraceevent);
        assert!(!Features::of_build(&dump.replace("event=1", "event=0")).libtraceevent);
        assert!(!Features::of_build("").libtraceevent);
    }

    #[test]
    fn features_file_reads_back() {
        for libtraceevent in [true, false] {
            let features = Features { libtraceevent };
            assert_eq!(Features::parse(&features.to_text()), Some(features));
        }
        assert_eq!(Features::parse("libtraceevent: maybe\n"), None);
        assert_eq!(Features::parse(""), None);
    }
}
