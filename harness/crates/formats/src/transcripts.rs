//! Transcripts of real runs, with the tokens that are seen in them.
//!
//! `testdata/NAME.FORMAT` is what a guest or perf printed, `testdata/NAME.FORMAT.tokens` the same
//! with each token marked. Those of perf named `dispatch` have the layout of 7.2 and made-up values.
//! `UPDATE_EXPECT=1` writes the marked files anew.

use std::path::PathBuf;

use expect_test::expect_file;

use super::Format;
use super::testing::{messages, show};

#[test]
fn tokens_of_transcripts() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/testdata");
    let mut seen = 0;
    for entry in folder.read_dir().expect("the folder is there") {
        let path = entry.expect("it can be listed").path();
        let extension = path.extension().unwrap_or_default();
        let Some((_, format)) = Format::ALL.into_iter().find(|(name, _)| extension == *name) else {
            assert_eq!(extension, "tokens", "{} has no format's name", path.display());
            assert!(path.with_extension("").exists(), "{} has no transcript", path.display());
            continue;
        };
        seen += 1;
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let marked: String = text.lines().map(|line| show(format, line) + "\n").collect();
        expect_file![format!("{}.tokens", path.display())].assert_eq(&marked);
        assert_eq!(messages(format, &text), Vec::<String>::new(), "{}", path.display());
    }
    assert!(seen >= 12, "there are {seen} transcripts");
}
