//! ReportText for a person, in which nothing but our own colours controls the terminal.
//!
//! Whatever is written is escaped, wherever it comes from: a guest, a compiler, a file's name. So no report has to know
//! which of its parts somebody else could choose. Lines and tabs stay.

use std::fmt::{self, Write};

use anstyle::Style;

use super::escape::escape_char;

/// Text for a person. It is written with [`fmt::Write`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportText(String);

impl ReportText {
    /// What the arguments of a format print.
    pub fn of(arguments: fmt::Arguments<'_>) -> ReportText {
        let mut text = ReportText::default();
        // It fails where something that is printed does: what it printed until then stays.
        let _ = text.write_fmt(arguments);
        text
    }

    /// Text that is escaped already, and may have our colours.
    pub(super) fn of_escaped(text: String) -> ReportText {
        ReportText(text)
    }

    /// Add text.
    pub fn plain(&mut self, text: &str) {
        for c in text.chars() {
            match escape_char(c).filter(|_| c != '\n') {
                Some(escape) => self.0.push_str(&escape),
                None => self.0.push(c),
            }
        }
    }

    /// Add text in a style.
    pub(super) fn styled(&mut self, style: Style, text: &str) {
        if text.is_empty() {
            return;
        }
        self.0.push_str(&style.render().to_string());
        self.plain(text);
        self.0.push_str(&style.render_reset().to_string());
    }

    /// Add a text as it is.
    pub fn append(&mut self, text: &ReportText) {
        self.0.push_str(&text.0);
    }

    /// End a line.
    pub fn end_line(&mut self) {
        self.0.push('\n');
    }

    /// What is printed.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Write for ReportText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.plain(text);
        Ok(())
    }
}

impl fmt::Display for ReportText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use anstyle::AnsiColor;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_styles_are_control_sequences() {
        let mut text = ReportText::of(format_args!("a\x1b[8m{}\tb\n", "\u{202e}"));
        text.styled(AnsiColor::Red.on_default(), "c\x1b[0m");
        text.styled(AnsiColor::Red.on_default(), "");
        text.styled(Style::new(), "d");
        let mut whole = ReportText::default();
        whole.append(&text);
        assert_eq!(whole.as_str(), "a\\x1b[8m\\u{202e}\tb\n\x1b[31mc\\x1b[0m\x1b[0md");
    }

    proptest! {
        #[test]
        fn written_text_has_no_control_character(text: String) {
            let shown = ReportText::of(format_args!("{text}"));
            prop_assert!(!shown.as_str().chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
            prop_assert_eq!(ReportText::of(format_args!("{shown}")), shown);
        }
    }
}
