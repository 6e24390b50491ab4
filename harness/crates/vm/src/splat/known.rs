//! The messages that a healthy guest prints at warning level or above.

use guest::KnownMessage;
use regex::{Regex, RegexSet};

/// The messages at warning level or above that are not splats, as a guest's description lists them.
#[derive(Debug, Clone, Default)]
pub struct KnownMessages {
    set: RegexSet,
}

impl KnownMessages {
    /// Messages of a guest. A pattern matches a whole line, without its level and time stamp.
    ///
    /// # Errors
    /// When a pattern is not a regular expression; that of a guest that was read from its file is one.
    pub fn new(messages: &[KnownMessage]) -> Result<KnownMessages, regex::Error> {
        let whole = |message: &KnownMessage| -> Result<String, regex::Error> {
            // On its own first: `a)|(b` must not become one by what is put around it.
            Regex::new(&message.pattern)?;
            Ok(format!("^(?:{})$", message.pattern))
        };
        let patterns = messages.iter().map(whole).collect::<Result<Vec<_>, _>>()?;
        Ok(KnownMessages { set: RegexSet::new(patterns)? })
    }

    /// The numbers of the messages that a line is, from 0.
    pub(super) fn matches(&self, line: &str) -> impl Iterator<Item = usize> {
        self.set.matches(line).into_iter()
    }
}
