//! The project's own goldens are looked at by the linter.

use goldtrace::report::{Colour, render_diagnostics};
use guest::Project;
use guest::{self, GuestName};
use trial::case::{self, MissingGolden};
use trial::lint::lint;

/// Goldens with holes that let much through, each with its reason.
const WIDE: [(&str, &str); 6] = [
    (
        "cases/vpa-dtl/document/script.golden",
        "the scheduler's events are live; addresses move with each build",
    ),
    (
        "cases/vpa-dtl/interleaved/script.golden",
        "the scheduler's events are live; addresses move with each build",
    ),
    (
        "cases/vpa-dtl/script/fields.golden",
        "perf's columns are the case's own: plain text has no times or symbols",
    ),
    ("cases/vpa-dtl/script/script.golden", "only the symbol matters; its address moves with each build"),
    ("cases/vpa-dtl/unknown-reason/dump.golden", "unknown what a perf without the bug prints"),
    ("cases/vpa-dtl/unknown-reason/script.golden", "unknown what a perf without the bug prints"),
];

#[test]
fn project_goldens_have_no_problems() {
    let project = Project::at(crate::support::real_root()).expect("a project");
    let guests = guest::load_all(&project).expect("valid guests");
    let names: Vec<GuestName> = guests.iter().map(|guest| guest.name.clone()).collect();
    let cases = case::load_all(&project, &names, MissingGolden::IsAnError).expect("valid cases");
    let findings = lint(&cases, &guests);
    assert!(findings.errors.is_empty(), "{}", render_diagnostics(&findings.errors, Colour::No));
    let with_reason = |file: &str| WIDE.iter().any(|(known, _)| *known == file);
    let wide = findings.wide_holes.iter().filter(|(at, _)| !with_reason(at.file.as_str()));
    let wide: Vec<String> = wide.map(|(at, hole)| format!("{}:{} {hole}", at.file, at.span.line)).collect();
    assert_eq!(wide, Vec::<String>::new(), "a wide hole needs a reason: list it here with one");
    for (file, _) in WIDE {
        let used = findings.wide_holes.iter().any(|(at, _)| at.file == file);
        assert!(used, "{file} has no wide hole any more: take it off the list");
    }
}
