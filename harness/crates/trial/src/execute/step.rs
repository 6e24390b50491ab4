//! A step as a request to the agent, and how its end differs from what the case says.

use super::decode;
use super::problem::{StepError, StepProblem, excerpt};
use crate::case::{Action, Case, Step};
use vm::{Answer, Request, StepEnd, Work};

/// What the agent is asked for; nothing for what is done on the host.
pub(super) fn request(case: &Case, step: &Step) -> Option<Request> {
    Some(Request {
        work: match &step.action {
            Action::Inspect { .. } => return None,
            Action::Run { script, log: Some(_), .. } => Work::RunOpen(script.clone()),
            Action::Run { script, log: None, .. } => Work::Run(script.clone()),
            Action::Decode { arguments, data } => Work::Run(decode::command(arguments, data)),
            Action::Read { path } => Work::Read(path.clone()),
        },
        cwd: case.cwd.clone(),
        timeout: step.timeout,
        output_limit: step.output_limit,
    })
}

/// Check that the step ended as its case says.
pub(super) fn check_end(step: &Step, answer: &Answer) -> Result<(), StepError> {
    let expected = match step.action {
        Action::Run { exit_status, .. } => exit_status,
        Action::Read { .. } | Action::Decode { .. } | Action::Inspect { .. } => 0,
    };
    let problem = match (&answer.end, &step.action) {
        (StepEnd::Exited(found), _) if *found == expected => return Ok(()),
        (StepEnd::Exited(found), _) => StepProblem::ExitStatus { found: *found, expected },
        (StepEnd::Signalled(signal), _) => StepProblem::Signal(*signal),
        (StepEnd::TimedOut, _) => StepProblem::TimedOut(step.timeout),
        (StepEnd::Flooded, _) => StepProblem::Flooded(step.output_limit),
        (StepEnd::Errno(errno), Action::Read { path }) => {
            StepProblem::Read { path: path.clone(), errno: *errno }
        }
        (StepEnd::Errno(errno), _) => StepProblem::Shell(*errno),
    };
    Err(StepError { problem, stderr: excerpt(&answer.stderr) })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use vm::KernelState;

    use super::*;
    use crate::case::Stderr;

    fn end(action: Action, end: StepEnd) -> Result<(), String> {
        let step = Step {
            line: 1,
            action,
            timeout: Duration::from_millis(1500),
            output_limit: 8 << 20,
            stderr: Stderr::Empty,
            capture: None,
        };
        let answer = Answer {
            end,
            stdout: Vec::new(),
            stderr: b"one\ntwo\x07\n".to_vec(),
            elapsed: Duration::ZERO,
            held_open: false,
            kernel: KernelState::default(),
        };
        check_end(&step, &answer).map_err(|error| error.to_string())
    }

    fn run(exit_status: u32) -> Action {
        Action::Run { script: "x".to_owned(), exit_status, log: None }
    }

    fn read() -> Action {
        Action::Read { path: "events/x".to_owned() }
    }

    #[test]
    fn expected_exit_status_is_no_error() {
        assert_eq!(end(run(3), StepEnd::Exited(3)), Ok(()));
        assert_eq!(end(read(), StepEnd::Exited(0)), Ok(()));
    }

    #[test]
    fn every_other_end_has_its_words_and_the_steps_last_words() {
        let words = |action, of| {
            let text = end(action, of).expect_err("another end");
            text.strip_suffix("\n    stderr: one\n    stderr: two\x07").expect("the excerpt").to_owned()
        };
        assert_eq!(words(run(0), StepEnd::Exited(1)), "exit status 1, expected 0");
        assert_eq!(words(run(1), StepEnd::Exited(0)), "exit status 0, expected 1");
        assert!(words(run(0), StepEnd::Exited(141)).starts_with("exit status 141, expected 0 (SIGPIPE: "));
        assert_eq!(words(run(0), StepEnd::Signalled(11)), "killed by signal 11");
        assert_eq!(
            words(run(0), StepEnd::TimedOut),
            "timed out after 1500ms: the step was killed (`timeout:` sets another timeout)"
        );
        assert_eq!(
            words(run(0), StepEnd::Flooded),
            "the output reached 8MiB: the step was killed (`output_limit:` sets another limit)"
        );
        assert_eq!(
            words(read(), StepEnd::Errno(2)),
            "failed to read events/x: No such file or directory (os error 2)"
        );
        assert_eq!(
            words(run(0), StepEnd::Errno(12)),
            "failed to start the shell: Cannot allocate memory (os error 12)"
        );
    }

    #[test]
    fn error_number_that_no_system_has_is_never_success() {
        for errno in [0, u32::MAX] {
            let text = end(run(0), StepEnd::Errno(errno)).expect_err("another end");
            assert!(
                text.starts_with(&format!("failed to start the shell: unknown error number {errno}\n")),
                "{text}"
            );
        }
    }
}
