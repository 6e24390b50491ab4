//! Transcripts of real runs, with the tokens that are seen in them.
//!
//! `testdata/NAME.FORMAT` is what a guest or perf printed, `testdata/NAME.FORMAT.tokens` the same
//! with each token marked. Every format has one, and one that has tokens shows some. Those of perf named `dispatch` have the layout of 7.2 and made-up values.
//! `UPDATE_EXPECT=1` writes the marked files anew.

use std::path::PathBuf;

use expect_test::expect_file;

use super::Format;
use super::testing::{messages, show};

#[test]
fn transcript_of_each_format_has_its_tokens_and_keeps_its_rules() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/testdata");
    let mut without: Vec<Format> = Format::ALL.to_vec();
    for entry in directory.read_dir().expect("the directory is there") {
        let path = entry.expect("it can be listed").path();
        let extension = path.extension().unwrap_or_default();
        let Some(format) = extension.to_str().and_then(Format::named) else {
            assert_eq!(extension, "tokens", "{} has no format's name", path.display());
            assert!(path.with_extension("").exists(), "{} has no transcript", path.display());
            continue;
        };
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let marked: String = text.lines().map(|line| show(format, line) + "\n").collect();
        if text.lines().any(|line| !format.tokens(line.as_bytes()).is_empty()) || !format.has_tokens() {
            without.retain(|other| *other != format);
        }
        expect_file![format!("{}.tokens", path.display())].assert_eq(&marked);
        assert_eq!(messages(format, &text), Vec::<String>::new(), "{}", path.display());
    }
    assert_eq!(without, [], "these formats have no transcript in testdata/ that shows their tokens");
}
