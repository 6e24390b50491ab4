//! An error in an input file, with its place.

use std::fmt;

use camino::Utf8PathBuf;

/// A place in a text file. Lines and columns count from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// Width of the marked text in characters, at least 1.
    pub width: usize,
}

impl Span {
    /// The start of a file.
    pub const START: Span = Span { line: 1, column: 1, width: 1 };
}

/// One error in one file: what is wrong, where, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file, relative to the project's root where it lies inside.
    pub file: Utf8PathBuf,
    /// The marked place.
    pub span: Span,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The line's text, for showing; empty when the file could not be read as text.
    pub source_line: String,
}

impl Diagnostic {
    /// An error of a file as a whole, such as one that cannot be read.
    pub fn whole_file(file: impl Into<Utf8PathBuf>, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            file: file.into(),
            span: Span::START,
            message: message.into(),
            help: None,
            source_line: String::new(),
        }
    }

    /// The same error with advice.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }
}

/// `FILE:LINE:COLUMN: MESSAGE (HELP)`, in one line.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Diagnostic { file, span, message, help, .. } = self;
        write!(f, "{file}:{}:{}: {message}", span.line, span.column)?;
        help.as_ref().map_or(Ok(()), |help| write!(f, " ({help})"))
    }
}

/// Advice naming the candidate nearest to `word`, when one is near.
pub fn did_you_mean<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<String> {
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 3)
        .min()
        .map(|(_, candidate)| format!("did you mean `{candidate}`?"))
}

/// In how many letters two words differ; case alone is one.
fn distance(a: &str, b: &str) -> usize {
    if a.eq_ignore_ascii_case(b) { usize::from(a != b) } else { strsim::damerau_levenshtein(a, b) }
}
