//! A golden's own lines.

/// The lines of a golden as they are written, the head included: one text, and where its lines end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text {
    text: String,
    /// Where each line ends, without its newline.
    ends: Vec<usize>,
}

impl Text {
    /// The lines of a text. The last one may have no newline.
    pub fn new(text: String) -> Text {
        let mut ends: Vec<usize> = memchr::memchr_iter(b'\n', text.as_bytes()).collect();
        ends.extend((!text.is_empty() && !text.ends_with('\n')).then_some(text.len()));
        Text { text, ends }
    }

    /// How many lines there are.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// The line of this number, from 1, without its newline; empty where there is none.
    pub fn line(&self, number: usize) -> &str {
        let Some(at) = number.checked_sub(1).filter(|at| *at < self.ends.len()) else { return "" };
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before] + 1);
        &self.text[start..self.ends[at]]
    }

    /// The lines with their numbers, from 1.
    pub fn numbered(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..=self.count()).map(|number| (number, self.line(number)))
    }

    /// The last line, when it has no newline.
    pub(super) fn unterminated_line(&self) -> Option<&str> {
        (!self.text.ends_with('\n')).then(|| self.line(self.count())).filter(|line| !line.is_empty())
    }

    /// The same lines with another first one.
    pub(crate) fn with_first(&self, first: &str) -> Text {
        let rest = self.ends.first().map_or("\n", |end| &self.text[*end..]);
        Text::new(format!("{first}{rest}"))
    }

    /// All of it.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_from_one() {
        let all = |text: &str| {
            let text = Text::new(text.to_owned());
            text.numbered().map(|(at, line)| format!("{at}{line}")).collect::<Vec<_>>().join("|")
        };
        assert_eq!(all(""), "");
        assert_eq!(all("\n"), "1");
        assert_eq!(all("a\n\nb\n"), "1a|2|3b");
        assert_eq!(all("a\nb"), "1a|2b");
        let text = Text::new("a\nb".to_owned());
        assert_eq!((text.line(0), text.line(2), text.line(3)), ("", "b", ""));
        assert_eq!(text.unterminated_line(), Some("b"));
        assert_eq!(Text::new("a\n".to_owned()).unterminated_line(), None);
        assert_eq!(text.with_first("x").as_str(), "x\nb");
    }
}
