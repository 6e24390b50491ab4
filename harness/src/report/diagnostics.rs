//! Errors in input files, with the line and a caret.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use super::colour::Colour;
use diagnostic::Diagnostic;

/// The errors as text, in colour or plain.
pub fn render(errors: &[Diagnostic], colour: Colour) -> String {
    let renderer = match colour {
        Colour::Yes => Renderer::styled(),
        Colour::No => Renderer::plain(),
    };
    let mut text = String::new();
    for error in errors {
        text.push_str(&one(error, &renderer));
        text.push_str("\n\n");
    }
    let plural = if errors.len() == 1 { "" } else { "s" };
    text.push_str(&format!("{} error{plural}; nothing was run\n", errors.len()));
    text
}

fn one(error: &Diagnostic, renderer: &Renderer) -> String {
    if error.source_line.is_empty() && error.span.column == 1 {
        let help = error.help.as_ref().map(|help| format!("\n  = help: {help}")).unwrap_or_default();
        return format!("error: {}\n --> {}:{}{help}", error.message, error.file, error.span.line);
    }
    let offset = |chars: usize| {
        error.source_line.char_indices().nth(chars).map_or(error.source_line.len(), |(byte, _)| byte)
    };
    let start = offset(error.span.column - 1);
    let end = offset(error.span.column - 1 + error.span.width).max(start);
    let snippet = Snippet::source(&error.source_line)
        .path(error.file.as_str())
        .line_start(error.span.line)
        .annotation(AnnotationKind::Primary.span(start..end));
    let mut group = Level::ERROR.primary_title(&error.message).element(snippet);
    if let Some(help) = &error.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    renderer.render(&[group])
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnostic::Span;

    #[test]
    fn error_shows_its_line_and_a_caret() {
        let error = Diagnostic {
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
        .assert_eq(&render(&[error], Colour::No));
    }
}
