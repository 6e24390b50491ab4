//! `format` files of tracefs: how a guest describes its events.
//!
//! The kernel prints a name, an identifier, the fields that all events have, an empty line, the event's
//! own fields, an empty line and the print format, which may have line ends of its own (`f_show`,
//! kernel/trace/trace_events.c, Linux 7.2). Files that follow one another are separated by `name: `.

use formats::Violation;

/// The `format` file of one event. All lines count from 1, in the whole text that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatFile {
    /// The event's name; a format file does not say its system.
    pub name: String,
    /// The line of the name.
    pub line: usize,
    /// The event's number in this boot of the kernel.
    pub id: u32,
    /// The line of the number.
    pub id_line: usize,
    /// The fields that all events have.
    pub common: Vec<FormatField>,
    /// The event's own fields.
    pub fields: Vec<FormatField>,
    /// The text after `print fmt: `, without line ends at its end.
    pub print_format: String,
    /// The line on which the print format begins.
    pub print_line: usize,
}

/// A field, as a `format` file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatField {
    /// Type and name: `TYPE NAME` or `TYPE NAME[LENGTH]`.
    pub declaration: String,
    /// Bytes from the record's start.
    pub offset: u64,
    /// Bytes in the record.
    pub size: u64,
    /// Whether it is signed.
    pub signed: bool,
    /// Its line.
    pub line: usize,
}

/// Read one or more `format` files that follow one another; empty lines may be between them.
///
/// # Errors
/// The first line that does not belong where it is, or is missing.
pub fn read_formats(text: &[u8]) -> Result<Vec<FormatFile>, Violation> {
    let mut lines = FormatLines { lines: text.split(|byte| *byte == b'\n').collect(), at: 0 };
    // After the last line end there is no line.
    if lines.lines.last().is_some_and(|line| line.is_empty()) {
        lines.lines.pop();
    }
    let mut files = Vec::new();
    lines.skip_empty();
    while lines.peek().is_some() {
        files.push(file(&mut lines)?);
        lines.skip_empty();
    }
    Ok(files)
}

struct FormatLines<'t> {
    lines: Vec<&'t [u8]>,
    at: usize,
}

impl<'t> FormatLines<'t> {
    fn peek(&self) -> Option<&'t [u8]> {
        self.lines.get(self.at).copied()
    }

    fn skip_empty(&mut self) {
        while self.peek().is_some_and(<[u8]>::is_empty) {
            self.at += 1;
        }
    }

    fn expected(&self, what: &str) -> Violation {
        let found = match self.peek() {
            Some(line) => format!("found `{}`", String::from_utf8_lossy(line)),
            None => "the text ends".to_owned(),
        };
        Violation { line: self.at + 1, message: format!("expected `{what}`, {found}") }
    }

    /// The rest of the next line, which begins with this, and its number.
    fn eat(&mut self, label: &str, what: &str) -> Result<(String, usize), Violation> {
        let rest = self.peek().and_then(|line| line.strip_prefix(label.as_bytes()));
        let rest = rest.ok_or_else(|| self.expected(what))?;
        self.at += 1;
        Ok((String::from_utf8_lossy(rest).into_owned(), self.at))
    }
}

fn file(lines: &mut FormatLines<'_>) -> Result<FormatFile, Violation> {
    let (name, line) = lines.eat("name: ", "name: EVENT")?;
    let wrong = lines.expected("ID: NUMBER");
    let (id, id_line) = lines.eat("ID: ", "ID: NUMBER")?;
    let id = id.parse().map_err(|_| wrong)?;
    lines.eat("format:", "format:").and_then(|(rest, line)| match rest.as_str() {
        "" => Ok(()),
        _ => Err(Violation { line, message: format!("expected `format:`, found `format:{rest}`") }),
    })?;
    let common = fields(lines)?;
    lines.eat("", "an empty line")?;
    let own = fields(lines)?;
    lines.skip_empty();
    let (mut print_format, print_line) = lines.eat("print fmt: ", "print fmt: FORMAT")?;
    while let Some(line) = lines.peek().filter(|line| !line.starts_with(b"name: ")) {
        print_format.push('\n');
        print_format.push_str(&String::from_utf8_lossy(line));
        lines.at += 1;
    }
    print_format.truncate(print_format.trim_end_matches('\n').len());
    Ok(FormatFile { name, line, id, id_line, common, fields: own, print_format, print_line })
}

/// All fields up to the next empty line.
fn fields(lines: &mut FormatLines<'_>) -> Result<Vec<FormatField>, Violation> {
    const WHAT: &str = "\tfield:TYPE NAME;\\toffset:N;\\tsize:N;\\tsigned:N;";
    let mut found = Vec::new();
    while lines.peek().is_some_and(|line| !line.is_empty()) {
        let wrong = lines.expected(WHAT.trim_start());
        let (text, line) = lines.eat("\tfield:", WHAT.trim_start())?;
        found.push(field(&text, line).ok_or(wrong)?);
    }
    Ok(found)
}

fn field(text: &str, line: usize) -> Option<FormatField> {
    // A type may hold anything; what follows it may not.
    let (rest, signed) = text.strip_suffix(';')?.rsplit_once(";\tsigned:")?;
    let (rest, size) = rest.rsplit_once(";\tsize:")?;
    let (declaration, offset) = rest.rsplit_once(";\toffset:")?;
    Some(FormatField {
        declaration: declaration.to_owned(),
        offset: offset.parse().ok()?,
        size: size.parse().ok()?,
        signed: match signed {
            "0" => false,
            "1" => true,
            _ => return None,
        },
        line,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const TWO: &str = "\
name: foo_bar
ID: 1234
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char foo[10];\toffset:8;\tsize:10;\tsigned:0;

print fmt: \"foo %s
 and on\", REC->foo

name: bare
ID: 7
format:
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;


print fmt: \"nothing\"
";

    #[test]
    fn files_after_one_another_are_read_with_their_lines() {
        let files = read_formats(TWO.as_bytes()).expect("two files");
        let [first, second] = files.as_slice() else { panic!("{files:?}") };
        assert_eq!((first.name.as_str(), first.line, first.id, first.id_line), ("foo_bar", 1, 1234, 2));
        assert_eq!(first.common.len(), 2);
        let declaration = "char foo[10]".to_owned();
        let field = FormatField { declaration, offset: 8, size: 10, signed: false, line: 7 };
        assert_eq!(first.fields, [field]);
        assert_eq!(first.print_format, "\"foo %s\n and on\", REC->foo");
        assert_eq!(first.print_line, 9);
        assert_eq!((second.name.as_str(), second.line, second.print_line), ("bare", 12, 18));
        assert_eq!((second.fields.len(), second.print_format.as_str()), (0, "\"nothing\""));
        assert_eq!(read_formats(b""), Ok(Vec::new()));
    }

    #[test]
    fn unexpected_line_is_a_violation_at_its_line() {
        let error = |from: &str, to: &str| {
            let error = read_formats(TWO.replacen(from, to, 1).as_bytes()).expect_err("not a format file");
            (error.line, error.message)
        };
        assert_eq!(
            error("name: foo_bar", "foo_bar"),
            (1, "expected `name: EVENT`, found `foo_bar`".to_owned())
        );
        assert_eq!(error("ID: 1234", "ID: x"), (2, "expected `ID: NUMBER`, found `ID: x`".to_owned()));
        assert_eq!(error("format:\n", "format: \n"), (3, "expected `format:`, found `format: `".to_owned()));
        assert_eq!(
            error("signed:1", "signed:2"),
            (
                5,
                "expected `field:TYPE NAME;\\toffset:N;\\tsize:N;\\tsigned:N;`, found \
                 `\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:2;`"
                    .to_owned()
            )
        );
        let cut = &TWO[..TWO.find("print fmt").expect("there")];
        let error = read_formats(cut.as_bytes()).expect_err("cut off");
        assert_eq!((error.line, error.message.as_str()), (9, "expected `print fmt: FORMAT`, the text ends"));
    }
}
