//! The first line of a golden: `#@ golden v1 case=... capture=... steps=... blessed=...`.

use std::fmt;
use std::ops::Range;

use diagnostic::did_you_mean;

/// How the first line of every golden begins; alone it is a golden that expects nothing.
pub const HEAD: &str = "#@ golden v1";

/// What a golden says of itself. A golden written by hand need not say anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// The case that it belongs to.
    pub case: Option<String>,
    /// The capture that it is for.
    pub capture: Option<String>,
    /// The digest of the steps up to the capture, as they were when it was written.
    pub steps: Option<String>,
    /// The guest and the kernel whose capture it was written from, `GUEST/KERNEL`.
    pub blessed: Option<String>,
}

/// A fault of the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeadFault {
    pub(super) span: Range<usize>,
    pub(super) message: String,
    pub(super) help: String,
}

const KEYS: [&str; 4] = ["case", "capture", "steps", "blessed"];

impl Head {
    pub(super) fn parse(line: &str) -> Result<Head, HeadFault> {
        let fault = |span: Range<usize>, message: String, help: String| HeadFault { span, message, help };
        let rest =
            line.strip_prefix(HEAD).filter(|rest| rest.is_empty() || rest.starts_with(' ')).ok_or_else(
                || fault(0..line.len(), "a golden begins with another line".to_owned(), Head::help()),
            )?;
        let mut head = Head::default();
        let mut at = HEAD.len();
        for word in rest.split(' ').skip(1) {
            let span = at + 1..at + 1 + word.len();
            at = span.end;
            let Some((key, value)) = word.split_once('=').filter(|(_, value)| !value.is_empty()) else {
                let message = format!("`{word}` is no key=value");
                return Err(fault(span, message, Head::help()));
            };
            let Some(place) = head.place(key) else {
                let help =
                    did_you_mean(key, KEYS).unwrap_or_else(|| format!("the keys are {}", KEYS.join(", ")));
                return Err(fault(span, format!("unknown key `{key}`"), help));
            };
            if place.replace(value.to_owned()).is_some() {
                return Err(fault(span, format!("`{key}` is given twice"), "remove one".to_owned()));
            }
        }
        Ok(head)
    }

    pub(super) fn help() -> String {
        format!("the first line is `{HEAD}`; a golden of that line alone says that nothing is expected")
    }

    fn place(&mut self, key: &str) -> Option<&mut Option<String>> {
        match key {
            "case" => Some(&mut self.case),
            "capture" => Some(&mut self.capture),
            "steps" => Some(&mut self.steps),
            "blessed" => Some(&mut self.blessed),
            _ => None,
        }
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEAD)?;
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
            assert_eq!(Head::parse(line).expect("valid").to_string(), line);
        }
    }

    #[test]
    fn faults_are_placed() {
        let fault = |line| {
            let fault = Head::parse(line).expect_err("faulty");
            (fault.span.start, fault.message, fault.help)
        };
        assert_eq!(fault("#@ golden v2").0, 0);
        assert_eq!(
            fault("#@ golden v1 cse=x"),
            (13, "unknown key `cse`".into(), "did you mean `case`?".into())
        );
        assert_eq!(fault("#@ golden v1 case=").1, "`case=` is no key=value");
        assert_eq!(fault("#@ golden v1 case=a case=b").1, "`case` is given twice");
    }
}
