//! Reports of a guest that puts control sequences wherever its text is shown.

use std::time::Duration;

use formats::Format;
use trial::{
    CaptureFailure, DecodeFailure, ExpectedFailure, Failure, ModuleFailure, Outcome, SecondDecoding,
    StepError, StepFailure, StepPlace, StepProblem, TrialError, TrialResult,
};

use super::testing::{capture_failure, result};
use super::{Colour, RerunHint, describe_group, headline};

/// What a terminal would obey or not show: the clipboard (OSC 52), a reset, C1 control characters, a carriage return, an
/// override of the direction, a no-break space, a conceal.
const HOSTILE: &str = "A\x1b]52;c;aGk=\x07B\x1bcC\u{9b}31mD\rE\u{202e}F\u{a0}G\x1b[8mH\u{85}I\x7fJ";

fn step() -> StepPlace {
    StepPlace { file: format!("case{HOSTILE}.yaml").into(), line: 3, summary: HOSTILE.to_owned() }
}

fn failures() -> Vec<Failure> {
    let Failure::Capture(capture) = capture_failure("a\n", &format!("{HOSTILE}\n"), Format::Plain) else {
        panic!("a capture")
    };
    let capture = CaptureFailure { file: HOSTILE.into(), ..*capture };
    let mut splat = vm::Splat::scan(b"WARNING: kernel/x.c:1 at f+0x1/0x2\n").remove(0);
    splat.line = HOSTILE.to_owned();
    let second = SecondDecoding {
        guest: guest::GuestName::new(HOSTILE),
        command: HOSTILE.to_owned(),
        dir: HOSTILE.into(),
        stdout: HOSTILE.as_bytes().to_vec(),
        failed: Some(HOSTILE.to_owned()),
    };
    let decoded = DecodeFailure { step: step(), guest: b"other".to_vec(), file: HOSTILE.into(), second };
    let problem = StepProblem::Read { path: HOSTILE.to_owned(), errno: 5 };
    let failed = StepFailure {
        step: Some(step()),
        error: StepError { problem, stderr: HOSTILE.to_owned() },
        tail: HOSTILE.to_owned(),
        console: HOSTILE.into(),
    };
    let module =
        ModuleFailure { step: step(), module: HOSTILE.to_owned(), differences: vec![HOSTILE.to_owned()] };
    vec![
        Failure::Capture(Box::new(capture)),
        Failure::Step(Box::new(failed)),
        Failure::Kernel { splat, others: 2, step: Some(step()), console: HOSTILE.into() },
        Failure::Decoded(Box::new(decoded)),
        Failure::Module(Box::new(module)),
    ]
}

fn outcomes() -> Vec<Outcome> {
    let text = || HOSTILE.to_owned();
    let bug = || ExpectedFailure { file: HOSTILE.into(), line: 1, reason: text() };
    vec![
        Outcome::Fail(failures()),
        Outcome::Xpass { gone: vec![bug()], failures: failures() },
        Outcome::Xfail(vec![bug()]),
        Outcome::Skip(text()),
        Outcome::Error(Box::new(TrialError {
            what: text(),
            step: Some(step()),
            command: text(),
            stderr: text(),
            console: text(),
            dir: Some(HOSTILE.into()),
        })),
    ]
}

/// Everything that a person would see.
fn shown(outcome: Outcome, colour: Colour) -> String {
    let name = format!("a@{HOSTILE}");
    let trial = TrialResult { elapsed: Duration::from_secs(1), ..result(&name, outcome) };
    let hint = RerunHint { run: HOSTILE, bless: Some(HOSTILE.to_owned()) };
    let described = describe_group(&[&trial, &trial], &hint, colour);
    format!("{}\n{}", headline(&trial), described.map(|text| text.to_string()).unwrap_or_default())
}

#[test]
fn no_text_of_a_guest_reaches_the_terminal_raw() {
    for colour in [Colour::No, Colour::Yes] {
        for outcome in outcomes() {
            let text = shown(outcome, colour);
            // Colours are ours: without them nothing is left that a terminal obeys.
            let plain = anstream::adapter::strip_str(&text).to_string();
            for part in [
                "\\x1b]52;c;aGk=\\x07B",
                "\\x1bcC",
                "\\u{9b}31m",
                "\\x0dE",
                "\\u{202e}",
                "\\u{a0}",
                "\\x1b[8mH",
            ] {
                assert!(plain.contains(part), "{colour:?}: no `{part}` in {text:?}");
            }
            assert!(!text.contains("\x1b[8m"), "{colour:?}: {text:?}");
            let raw = plain
                .chars()
                .find(|c| c.is_control() && !"\n\t".contains(*c) || "\u{202e}\u{a0}".contains(*c));
            assert_eq!(raw, None, "{colour:?}: {text:?}");
        }
    }
}
