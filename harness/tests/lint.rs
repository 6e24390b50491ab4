//! The project's own goldens are looked at by the linter.

mod support;

use goldtrace::case::{self, MissingGolden};
use goldtrace::guest::{self, GuestName};
use goldtrace::lint::lint;
use goldtrace::project::Project;
use goldtrace::report::{Colour, render_diagnostics};

#[test]
fn the_goldens_are_clean() {
    let project = Project::at(support::real_root()).expect("a project");
    let guests = guest::load_all(&project).expect("valid guests");
    let names: Vec<GuestName> = guests.iter().map(|guest| guest.name.clone()).collect();
    let cases = case::load_all(&project, &names, MissingGolden::IsAFault).expect("valid cases");
    let findings = lint(&cases, &guests);
    assert!(findings.faults.is_empty(), "{}", render_diagnostics(&findings.faults, Colour::No));
    let wide: Vec<String> =
        findings.wide_holes.iter().map(|(at, hole)| format!("{}:{} {hole}", at.file, at.span.line)).collect();
    assert_eq!(wide, Vec::<String>::new(), "a wide hole needs a reason: list it here with one");
}
