//! One trial, executed.

mod abort;
mod decode;
mod dispatch_log;
mod inspect;

use std::fs;
use std::time::Duration;

use camino::Utf8Path;

use crate::artefacts::TrialDir;
use crate::case::{Action, Capture, Case, Step};
use crate::prepare::{BootError, PreparedGuest, rootfs_spec};
use dtl::Written;
use formats::units::show_duration;
use vm::qemu::{GuestControl, Machine};
use vm::{Answer, Request, Session, Splat, StepEnd, Work};
use yaml::show_size;

pub use abort::Abort;
use abort::excerpt;
pub use decode::HostOutput;
use dispatch_log::run_with_dispatch_log;
pub use inspect::Inspected;
use inspect::inspect;

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
    pub abort: Option<Abort>,
    /// The kernel's complaints, in order.
    pub complaints: Vec<Splat>,
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
    /// What was written to the dispatch trace log while its command ran.
    pub written: Option<Written>,
    /// What perf printed on the host of the same data.
    pub host: Option<HostOutput>,
    /// The module that the step has looked at, or whose events' formats it has read.
    pub inspected: Option<Inspected>,
}

/// Boot the guest, do the steps, end the guest. Keeps everything in `dir`.
///
/// # Errors
/// When what must be kept cannot be written.
pub fn execute(
    case: &Case,
    ready: &PreparedGuest,
    host_perf: Option<&Utf8Path>,
    dir: &TrialDir,
) -> std::io::Result<Transcript> {
    let mut transcript = Transcript::default();
    if !case.boots() {
        transcript.abort = on_host_alone(case, ready, dir, &mut transcript.steps)?;
        return Ok(transcript);
    }
    let machine = match ready.start_trial(case, &dir.dir) {
        Ok(machine) => machine,
        Err(error) => {
            let (abort, command) = match error {
                BootError::Image(error) if error.is_interrupt() => (Abort::Interrupted, String::new()),
                BootError::Image(error) => (Abort::Machine(error.to_string()), String::new()),
                BootError::Start(error) if error.error.kind() == std::io::ErrorKind::Interrupted => {
                    (Abort::Interrupted, error.command)
                }
                BootError::Start(error) => {
                    (Abort::Machine(format!("failed to start QEMU: {}", error.error)), error.command)
                }
            };
            (transcript.abort, transcript.command) = (Some(abort), command);
            return Ok(transcript);
        }
    };
    machine.command().clone_into(&mut transcript.command);
    fs::write(dir.dir.join("qemu-command"), format!("{}\n", transcript.command))?;
    let release = &ready.image.kernel.release;
    let mut machine = match Session::open(machine, release, ready.guest.cpus, ready.boot_limit) {
        Ok(mut session) => {
            transcript.boot_time = Some(session.boot_time());
            let copies = decode::Copies::default();
            let guest = Guest { control: session.take_control(), ready, host_perf, copies };
            match steps(&mut session, guest, case, dir, &mut transcript)? {
                Some(abort) => {
                    transcript.abort = Some(abort);
                    session.into_machine()
                }
                None => {
                    let (machine, ended) = session.end();
                    transcript.abort = ended.err().map(Abort::from);
                    machine
                }
            }
        }
        Err(failed) => {
            transcript.abort = Some(failed.error.into());
            failed.machine
        }
    };
    conclude(&mut machine, &mut transcript);
    Ok(transcript)
}

/// The console is judged, so it has to be complete.
fn conclude(machine: &mut Machine, transcript: &mut Transcript) {
    let finished = machine.finish();
    transcript.complaints = machine.splats();
    let console = machine.console().map(|text| transcript.console = text);
    let stderr = machine.stderr().map(|text| transcript.stderr = text);
    let failed = finished.err().map(|error| error.to_string()).or_else(|| {
        let error = console.and(stderr).err()?;
        Some(format!("failed to read the guest's console or QEMU's standard error: {error}"))
    });
    if let (Some(error), None) = (failed, &transcript.abort) {
        transcript.abort = Some(Abort::Machine(error));
    }
}

/// What is at hand besides the agent.
struct Guest<'b> {
    control: Option<GuestControl>,
    ready: &'b PreparedGuest,
    host_perf: Option<&'b Utf8Path>,
    copies: decode::Copies,
}

fn steps(
    session: &mut Session,
    mut guest: Guest<'_>,
    case: &Case,
    dir: &TrialDir,
    transcript: &mut Transcript,
) -> std::io::Result<Option<Abort>> {
    for (at, step) in case.steps.iter().enumerate() {
        let done = match answer(session, &mut guest, case, step) {
            Ok(done) => done,
            Err(abort) => return Ok(Some(abort)),
        };
        keep(case, at, &done.answer, dir)?;
        let wrong = unexpected(step, &done.answer);
        transcript.steps.push(done);
        if let Some(what) = wrong {
            return Ok(Some(Abort::Step(what)));
        }
        if let Action::Decode { arguments, data } = &step.action {
            match on_host(session, &mut guest, case, arguments, data, dir) {
                Ok(host) => transcript.steps.last_mut().expect("just pushed").host = Some(host),
                Err(abort) => return Ok(Some(abort)),
            }
        }
    }
    Ok(None)
}

/// Do the steps of a case that needs no guest.
fn on_host_alone(
    case: &Case,
    ready: &PreparedGuest,
    dir: &TrialDir,
    done: &mut Vec<StepRecord>,
) -> std::io::Result<Option<Abort>> {
    for (at, step) in case.steps.iter().enumerate() {
        match inspected(case, ready, step) {
            Ok(Some(inspected)) => {
                let answer = described(&inspected);
                keep(case, at, &answer, dir)?;
                done.push(StepRecord { answer, written: None, host: None, inspected: Some(inspected) });
            }
            Ok(None) => return Ok(Some(Abort::Machine("this step needs a guest".to_owned()))),
            Err(abort) => return Ok(Some(abort)),
        }
    }
    Ok(None)
}

/// The module that a step names.
fn inspected(case: &Case, ready: &PreparedGuest, step: &Step) -> Result<Option<Inspected>, Abort> {
    let name = match (&step.action, &step.capture) {
        (Action::Inspect { module }, _) => module,
        (_, Some(Capture { defined_by: Some(module), .. })) => module,
        _ => return Ok(None),
    };
    let rootfs = ready.image.rootfs(&rootfs_spec(case)).map_err(|e| Abort::Machine(e.to_string()))?;
    inspect(name, &rootfs.modules).map(Some)
}

fn described(inspected: &Inspected) -> Answer {
    Answer {
        end: StepEnd::Exited(0),
        stdout: kmod::describe(&inspected.module).into_bytes(),
        stderr: Vec::new(),
        elapsed: Duration::ZERO,
    }
}

/// Keep what a step has printed, and what it captures of that.
fn keep(case: &Case, at: usize, answer: &Answer, dir: &TrialDir) -> std::io::Result<()> {
    let step = &case.steps[at];
    for (stream, bytes) in [("stdout", &answer.stdout), ("stderr", &answer.stderr)] {
        if !bytes.is_empty() {
            fs::write(dir.step(at + 1, stream), bytes)?;
        }
    }
    if let (Some(capture), None) = (&step.capture, unexpected(step, answer)) {
        let kept = capture.part.of(&answer.stdout);
        fs::write(dir.capture(&capture.name), &kept)?;
    }
    Ok(())
}

/// Do a step in the guest, and the hypervisor's part in it.
fn answer(
    session: &mut Session,
    guest: &mut Guest<'_>,
    case: &Case,
    step: &Step,
) -> Result<StepRecord, Abort> {
    let record = |answer, written, inspected| StepRecord { answer, written, host: None, inspected };
    let inspected = inspected(case, guest.ready, step)?;
    let Some(request) = request(case, step) else {
        let answer = inspected.as_ref().map(described).expect("a step without a request looks at a module");
        return Ok(record(answer, None, inspected));
    };
    if matches!(step.action, Action::Run { .. }) {
        guest.copies.outdate();
    }
    let Action::Run { log: Some(plan), .. } = &step.action else {
        return Ok(record(session.request(&request)?, None, inspected));
    };
    let Some(control) = &mut guest.control else {
        return Err(Abort::Machine("the guest was booted without shared memory".to_owned()));
    };
    let map = guest.ready.image.kernel.product.dir.join("System.map");
    let (answer, written) =
        run_with_dispatch_log(session, control, &request, plan, guest.ready.guest.cpus, &map)?;
    Ok(record(answer, Some(written), inspected))
}

fn on_host(
    session: &mut Session,
    guest: &mut Guest<'_>,
    case: &Case,
    arguments: &[String],
    data: &str,
    dir: &TrialDir,
) -> Result<HostOutput, Abort> {
    let Some(perf) = guest.host_perf else {
        return Err(Abort::Machine(
            "there is no perf for the host: the case must say `requires: [perf]`".to_owned(),
        ));
    };
    let to = dir.host();
    guest.copies.fetch(session, &case.cwd, data, &to)?;
    decode::on_host(perf, arguments, decode::file_name(data), &to)
        .map_err(|error| Abort::Machine(format!("the host's perf could not decode {data}: {error}")))
}

/// What the agent is asked for; nothing for what is done on the host.
fn request(case: &Case, step: &Step) -> Option<Request> {
    Some(Request {
        work: match &step.action {
            Action::Inspect { .. } => return None,
            Action::Run { script, log: Some(_), .. } => Work::RunOpen(script.clone()),
            Action::Run { script, log: None, .. } => Work::Run(script.clone()),
            Action::Decode { arguments, data } => Work::Run(decode::in_guest(arguments, data)),
            Action::Read { path } => Work::Read(path.clone()),
        },
        cwd: case.cwd.clone(),
        timeout: step.timeout,
        output_limit: step.output_limit,
    })
}

/// How the step's end differs from what the case says; `None` when it does not.
fn unexpected(step: &Step, answer: &Answer) -> Option<String> {
    let expected = match step.action {
        Action::Run { exit_status, .. } => exit_status,
        Action::Read { .. } | Action::Decode { .. } | Action::Inspect { .. } => 0,
    };
    let what = match answer.end {
        StepEnd::Exited(status) if status == expected => return None,
        StepEnd::Exited(status) => format!("exit status {status}, and {expected} was expected"),
        StepEnd::Signalled(signal) => format!("ended by signal {signal}"),
        StepEnd::TimedOut => {
            format!(
                "timed out after {}: the step was killed (`timeout:` sets another timeout)",
                show_duration(u64::try_from(step.timeout.as_nanos()).unwrap_or(u64::MAX))
            )
        }
        StepEnd::Flooded => format!(
            "the output reached {}: the step was killed (`output_limit:` sets another limit)",
            show_size(step.output_limit.into())
        ),
        StepEnd::Errno(errno) => {
            let error = std::io::Error::from_raw_os_error(i32::try_from(errno).unwrap_or(0));
            match &step.action {
                Action::Read { path } => format!("failed to read {path}: {error}"),
                _ => format!("the shell could not be started: {error}"),
            }
        }
    };
    Some(format!("{what}{}", excerpt(&answer.stderr)))
}
