//! One trial, executed: the guest is booted, its steps are done, it is powered off.
//!
//! [`execute`] gives back a [`Transcript`], plain data, and keeps all of it in the trial's directory. It judges nothing:
//! that a step did not end as its case says, or that the kernel died, is a part of the transcript.

mod abort;
mod decode;
mod decoder;
mod dispatch_log;
mod inspect;
mod leaks;
mod problem;
mod step;
mod transcript;

use std::fs;
use std::io;

use crate::artefacts::TrialDir;
use crate::captured::captured;
use crate::case::{Action, Capture, Case, Step};
use crate::prepare::PreparedGuest;
use vm::qemu::{GuestControl, Machine};
use vm::{Session, SessionError};

pub use abort::{Abort, DispatchLogError, HarnessError};
pub use decode::SecondDecoding;
use decoder::Decoder;
use dispatch_log::run_with_dispatch_log;
pub use inspect::Inspected;
use inspect::inspect;
pub use problem::{StepError, StepProblem, excerpt};
use step::{check_end, request};
pub use transcript::{StepOutput, StepRecord, Transcript};

/// Boot the guest, do the steps, power it off. Keeps everything in `dir`.
///
/// # Errors
/// When what must be kept cannot be written.
pub fn execute(case: &Case, prepared: &PreparedGuest, dir: &TrialDir) -> io::Result<Transcript> {
    let mut transcript = Transcript::default();
    let case = &case.with_timeouts_times(prepared.kernel.slowness());
    if !case.boots() {
        transcript.abort = inspect_all(case, prepared, dir, &mut transcript.steps)?;
        return Ok(transcript);
    }
    let launched = match prepared.launch(case.writes_dispatch_log(), Some(&dir.dir)) {
        Ok(launched) => launched,
        Err(error) => {
            transcript.abort = Some(match error.error.kind() {
                io::ErrorKind::Interrupted => Abort::Interrupted,
                _ => Abort::Start(error.error),
            });
            transcript.command = error.command;
            return Ok(transcript);
        }
    };
    let opened = prepared.open(launched);
    let machine = match &opened {
        Ok(session) => session.machine(),
        Err(failed) => &failed.machine,
    };
    machine.command().clone_into(&mut transcript.command);
    fs::write(dir.dir.join("qemu-command"), prepared.command_file(machine))?;
    let mut machine = match opened {
        Ok(mut session) => {
            transcript.boot_time = Some(session.boot_time());
            let control = session.take_control();
            let decoder = prepared.decoder.as_deref().map(|guest| Decoder::start(guest, &dir.decoder()));
            let copies = decode::Copies::default();
            let mut trial = RunningTrial { session, control, case, prepared, dir, decoder: None, copies };
            let stopped = match decoder.transpose() {
                Ok(decoder) => {
                    trial.decoder = decoder;
                    match trial.check_boot() {
                        Ok(()) => match trial.steps(&mut transcript.steps)? {
                            None => trial.look_for_leaks(&mut transcript.steps).err(),
                            stopped => stopped,
                        },
                        Err(abort) => Some(abort),
                    }
                }
                Err(abort) => Some(abort),
            };
            let decoder = trial.decoder.take().map_or(Ok(()), Decoder::finish);
            match stopped.or(decoder.err().map(Abort::from)) {
                Some(abort) => {
                    transcript.abort = Some(abort);
                    trial.session.into_machine()
                }
                None => {
                    let (machine, end) = trial.session.end();
                    transcript.abort = end.err().map(Abort::from);
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
    let messages = &prepared.guest.known_messages;
    let seen = machine.known_messages();
    transcript.known_messages =
        seen.iter().filter_map(|at| Some(messages.get(*at)?.pattern.clone())).collect();
    Ok(transcript)
}

/// Take from a machine what is known only when it has ended. The console is judged, so it has to be complete.
fn conclude(machine: &mut Machine, transcript: &mut Transcript) {
    let mut lost = machine.finish().err().map(HarnessError::Console);
    transcript.splats = machine.splats();
    transcript.lost_messages = machine.lost_messages();
    for (text, output) in
        [(machine.console(), &mut transcript.console), (machine.stderr(), &mut transcript.stderr)]
    {
        match text {
            Ok(text) => *output = text,
            Err(error) => lost = lost.or(Some(HarnessError::Output(error))),
        }
    }
    if let (Some(error), None | Some(Abort::Panic)) = (lost, &transcript.abort) {
        transcript.abort = Some(error.into());
    }
    // A guest that panics lets go of the harness in one way or another; the panic is the cause.
    let lost = matches!(
        transcript.abort,
        Some(Abort::Guest(_) | Abort::Hung(_) | Abort::ShutDown(_) | Abort::DispatchLog(_))
    );
    if lost && transcript.splats.iter().any(|splat| splat.fatal) {
        transcript.abort = Some(Abort::Panic);
    }
}

/// Do the steps of a case that needs no guest.
fn inspect_all(
    case: &Case,
    prepared: &PreparedGuest,
    dir: &TrialDir,
    done: &mut Vec<StepRecord>,
) -> io::Result<Option<Abort>> {
    for (at, step) in case.steps.iter().enumerate() {
        match inspected(prepared, step) {
            Ok(Some(inspected)) => {
                let record = describe(inspected);
                keep(at, &record.output, dir)?;
                keep_capture(step, &record.output, dir)?;
                done.push(record);
            }
            Ok(None) => return Ok(Some(HarnessError::NoGuest.into())),
            Err(error) => return Ok(Some(error.into())),
        }
    }
    Ok(None)
}

/// A trial whose guest runs.
struct RunningTrial<'t> {
    session: Session,
    control: Option<GuestControl>,
    case: &'t Case,
    prepared: &'t PreparedGuest,
    dir: &'t TrialDir,
    /// It boots while the first steps are done.
    decoder: Option<Decoder>,
    copies: decode::Copies,
}

impl RunningTrial<'_> {
    /// Whether the guest is fit for a step. One that could not measure its clocks is not, and says nothing of the kernel.
    fn check_boot(&self) -> Result<(), Abort> {
        let machine = self.session.machine();
        machine.wait_for_boot_messages().map_err(SessionError::Stopped)?;
        let splats = machine.splats();
        let errors = &self.prepared.guest.boot_errors;
        let unfit = splats.iter().find_map(|splat| Some((splat, splat.known_as(errors)?)));
        match unfit {
            Some((splat, error)) => {
                Err(Abort::Boot { line: splat.line.clone(), reason: error.reason.clone() })
            }
            None => Ok(()),
        }
    }

    /// Do all steps; returns what kept them from their end.
    fn steps(&mut self, done: &mut Vec<StepRecord>) -> io::Result<Option<Abort>> {
        for (at, step) in self.case.steps.iter().enumerate() {
            let (mut record, end) = match self.step(step) {
                Ok(answered) => answered,
                Err(abort) => return Ok(Some(abort)),
            };
            keep(at, &record.output, self.dir)?;
            if let Err(error) = end {
                // It was answered, if not as its case says.
                record.requests = self.session.take_requests();
                done.push(record);
                return Ok(Some(Abort::Step(error)));
            }
            keep_capture(step, &record.output, self.dir)?;
            if let Action::Decode { arguments, data } = &step.action {
                match self.decode(step, arguments, data) {
                    Ok(decoded) => record.second = Some(decoded),
                    Err(abort) => return Ok(Some(abort)),
                }
            }
            record.requests = self.session.take_requests();
            done.push(record);
        }
        Ok(None)
    }

    /// Let a kernel that can look for leaked memory do so. What it finds counts as the last step's.
    fn look_for_leaks(&mut self, done: &mut [StepRecord]) -> Result<(), Abort> {
        if !self.prepared.kernel.symbols.contains(leaks::SYMBOL) {
            return Ok(());
        }
        leaks::look_for_leaks(&mut self.session)?;
        if let Some(last) = done.last_mut() {
            last.requests.extend(self.session.take_requests());
        }
        Ok(())
    }

    /// Do a step in the guest, and the hypervisor's part in it. Says whether it ended as the case says.
    fn step(&mut self, step: &Step) -> Result<(StepRecord, Result<(), StepError>), Abort> {
        let inspected = inspected(self.prepared, step)?;
        let Some(request) = request(self.case, step) else {
            let inspected = inspected.ok_or(HarnessError::NoGuest)?;
            return Ok((describe(inspected), Ok(())));
        };
        if matches!(step.action, Action::Run { .. }) {
            self.copies.outdate();
        }
        let (answer, written) = match &step.action {
            Action::Run { log: Some(plan), .. } => {
                let control = self.control.as_mut().ok_or(DispatchLogError::NotShared)?;
                let map = self.prepared.kernel.kernel.product.dir.join("System.map");
                let cpus = self.prepared.guest.cpus;
                let (answer, written) =
                    run_with_dispatch_log(&mut self.session, control, &request, plan, cpus, &map)?;
                (answer, Some(written))
            }
            _ => (self.session.request(&request)?, None),
        };
        let end = check_end(step, &answer);
        let (held_open, kernel) = (answer.held_open, Some(answer.kernel));
        Ok((StepRecord { written, inspected, held_open, kernel, ..StepRecord::new(answer.into()) }, end))
    }

    /// Decode data a second time, in the other guest.
    fn decode(&mut self, step: &Step, arguments: &[String], data: &str) -> Result<SecondDecoding, Abort> {
        let decoder = self.decoder.as_mut().ok_or(HarnessError::NoDecoder)?;
        let (cwd, to) = (self.case.cwd.as_str(), self.dir.decoder());
        self.copies.copy(&mut self.session, decoder, cwd, data, &to)?;
        decode::decode(decoder, arguments, data, (cwd, step), to)
    }
}

/// The module that a step names, looked at; `None` when it names none.
fn inspected(prepared: &PreparedGuest, step: &Step) -> Result<Option<Inspected>, HarnessError> {
    let name = match (&step.action, &step.capture) {
        (Action::Inspect { module }, _) => module,
        (_, Some(Capture { defined_by: Some(module), .. })) => module,
        _ => return Ok(None),
    };
    inspect(name, &prepared.rootfs.modules).map(Some)
}

/// The record of a step that does nothing but look at a module.
fn describe(inspected: Inspected) -> StepRecord {
    let stdout = kmod::describe(&inspected.module).into_bytes();
    let output = StepOutput { stdout, stderr: Vec::new() };
    StepRecord { inspected: Some(inspected), ..StepRecord::new(output) }
}

/// Keep what a step has printed. `at` counts steps from 0.
fn keep(at: usize, output: &StepOutput, dir: &TrialDir) -> io::Result<()> {
    for (stream, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        if !bytes.is_empty() {
            fs::write(dir.step(at + 1, stream), bytes)?;
        }
    }
    Ok(())
}

/// Keep what a step captures of its output.
fn keep_capture(step: &Step, output: &StepOutput, dir: &TrialDir) -> io::Result<()> {
    match &step.capture {
        Some(capture) => fs::write(dir.capture(&capture.name), captured(capture.part, &output.stdout)),
        None => Ok(()),
    }
}
