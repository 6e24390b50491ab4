//! Names in the goldens of a case: each has one kind, and each that a hole refers to is bound by another.

use std::collections::BTreeMap;

use super::model::Step;
use diagnostic::{Diagnostic, Span, did_you_mean};
use golden::{Golden, Hole, Namespace};

/// Errors of names across all goldens of a case.
pub(super) fn errors(steps: &[Step]) -> Vec<Diagnostic> {
    let goldens: Vec<&Golden> =
        steps.iter().filter_map(|step| Some(&step.capture.as_ref()?.golden)).collect();
    let mut kinds: BTreeMap<&str, (Namespace, String)> = BTreeMap::new();
    let mut bound: Vec<(Namespace, &str)> = Vec::new();
    let mut errors = Vec::new();
    for golden in &goldens {
        for (line, hole) in holes(golden) {
            bound.extend(hole.binds());
            let Some((namespace, name)) = hole.binds().or(hole.uses()) else { continue };
            let place = || format!("{}:{line}", golden.file);
            let (known, first) = kinds.entry(name).or_insert_with(|| (namespace, place()));
            if *known != namespace {
                let message =
                    format!("{name} is the name of a {known} at {first}, and of a {namespace} here");
                errors.push(error(golden, line, hole, message, Some("use two names".to_owned())));
            }
        }
    }
    for golden in &goldens {
        for (line, hole) in holes(golden) {
            let Some((namespace, name)) = hole.uses().filter(|used| !bound.contains(used)) else { continue };
            let known = bound.iter().filter(|(kind, _)| *kind == namespace).map(|(_, name)| *name);
            let help =
                did_you_mean(name, known).unwrap_or_else(|| format!("bind it: {{{{{namespace}:{name}}}}}"));
            errors.push(error(golden, line, hole, format!("no golden of the case binds {name}"), Some(help)));
        }
    }
    errors
}

fn holes(golden: &Golden) -> impl Iterator<Item = (usize, &Hole)> {
    golden.patterns().into_iter().flat_map(|(line, pattern)| pattern.holes().map(move |hole| (line, hole)))
}

fn error(golden: &Golden, line: usize, hole: &Hole, message: String, help: Option<String>) -> Diagnostic {
    let text = golden.text.line(line);
    let shown = hole.to_string();
    let at = text.find(&shown).unwrap_or(0);
    Diagnostic {
        file: golden.file.clone(),
        span: Span { line, column: text[..at].chars().count() + 1, width: shown.chars().count() },
        message,
        help,
        source_line: text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use camino::Utf8Path;

    use super::super::model::{Action, Capture, CapturePart, Stderr};
    use super::*;
    use formats::Format;

    fn found(bodies: &[&str]) -> Vec<String> {
        let step = |(at, body): (usize, &&str)| {
            let file = format!("{at}.golden");
            let text = format!("#@ golden v1\n{body}\n");
            let golden = Golden::parse(Utf8Path::new(&file), text.as_bytes()).expect("valid");
            Step {
                line: 1,
                action: Action::Read { path: "f".to_owned() },
                timeout: Duration::from_secs(1),
                output_limit: 1,
                stderr: Stderr::Empty,
                capture: Some(Capture {
                    name: at.to_string(),
                    format: Format::Plain,
                    part: CapturePart::All,
                    defined_by: None,
                    golden,
                }),
            }
        };
        let steps: Vec<Step> = bodies.iter().enumerate().map(step).collect();
        errors(&steps).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn name_has_one_kind_and_is_bound_across_goldens() {
        assert_eq!(found(&["{{ptr:A}} {{n:B}}", "{{ptr:A}} {{n>=B}}"]), Vec::<String>::new());
        assert_eq!(
            found(&["{{ptr:A}}", "x {{n:A}}"]),
            ["1.golden:2:3: A is the name of a ptr at 0.golden:2, and of a n here (use two names)",]
        );
        assert_eq!(
            found(&["{{n:HITS}}", "{{n==HIT}}"]),
            ["1.golden:2:1: no golden of the case binds HIT (did you mean `HITS`?)",]
        );
    }
}
