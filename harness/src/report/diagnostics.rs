//! Faults of input files, with the line and a caret.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use super::colour::Colour;
use diagnostic::Diagnostic;

/// The faults as text, in colour or plain.
pub fn render(faults: &[Diagnostic], colour: Colour) -> String {
    let renderer = match colour {
        Colour::Yes => Renderer::styled(),
        Colour::No => Renderer::plain(),
    };
    let mut text = String::new();
    for fault in faults {
        text.push_str(&one(fault, &renderer));
        text.push_str("\n\n");
    }
    let plural = if faults.len() == 1 { "" } else { "s" };
    text.push_str(&format!("{} error{plural}; nothing was run\n", faults.len()));
    text
}

fn one(fault: &Diagnostic, renderer: &Renderer) -> String {
    if fault.source_line.is_empty() && fault.span.column == 1 {
        let help = fault.help.as_ref().map(|help| format!("\n  = help: {help}")).unwrap_or_default();
        return format!("error: {}\n --> {}:{}{help}", fault.message, fault.file, fault.span.line);
    }
    let offset = |chars: usize| {
        fault.source_line.char_indices().nth(chars).map_or(fault.source_line.len(), |(byte, _)| byte)
    };
    let start = offset(fault.span.column - 1);
    let end = offset(fault.span.column - 1 + fault.span.width).max(start);
    let snippet = Snippet::source(&fault.source_line)
        .path(fault.file.as_str())
        .line_start(fault.span.line)
        .annotation(AnnotationKind::Primary.span(start..end));
    let mut group = Level::ERROR.primary_title(&fault.message).element(snippet);
    if let Some(help) = &fault.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    renderer.render(&[group])
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnostic::Span;

    #[test]
    fn a_fault_shows_its_line_and_a_caret() {
        let fault = Diagnostic {
            file: "cases/a/case.yaml".into(),
            span: Span { line: 7, column: 3, width: 5 },
            message: "unknown key `titel`".to_owned(),
            help: Some("did you mean `title`?".to_owned()),
            source_line: "  titel: x".to_owned(),
        };
        expect_test::expect![[r"
            error: unknown key `titel`
             --> cases/a/case.yaml:7:3
              |
            7 |   titel: x
              |   ^^^^^
              |
              = help: did you mean `title`?

            1 error; nothing was run
        "]]
        .assert_eq(&render(&[fault], Colour::No));
    }
}
