//! Whether a splat is the one that a case expects.

use vm::Splat;

use crate::case::ExpectedSplat;

/// Whether the expected splat is the only one: of its kind, in its function.
pub(super) fn is_expected(expected: &ExpectedSplat, splats: &[Splat]) -> bool {
    let [splat] = splats else { return false };
    let names_function = |symbol: &String| splat.function.as_ref() == Some(symbol);
    splat.kind == expected.kind && expected.symbol.as_ref().is_none_or(names_function)
}

#[cfg(test)]
mod tests {
    use vm::SplatKind;

    use super::*;

    const OOPS: &str = "BUG: Kernel NULL pointer dereference on write at 0x00000004\n\
                        Oops: Kernel access of bad area, sig: 11 [#1]\n\
                        NIP [c00000000012f070] vpa_dtl_event_add+0x70/0x178\n\
                        ---[ end trace 0000000000000000 ]---\nKernel panic - not syncing: Fatal exception\n";
    const WARNING: &str = "WARNING: kernel/x.c:1 at f+0x1/0x2, CPU#1: sh/1\n";

    fn is(kind: SplatKind, symbol: Option<&str>, console: &str) -> bool {
        let symbol = symbol.map(str::to_owned);
        let expected = ExpectedSplat {
            file: "case.yaml".into(),
            line: 1,
            kind,
            symbol,
            step: None,
            condition: None,
            reason: String::new(),
        };
        is_expected(&expected, &Splat::scan(console.as_bytes()))
    }

    #[test]
    fn oops_is_identified_by_its_function() {
        let oops = |symbol| is(SplatKind::Oops, symbol, OOPS);
        assert!(oops(None));
        assert!(oops(Some("vpa_dtl_event_add")));
        assert!(!oops(Some("event_add")));
        assert!(!oops(Some("vpa_dtl_event_del")));
        // A function that is in the console, but in another report or none.
        assert!(!is(SplatKind::Oops, Some("g"), &format!("g+0x1/0x2\n{OOPS}")));
    }

    #[test]
    fn splat_of_another_kind_is_not_the_expected_one() {
        assert!(!is(SplatKind::Panic, None, OOPS));
        assert!(!is(SplatKind::Oops, None, "Kernel panic - not syncing: x\n"));
        assert!(!is(SplatKind::Warning, Some("f"), &WARNING.replace("WARNING", "BUG: KASAN")));
        assert!(!is(SplatKind::Panic, None, ""));
    }

    #[test]
    fn second_splat_is_not_expected() {
        assert!(is(SplatKind::Warning, Some("f"), WARNING));
        for other in [WARNING, "BUG: f+0x1/0x2\n", "Kernel panic - not syncing: f+0x1/0x2\n"] {
            assert!(!is(SplatKind::Warning, Some("f"), &format!("{WARNING}{other}")), "{other}");
            assert!(!is(SplatKind::Oops, None, &format!("{other}{OOPS}")), "{other}");
        }
    }
}
