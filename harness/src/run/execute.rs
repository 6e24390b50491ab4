//! One trial, executed.

use std::fs;
use std::time::Duration;

use super::artefacts::TrialDir;
use super::lab::{Bench, Userland};
use crate::agent::{Answer, Ended, Request, Session, SessionError, Work};
use crate::case::{Action, Case, Step};
use crate::qemu::{Complaint, Console, Machine, Mode, Stop};

/// How many bytes a step may print. A large hist_debug file has 20 KiB.
const OUTPUT_LIMIT: u32 = 8 << 20;

/// What happened in a trial, as plain data.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    /// What QEMU was started with.
    pub command: String,
    /// From QEMU's start to the agent's greeting; `None` when there was none.
    pub boot_time: Option<Duration>,
    /// The steps that were answered, in order.
    pub steps: Vec<StepRecord>,
    /// What kept the trial from its end; `None` when every step was done and the guest ended as told.
    pub trouble: Option<Trouble>,
    /// The kernel's complaints, in order.
    pub complaints: Vec<Complaint>,
    /// The whole console.
    pub console: String,
    /// What QEMU printed on its standard error.
    pub stderr: String,
}

/// A step that was answered.
#[derive(Debug, Clone)]
pub struct StepRecord {
    /// The agent's answer.
    pub answer: Answer,
}

/// What kept a trial from its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The kernel panicked. After the agent's greeting, that is the kernel's failure.
    Panic,
    /// A step ended otherwise than the case says.
    Step(String),
    /// The machine, the agent or the harness did not do its part.
    Machine(String),
    /// The user has interrupted.
    Interrupted,
}

/// Boot the guest, do the steps, end the guest. Keeps everything in `dir`.
///
/// # Errors
/// When what must be kept cannot be written.
pub fn execute(case: &Case, bench: &Bench, dir: &TrialDir) -> std::io::Result<Transcript> {
    let mut transcript = Transcript::default();
    let userland = Userland::of(case);
    let machine = match bench.start(userland, Mode::Agent, &dir.dir, Console::Watched) {
        Ok(machine) => machine,
        Err(error) => {
            transcript.trouble = Some(match error.error.kind() {
                std::io::ErrorKind::Interrupted => Trouble::Interrupted,
                _ => Trouble::Machine(format!("failed to start QEMU: {}", error.error)),
            });
            transcript.command = error.command;
            return Ok(transcript);
        }
    };
    machine.command().clone_into(&mut transcript.command);
    fs::write(dir.dir.join("qemu-command"), format!("{}\n", transcript.command))?;
    let release = &bench.image.kernel.release;
    let mut machine = match Session::open(machine, release, bench.guest.cpus, bench.boot_limit) {
        Ok(mut session) => {
            transcript.boot_time = Some(session.boot_time());
            match steps(&mut session, case, dir, &mut transcript)? {
                Some(trouble) => {
                    transcript.trouble = Some(trouble);
                    session.into_machine()
                }
                None => {
                    let (machine, ended) = session.end();
                    transcript.trouble = ended.err().map(trouble);
                    machine
                }
            }
        }
        Err(failed) => {
            transcript.trouble = Some(trouble(failed.error));
            failed.machine
        }
    };
    conclude(&mut machine, &mut transcript);
    Ok(transcript)
}

fn conclude(machine: &mut Machine, transcript: &mut Transcript) {
    machine.finish();
    transcript.complaints = machine.complaints().to_vec();
    transcript.console = machine.console();
    transcript.stderr = machine.stderr();
}

fn steps(
    session: &mut Session,
    case: &Case,
    dir: &TrialDir,
    transcript: &mut Transcript,
) -> std::io::Result<Option<Trouble>> {
    for (at, step) in case.steps.iter().enumerate() {
        let answer = match session.request(&request(case, step)) {
            Ok(answer) => answer,
            Err(error) => return Ok(Some(trouble(error))),
        };
        for (stream, bytes) in [("stdout", &answer.stdout), ("stderr", &answer.stderr)] {
            if !bytes.is_empty() {
                fs::write(dir.step(at + 1, stream), bytes)?;
            }
        }
        let wrong = unexpected(step, &answer);
        if let (Some(capture), None) = (&step.capture, &wrong) {
            fs::write(dir.capture(&capture.name), &answer.stdout)?;
        }
        transcript.steps.push(StepRecord { answer });
        if let Some(what) = wrong {
            return Ok(Some(Trouble::Step(what)));
        }
    }
    Ok(None)
}

fn request(case: &Case, step: &Step) -> Request {
    Request {
        work: match &step.action {
            Action::Run { script, .. } => Work::Run(script.clone()),
            Action::Read { path } => Work::Read(path.clone()),
        },
        directory: case.directory.clone(),
        limit: step.limit,
        output_limit: OUTPUT_LIMIT,
    }
}

/// How the step's end differs from what the case says; `None` when it does not.
fn unexpected(step: &Step, answer: &Answer) -> Option<String> {
    let expected = match step.action {
        Action::Run { status, .. } => status,
        Action::Read { .. } => 0,
    };
    let what = match answer.ended {
        Ended::Exited(status) if status == expected => return None,
        Ended::Exited(status) => format!("exit status {status}, and {expected} was expected"),
        Ended::Signalled(signal) => format!("ended by signal {signal}"),
        Ended::TimedOut => {
            format!(
                "no end within {:.1} s: the step was killed (`limit:` sets another limit)",
                step.limit.as_secs_f64()
            )
        }
        Ended::Flooded => format!("more than {} MiB of output: the step was killed", OUTPUT_LIMIT >> 20),
        Ended::Errno(errno) => {
            let error = std::io::Error::from_raw_os_error(i32::try_from(errno).unwrap_or(0));
            match &step.action {
                Action::Run { .. } => format!("the shell could not be started: {error}"),
                Action::Read { path } => format!("failed to read {path}: {error}"),
            }
        }
    };
    Some(format!("{what}{}", excerpt(&answer.stderr)))
}

/// The end of a step's standard error, for a message.
fn excerpt(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(10)..];
    last.iter().map(|line| format!("\n    stderr: {}", line.escape_debug())).collect()
}

fn trouble(error: SessionError) -> Trouble {
    match error {
        SessionError::Stopped(Stop::Panicked(_)) => Trouble::Panic,
        SessionError::Stopped(Stop::Interrupted) => Trouble::Interrupted,
        other => Trouble::Machine(other.to_string()),
    }
}
