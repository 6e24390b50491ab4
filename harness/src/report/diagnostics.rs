//! Errors in input files, with the line and a caret.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use super::colour::Colour;
use super::escape::escape_char;
use super::text::ReportText;
use diagnostic::Diagnostic;

/// The errors as text, in colour or plain.
pub fn render(errors: &[Diagnostic], colour: Colour) -> ReportText {
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
    ReportText::of_escaped(text)
}

fn one(error: &Diagnostic, renderer: &Renderer) -> String {
    if error.source_line.is_empty() && error.span.column == 1 {
        let help = error.help.as_ref().map(|help| format!("\n  = help: {help}")).unwrap_or_default();
        let text = format!("error: {}\n --> {}:{}{help}", error.message, error.file, error.span.line);
        return shown(&text);
    }
    let (file, message) = (shown(error.file.as_str()), shown(&error.message));
    let help = error.help.as_deref().map(shown);
    // Each character stays one: the column is that in the file.
    let line: String =
        error.source_line.chars().map(|c| if escape_char(c).is_some() { '\u{fffd}' } else { c }).collect();
    let offset = |chars: usize| line.char_indices().nth(chars).map_or(line.len(), |(byte, _)| byte);
    let start = offset(error.span.column - 1);
    let end = offset(error.span.column - 1 + error.span.width).max(start);
    let snippet = Snippet::source(&line)
        .path(&file)
        .line_start(error.span.line)
        .annotation(AnnotationKind::Primary.span(start..end));
    let mut group = Level::ERROR.primary_title(&message).element(snippet);
    if let Some(help) = &help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    renderer.render(&[group])
}

/// Text in which every character is visible, and no colour.
fn shown(text: &str) -> String {
    let mut shown = ReportText::default();
    shown.plain(text);
    shown.to_string()
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
        .assert_eq(render(&[error], Colour::No).as_str());
    }

    #[test]
    fn caret_is_below_its_text_after_an_invisible_character() {
        let mut error = Diagnostic {
            file: "cases/a/out.golden".into(),
            span: Span { line: 2, column: 3, width: 1 },
            message: "the byte \x1b[8m".to_owned(),
            help: Some("\u{202e}".to_owned()),
            source_line: "\u{a0} {\x1bc".to_owned(),
        };
        expect_test::expect![[r"
            error: the byte \x1b[8m
             --> cases/a/out.golden:2:3
              |
            2 | � {�c
              |   ^
              |
              = help: \u{202e}

            1 error; nothing was run
        "]]
        .assert_eq(render(&[error.clone()], Colour::No).as_str());
        error.source_line.clear();
        error.span.column = 1;
        let text = render(&[error], Colour::No);
        assert!(text.as_str().starts_with("error: the byte \\x1b[8m\n"), "{}", text.as_str());
    }
}
