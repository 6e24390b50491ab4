//! The first line of a golden: `#@ golden v1 case=... capture=... steps=... blessed=...`.

use std::fmt;

use diagnostic::did_you_mean;

use super::SyntaxError;

/// How the first line of every golden begins. A golden of this line alone expects an empty capture.
pub const HEADER: &str = "#@ golden v1";

/// The keys of the first line. A golden written by hand needs none of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// The case that it belongs to.
    pub case: Option<String>,
    /// The capture that it is for.
    pub capture: Option<String>,
    /// The digest of the steps up to the capture, as they were when it was written.
    pub steps: Option<String>,
    /// The guest and the kernel whose capture it was written from, `GUEST/KERNEL`.
    pub blessed: Option<String>,
}

const KEYS: [&str; 4] = ["case", "capture", "steps", "blessed"];

impl Header {
    pub(super) fn parse(line: &str) -> Result<Header, SyntaxError> {
        let rest = line
            .strip_prefix(HEADER)
            .filter(|rest| rest.is_empty() || rest.starts_with(' '))
            .ok_or_else(|| {
                let message = format!("the first line of a golden must be `{HEADER}`");
                SyntaxError::new(0..line.len(), message).with_help(Header::help())
            })?;
        let mut header = Header::default();
        let mut at = HEADER.len();
        for word in rest.split(' ').skip(1) {
            let span = at + 1..at + 1 + word.len();
            at = span.end;
            let Some((key, value)) = word.split_once('=').filter(|(_, value)| !value.is_empty()) else {
                let message = format!("expected key=value, found `{word}`");
                return Err(SyntaxError::new(span, message).with_help(Header::help()));
            };
            let Some(field) = header.field(key) else {
                let help =
                    did_you_mean(key, KEYS).unwrap_or_else(|| format!("the keys are {}", KEYS.join(", ")));
                return Err(SyntaxError::new(span, format!("unknown key `{key}`")).with_help(help));
            };
            if field.replace(value.to_owned()).is_some() {
                return Err(SyntaxError::new(span, format!("duplicate key `{key}`")).with_help("remove one"));
            }
        }
        Ok(header)
    }

    pub(super) fn help() -> String {
        format!("begin the file with `{HEADER}`; that line alone expects an empty capture")
    }

    fn field(&mut self, key: &str) -> Option<&mut Option<String>> {
        match key {
            "case" => Some(&mut self.case),
            "capture" => Some(&mut self.capture),
            "steps" => Some(&mut self.steps),
            "blessed" => Some(&mut self.blessed),
            _ => None,
        }
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEADER)?;
        for (key, value) in KEYS.iter().zip([&self.case, &self.capture, &self.steps, &self.blessed]) {
            if let Some(value) = value {
                write!(f, " {key}={value}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn print_and_parse_are_inverse() {
        for line in ["#@ golden v1", "#@ golden v1 case=a/b capture=c.hist steps=0123 blessed=x86_64/7.2.12"]
        {
            assert_eq!(Header::parse(line).expect("valid").to_string(), line);
        }
    }

    #[test]
    fn errors_have_spans_and_help() {
        let error = |line| {
            let error = Header::parse(line).expect_err("wrong");
            (error.span.start, error.message, error.help.unwrap_or_default())
        };
        assert_eq!(
            error("#@ golden v2"),
            (0, "the first line of a golden must be `#@ golden v1`".into(), Header::help())
        );
        assert_eq!(
            error("#@ golden v1 cse=x"),
            (13, "unknown key `cse`".into(), "did you mean `case`?".into())
        );
        assert_eq!(error("#@ golden v1 case=").1, "expected key=value, found `case=`");
        assert_eq!(error("#@ golden v1 case=a case=b").1, "duplicate key `case`");
        assert_eq!(error("#@ golden v1 zzzzz=a").2, "the keys are case, capture, steps, blessed");
    }
}
