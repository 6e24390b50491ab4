//! Goldens written from captures.
//!
//! What a golden says and the captures still fit is kept to the letter: lines, holes, conditions, and
//! known bugs with both their parts, which are never edited.
//! Only lines that no capture has are dropped, and lines that no golden has are added, as a careful
//! person would write them: a pointer gets a name, a time or a task a hole of its kind, a number
//! stays as it is unless the guests differ in it. Where the guests differ in lines, a condition
//! says so. Nothing that was literal becomes a hole, and what is written is checked against every
//! capture before it is given out.

mod line;
mod names;
mod view;
mod write;

use formats::Format;

pub use names::{GuestNames, Namer};

use super::{Facts, Golden, Header, compare};
use view::View;
use write::write;

/// What a guest printed.
#[derive(Debug, Clone)]
pub struct Observed<'c> {
    /// The guest's facts; guests differ by their architecture.
    pub facts: &'c Facts,
    /// The capture.
    pub capture: &'c [u8],
}

/// Write the golden that all `observed` captures fit; `None` when they fit the one that is there.
/// `names` has one entry for each guest, in the order of `observed`, and is kept from one capture
/// of the case to the next.
///
/// # Errors
/// Why a person must write it, in one sentence.
pub fn bless(
    golden: &Golden,
    format: Format,
    observed: &[Observed<'_>],
    namer: &mut Namer,
    names: &mut [GuestNames],
) -> Result<Option<Golden>, String> {
    let mut views = Vec::new();
    for (seen, names) in observed.iter().zip(names.iter_mut()) {
        views.push(View::new(golden, format, seen, namer, names)?);
    }
    let written =
        if views.iter().all(|view| view.fits) { None } else { Some(write(golden, observed, &views)?) };
    let result = written.as_ref().unwrap_or(golden);
    for (seen, names) in observed.iter().zip(names) {
        let found = compare(result, seen.capture, format, seen.facts, &mut names.bindings);
        if !found.passes() {
            return Err(format!("failed to find a golden that the capture of {} matches", seen.facts.arch));
        }
    }
    Ok(written)
}

/// The same golden with another header.
#[must_use]
pub fn with_header(golden: &Golden, header: Header) -> Golden {
    let mut golden = golden.clone();
    golden.text = golden.text.with_first(&header.to_string());
    golden.header = header;
    golden
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;
    use expect_test::{Expect, expect};

    use super::*;

    fn facts(arch: &str) -> Facts {
        Facts { arch: arch.to_owned(), ..Facts::default() }
    }

    fn blessed(body: &str, format: Format, captures: &[(&str, &str)]) -> Result<Option<String>, String> {
        let text_before = format!("#@ golden v1\n{body}");
        let golden = Golden::parse(Utf8Path::new("g"), text_before.as_bytes()).expect("valid");
        let facts: Vec<Facts> = captures.iter().map(|(arch, _)| facts(arch)).collect();
        let observed: Vec<Observed<'_>> = captures
            .iter()
            .zip(&facts)
            .map(|((_, capture), facts)| Observed { facts, capture: capture.as_bytes() })
            .collect();
        let names = || captures.iter().map(|_| GuestNames::default()).collect::<Vec<_>>();
        let mut namer = Namer::new([&golden]);
        let result = bless(&golden, format, &observed, &mut namer, &mut names())?;
        if let Some(result) = &result {
            // Blessing again changes nothing.
            let again = bless(result, format, &observed, &mut Namer::new([result]), &mut names())?;
            assert!(again.is_none());
        }
        Ok(result.map(|golden| golden.text.as_str().to_owned()))
    }

    fn check(body: &str, format: Format, captures: &[(&str, &str)], expected: &Expect) {
        expected.assert_eq(&blessed(body, format, captures).expect("blessed").expect("changed"));
    }

    const A: &str =
        "hist_data: 00000000aaaaaaaa\nvar.hist_data: 00000000bbbbbbbb\nhist_data: 00000000aaaaaaaa\n";
    const B: &str =
        "hist_data: 00000000cccccccc\nvar.hist_data: 00000000dddddddd\nhist_data: 00000000cccccccc\n";

    #[test]
    fn pointers_get_names() {
        check(
            "",
            Format::HistDebug,
            &[("ppc64le", A), ("x86_64", B)],
            &expect![[r"
            #@ golden v1
            hist_data: {{ptr:PTR1}}
            var.hist_data: {{ptr:PTR2}}
            hist_data: {{ptr:PTR1}}
        "]],
        );
    }

    #[test]
    fn matching_names_are_kept() {
        let body = "hist_data: {{ptr:WAKING}}\n";
        check(
            body,
            Format::HistDebug,
            &[("ppc64le", A), ("x86_64", B)],
            &expect![[r"
            #@ golden v1
            hist_data: {{ptr:WAKING}}
            var.hist_data: {{ptr:PTR1}}
            hist_data: {{ptr:WAKING}}
        "]],
        );
    }

    #[test]
    fn matching_capture_changes_nothing() {
        let body = "a\n#@ any\nz\n";
        assert_eq!(blessed(body, Format::Plain, &[("x86_64", "a\nb\nz\n")]), Ok(None));
    }

    #[test]
    fn only_differing_lines_are_edited() {
        let body = "a\n{{word}} b\n#@ if arch == x86_64\nx\n#@ end\nold\nz\n";
        check(
            body,
            Format::Plain,
            &[("ppc64le", "a\nq b\nnew\nz\n"), ("x86_64", "a\nr b\nx\nnew\nz\n")],
            &expect![[r"
            #@ golden v1
            a
            {{word}} b
            #@ if arch == x86_64
            x
            #@ end
            new
            z
        "]],
        );
    }

    #[test]
    fn guests_that_differ_get_a_condition() {
        check(
            "a\nz\n",
            Format::Plain,
            &[("ppc64le", "a\np\nz\n"), ("x86_64", "a\nx\nz\n")],
            &expect![[r"
            #@ golden v1
            a
            #@ if arch == ppc64le
            p
            #@ else
            x
            #@ end
            z
        "]],
        );
        check(
            "a\nb\nz\n",
            Format::Plain,
            &[("ppc64le", "a\np\nz\n"), ("x86_64", "a\nb\nz\n")],
            &expect![[r"
            #@ golden v1
            a
            #@ if arch == ppc64le
            p
            #@ else
            b
            #@ end
            z
        "]],
        );
    }

    #[test]
    fn numbers_stay_unless_the_guests_differ() {
        let row = |pid: u32, hits: u32| format!("{{ pid: {pid:10} }} hitcount: {hits:10}\n");
        let total = |hits: u32, rows: u32| {
            format!("\nTotals:\n    Hits: {hits}\n    Entries: {rows}\n    Dropped: 0\n")
        };
        let a = row(1, 2) + &row(3, 4) + &total(6, 2);
        let b = row(1, 2) + &row(5, 4) + &row(7, 1) + &total(7, 3);
        check(
            "",
            Format::Hist,
            &[("ppc64le", &a), ("x86_64", &b)],
            &expect![[r"
            #@ golden v1
            #@ repeat 1..
            { pid: {{n}} } hitcount: {{n}}
            #@ end

            Totals:
                Hits: {{n}}
                Entries: {{n}}
                Dropped: 0
        "]],
        );
        let same =
            blessed("", Format::Hist, &[("ppc64le", &a), ("x86_64", &a)]).expect("blessed").expect("changed");
        assert!(same.contains("{ pid:          1 } hitcount:          2"), "{same}");
    }

    #[test]
    fn ambiguous_changes_are_refused() {
        let refused =
            |body, capture| blessed(body, Format::HistDebug, &[("x86_64", capture)]).expect_err("refused");
        assert!(refused("#@ repeat 2..\nx\n#@ end\n", "x\n").contains("in a `repeat`"));
        assert!(refused("", "a").contains("has no newline"));
        assert!(refused("", "hist_data: 12\n").contains("breaks a rule"));
        assert!(refused("#@ any 2..\nx\n", "x\n").contains("`any`"));
    }

    const KNOWN: &str = "a\n#@ xfail \"a bug\"\nright\n#@ actual\nwrong\n#@ end\nz\n";

    #[test]
    fn known_bug_is_kept_whichever_part_was_seen() {
        for (ppc64le, x86_64) in [("wrong", "wrong"), ("right", "wrong"), ("right", "right")] {
            let captures =
                [("ppc64le", format!("a\n{ppc64le}\nz\n")), ("x86_64", format!("a\n{x86_64}\nz\n"))];
            let captures = captures.each_ref().map(|(arch, text)| (*arch, text.as_str()));
            assert_eq!(blessed(KNOWN, Format::Plain, &captures), Ok(None));
        }
    }

    #[test]
    fn changes_next_to_a_known_bug_leave_it_as_it_is() {
        check(
            KNOWN,
            Format::Plain,
            &[("ppc64le", "a\nright\nmore\ny\n"), ("x86_64", "b\nwrong\nmore\ny\n")],
            &expect![[r##"
            #@ golden v1
            #@ if arch == ppc64le
            a
            #@ else
            b
            #@ end
            #@ xfail "a bug"
            right
            #@ actual
            wrong
            #@ end
            more
            y
        "##]],
        );
    }

    #[test]
    fn text_of_neither_part_of_a_known_bug_is_refused() {
        let refused = blessed(KNOWN, Format::Plain, &[("ppc64le", "a\nother\nz\n")]).expect_err("refused");
        assert_eq!(
            refused,
            "the capture of ppc64le has neither part of the known bug in line 3 of the golden"
        );
    }

    #[test]
    fn text_like_a_directive_is_escaped() {
        check(
            "",
            Format::Plain,
            &[("x86_64", "#@ if x\na {{b}}\n")],
            &expect![[r"
            #@ golden v1
            {{lit:#@ }}if x
            a {{lit:{{}}b}}
        "]],
        );
    }
}
