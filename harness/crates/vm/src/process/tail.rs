//! The end of a text or of a file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use camino::Utf8Path;

/// The last `count` lines of a text.
pub fn last_lines(text: &str, count: usize) -> &str {
    let text = text.trim_end_matches('\n');
    let begins = text.rmatch_indices('\n').nth(count.saturating_sub(1)).map_or(0, |(at, _)| at + 1);
    if count == 0 { "" } else { &text[begins..] }
}

/// The last `max` bytes of a file, as text. No more than these is read.
///
/// # Errors
/// When the file cannot be read.
pub fn tail_of_file(file: &Utf8Path, max: u64) -> io::Result<String> {
    let mut file = File::open(file)?;
    let size = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(size.saturating_sub(max)))?;
    let mut bytes = Vec::new();
    file.take(max).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_lines_are_the_text_from_the_nth_line_before_the_end() {
        let text = "a\nb\nc\n";
        assert_eq!(last_lines(text, 2), "b\nc");
        assert_eq!(last_lines(text, 3), "a\nb\nc");
        assert_eq!(last_lines(text, 9), "a\nb\nc");
        assert_eq!(last_lines(text, 0), "");
        assert_eq!(last_lines("", 2), "");
        assert_eq!(last_lines("one", 1), "one");
    }

    #[test]
    fn tail_of_a_file_is_its_end_and_a_missing_file_is_an_error() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = Utf8Path::from_path(dir.path()).expect("UTF-8").join("f");
        std::fs::write(&path, "0123456789").expect("written");
        assert_eq!(tail_of_file(&path, 4).expect("readable"), "6789");
        assert_eq!(tail_of_file(&path, 40).expect("readable"), "0123456789");
        assert!(tail_of_file(&path.with_extension("absent"), 4).is_err());
    }
}
