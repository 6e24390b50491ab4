//! Whether a splat is the one that a case expects.

use vm::Splat;

use crate::case::{ExpectedSplat, SplatKind};

/// Whether `splats`, on this console, are the expected one and no others. A warning names its function in its
/// own line; a panic comes after many lines.
pub(super) fn is_expected(expected: &ExpectedSplat, splats: &[Splat], console: &str) -> bool {
    match expected.kind {
        SplatKind::Warning => {
            !splats.is_empty()
                && splats
                    .iter()
                    .all(|c| !c.fatal && c.line.starts_with("WARNING: ") && is_named_in(expected, &c.line))
        }
        SplatKind::Panic | SplatKind::Oops => {
            splats.iter().any(|splat| splat.fatal) && is_named_in(expected, console)
        }
    }
}

/// Whether a text of the kernel names its function.
fn is_named_in(expected: &ExpectedSplat, text: &str) -> bool {
    expected.symbol.as_ref().is_none_or(|symbol| {
        // `symbol+0x10/0x80`, with no other letter of a name before it.
        let found = format!("{symbol}+0x");
        text.match_indices(&found)
            .any(|(at, _)| !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(kind: SplatKind, symbol: Option<&str>) -> ExpectedSplat {
        let symbol = symbol.map(str::to_owned);
        ExpectedSplat {
            file: "case.yaml".into(),
            line: 1,
            kind,
            symbol,
            step: None,
            condition: None,
            reason: String::new(),
        }
    }

    #[test]
    fn oops_is_identified_by_its_function() {
        let console = "[    1.0] NIP [c00000000012f070] vpa_dtl_event_add+0x70/0x178";
        let splats = [Splat { line: "Kernel panic - not syncing: x".to_owned(), fatal: true }];
        let is = |symbol| is_expected(&expected(SplatKind::Oops, symbol), &splats, console);
        assert!(is(None));
        assert!(is(Some("vpa_dtl_event_add")));
        assert!(!is(Some("event_add")));
        assert!(!is(Some("vpa_dtl_event_del")));
        assert!(!is_expected(&expected(SplatKind::Panic, None), &[], console));
    }

    #[test]
    fn warning_is_expected_without_other_splats() {
        let line = |line: &str, fatal| Splat { line: line.to_owned(), fatal };
        let warning = line("WARNING: kernel/x.c:1 at f+0x1/0x2, CPU#1: sh/1", false);
        let is = |splats: &[Splat]| is_expected(&expected(SplatKind::Warning, Some("f")), splats, "");
        assert!(is(std::slice::from_ref(&warning)));
        assert!(!is(&[]));
        assert!(!is(&[warning.clone(), line("WARNING: kernel/x.c:2 at g+0x1/0x2, CPU#1: sh/1", false)]));
        assert!(!is(&[warning.clone(), line("BUG: f+0x1/0x2", false)]));
        assert!(!is(&[warning, line("Kernel panic - not syncing: f+0x1/0x2", true)]));
    }
}
