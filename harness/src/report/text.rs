//! ReportText for a person, in which nothing but our own colours controls the terminal.
//!
//! Whatever is written is escaped, wherever it comes from: a guest, a compiler, a file's name. So no report has to know
//! which of its parts somebody else could choose. Lines and tabs stay. What GitHub's runner would take for a command in
//! a job's log, a line that begins with `::` or has `##[`, is escaped too.

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
                None if self.would_be_workflow_command(c) => {
                    let _ = write!(self.0, "\\x{:02x}", u32::from(c));
                }
                None => self.0.push(c),
            }
        }
    }

    /// Whether a character would make a workflow command of GitHub's runner of the line so far.
    fn would_be_workflow_command(&self, c: char) -> bool {
        match c {
            ':' if self.0.ends_with(':') => {
                // A style is not printed where no terminal is.
                let line = self.0.rsplit('\n').next().unwrap_or_default();
                anstream::adapter::strip_str(line).to_string().trim_start() == ":"
            }
            '[' => self.0.ends_with("##"),
            _ => false,
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

    #[test]
    fn workflow_commands_are_escaped() {
        let shown = |text: &str| ReportText::of(format_args!("{text}")).as_str().to_owned();
        assert_eq!(shown("::a::b\n \t::c\nd::e"), ":\\x3aa::b\n \t:\\x3ac\nd::e");
        assert_eq!(shown("a##[b] #[c]"), "a##\\x5bb] #[c]");
        // In pieces, and behind a style.
        let mut text = ReportText::of(format_args!("{}{}", "  :", ":a\n#"));
        text.plain("#");
        text.plain("[b]\n");
        text.styled(AnsiColor::Red.on_default(), "::c");
        assert_eq!(text.as_str(), "  :\\x3aa\n##\\x5bb]\n\x1b[31m:\\x3ac\x1b[0m");
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
