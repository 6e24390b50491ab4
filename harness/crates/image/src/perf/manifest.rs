//! Which files of the kernel's source perf is built from: the source's own `tools/perf/MANIFEST`.

use camino::Utf8Path;

/// Paths below the source's root; a directory stands for all that is in it, and `*` for any part of a
/// name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PerfManifest {
    paths: Vec<String>,
}

impl PerfManifest {
    /// Its file below the source's root.
    pub(super) const FILE: &str = "tools/perf/MANIFEST";

    /// Read its text.
    pub(super) fn parse(text: &str) -> PerfManifest {
        PerfManifest { paths: text.split_whitespace().map(str::to_owned).collect() }
    }

    /// The paths.
    pub(super) fn paths(&self) -> Vec<&str> {
        self.paths.iter().map(String::as_str).collect()
    }

    /// Whether perf is built from the file at `path`.
    pub(super) fn covers(&self, path: &Utf8Path) -> bool {
        self.paths.iter().any(|listed| {
            let mut names = path.components();
            Utf8Path::new(listed)
                .components()
                .all(|pattern| names.next().is_some_and(|name| fits(pattern.as_str(), name.as_str())))
        })
    }
}

/// Whether a name fits a pattern in which `*` stands for any text.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(after) = name.strip_prefix(head) else { return false };
    (0..=after.len()).any(|at| after.is_char_boundary(at) && fits(rest, &after[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_perf_is_built_from() {
        let manifest =
            PerfManifest::parse("COPYING\narch/*/include/uapi/asm/bpf*.h\ntools/perf\ntools/lib/ctype.c\n");
        let covered = [
            "COPYING",
            "tools/perf/builtin-version.c",
            "tools/perf/util/new.c",
            "tools/lib/ctype.c",
            "arch/s390/include/uapi/asm/bpf_perf_event.h",
        ];
        let others = [
            "tools/perfection/a.c",
            "tools/lib/ctype.h",
            "tools",
            "arch/powerpc/perf/vpa-dtl.c",
            "arch/a/b/include/uapi/asm/bpf_x.h",
            "arch/s390/include/uapi/asm/bpf_perf_event.c",
        ];
        for path in covered {
            assert!(manifest.covers(Utf8Path::new(path)), "{path}");
        }
        for path in others {
            assert!(!manifest.covers(Utf8Path::new(path)), "{path}");
        }
    }
}
