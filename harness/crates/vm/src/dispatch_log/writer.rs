//! Playing the hypervisor: writing what a case wants while its recording runs.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::time::{Duration, Instant};

use diagnostic::did_you_mean;
use dtl::reason::EntryClass;
use dtl::{
    Address, Burst, Clock, LogAction, LogEntry, LogPlan, NoSymbol, PlannedEntry, Symbols, UNREAD_MAX, When,
    Written,
};

use super::log::{Log, LogError, Places};
use crate::memory::NoSuchWord;
use crate::qemu::GuestControl;

/// How long the guest may take to begin its recording.
const ON_LIMIT: Duration = Duration::from_secs(30);
/// How long the guest may take to read what was written, beyond the time that entries ask for.
const READ_LIMIT: Duration = Duration::from_secs(10);
/// How often memory is looked at.
const INTERVAL: Duration = Duration::from_micros(500);

/// Why a plan could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum WriteError<E: Display> {
    /// The kernel or its memory is not as expected.
    #[error(transparent)]
    Log(#[from] LogError),
    /// An entry's address is in no such kernel.
    #[error("{error}{}", help.as_ref().map(|help| format!("; {help}")).unwrap_or_default())]
    Address {
        /// The symbol.
        error: NoSymbol,
        /// A suggestion.
        help: Option<String>,
    },
    /// The kernel's clock cannot be read.
    #[error("the kernel's {what} cannot be read: {fault}")]
    Clock {
        /// Which of its variables.
        what: &'static str,
        /// Where it was to be read.
        fault: NoSuchWord,
    },
    /// The guest has fewer processors.
    #[error("the log of CPU {cpu} was to be written, and the guest has {cpus} CPUs")]
    NoCpu {
        /// The processor.
        cpu: u32,
        /// How many there are.
        cpus: u64,
    },
    /// Something did not happen in time.
    #[error("waited {:.0} s until {what}", limit.as_secs_f64())]
    TimedOut {
        /// What.
        what: String,
        /// How long.
        limit: Duration,
    },
    /// The command that records has ended too early.
    #[error("the command ended before {0}")]
    Ended(String),
    /// QEMU does not obey.
    #[error("the guest could not be held while its log was written: {0}")]
    Machine(#[from] io::Error),
    /// The guest cannot be waited for.
    #[error("{0}")]
    Guest(E),
}

/// Whoever lets the guest run on while the writer waits.
pub trait RecordingControl {
    /// Why there is nothing to wait for any more.
    type Error: Display;

    /// Let so much time pass; whether the command that records still runs then.
    ///
    /// # Errors
    /// When the guest has stopped.
    fn wait(&mut self, time: Duration) -> Result<bool, Self::Error>;

    /// Whether the command has printed something.
    fn has_printed(&self) -> bool;

    /// Wait until each interrupt handler that has begun in the guest has ended; the guest's timebase
    /// then, or `None` when the command that records has ended.
    ///
    /// # Errors
    /// When the guest has stopped.
    fn quiesce(&mut self) -> Result<Option<u64>, Self::Error>;
}

/// A hypervisor's hand in a running guest.
#[derive(Debug)]
pub struct Writer<'a> {
    guest: &'a mut GuestControl,
    symbols: &'a Symbols,
    places: Places,
    clock: Clock,
    /// How long the guest had been held when the clock was read.
    paused: Duration,
}

/// Values of the timebase from which times count.
#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    /// The recording was seen to be on.
    start: u64,
    /// The guest was asked just before the burst.
    now: u64,
}

/// The state of a plan that is carried out.
struct Progress {
    logs: BTreeMap<u32, Log>,
    /// The timebase at which the recording was seen to be on.
    start: u64,
    /// What was written to each log since the guest was known to have read all.
    unread: BTreeMap<u32, Vec<LogEntry>>,
    written: Written,
}

impl<'a> Writer<'a> {
    /// A writer for `guest`, whose kernel has these symbols. `timebase` was read
    /// in the guest just now.
    ///
    /// # Errors
    /// When the kernel has no vpa_dtl PMU.
    pub fn new<E: Display>(
        guest: &'a mut GuestControl,
        symbols: &'a Symbols,
        timebase: u64,
    ) -> Result<Writer<'a>, WriteError<E>> {
        let places = Places::find(symbols).map_err(LogError::from)?;
        let read = |what: &'static str| {
            let at = symbols.address(what).map_err(LogError::from)?;
            Places::word(guest.ram(), at).map_err(|fault| WriteError::Clock { what, fault })
        };
        let clock = Clock::new(read("boot_tb")?, read("tb_ticks_per_sec")?, timebase);
        let paused = guest.paused();
        Ok(Writer { guest, symbols, places, clock, paused })
    }

    /// Carry out a plan. The command that records has been started in a guest with `cpus` processors.
    ///
    /// # Errors
    /// See [`WriteError`]. Nothing is ever written into memory that is not known to be a log.
    pub fn carry_out<P: RecordingControl>(
        mut self,
        plan: &LogPlan,
        cpus: u64,
        control: &mut P,
    ) -> Result<Written, WriteError<P::Error>> {
        // Before the first entry is written, every one must be known to be possible.
        for item in &plan.items {
            let LogAction::Write(burst) = item else { continue };
            if u64::from(burst.cpu) >= cpus {
                return Err(WriteError::NoCpu { cpu: burst.cpu, cpus });
            }
            for entry in &burst.entries {
                self.entry(entry, burst.cpu, Moments::default())?;
            }
        }
        let mut progress = self.begin(plan, control)?;
        for item in &plan.items {
            match item {
                LogAction::Write(burst) => self.burst(burst, &mut progress, control)?,
                LogAction::WaitDrained => self.poll(&mut progress, control)?,
                LogAction::WaitOutput => {
                    let what = || "the command had printed something".to_owned();
                    until(control, ON_LIMIT, what, |control| Ok(control.has_printed().then_some(())))?;
                }
            }
        }
        if !plan.leaves_unread {
            self.poll(&mut progress, control)?;
        }
        Ok(progress.written)
    }

    fn begin<P: RecordingControl>(
        &mut self,
        plan: &LogPlan,
        control: &mut P,
    ) -> Result<Progress, WriteError<P::Error>> {
        let mut logs = BTreeMap::new();
        for cpu in plan.cpus() {
            let what = || format!("the guest asked for the log of CPU {cpu}");
            let state = until(control, ON_LIMIT, what, |_| {
                Ok(Some(self.places.state(self.guest.ram(), cpu)?).filter(|state| state.is_on()))
            })?;
            // The mask is set last, so what is read after it is what belongs to it.
            let state = if state.is_on() { self.places.state(self.guest.ram(), cpu)? } else { state };
            logs.insert(cpu, Log::new(cpu, state)?);
        }
        let written = Written { clock: self.clock, read: BTreeMap::new(), lost: BTreeMap::new(), masked: 0 };
        Ok(Progress { logs, start: self.now(), unread: BTreeMap::new(), written })
    }

    fn burst<P: RecordingControl>(
        &mut self,
        burst: &Burst,
        progress: &mut Progress,
        control: &mut P,
    ) -> Result<(), WriteError<P::Error>> {
        let log = progress.logs.get_mut(&burst.cpu).expect("every CPU of the plan has its log");
        let is_now = |entry: &PlannedEntry| matches!(entry.when, When::FromNow(_));
        let now = match burst.entries.iter().any(is_now) {
            true => quiesce(control, "all entries were written")?,
            false => 0,
        };
        let moments = Moments { start: progress.start, now };
        let all = burst.entries.iter().map(|entry| self.entry(entry, burst.cpu, moments));
        let all = all.collect::<Result<Vec<LogEntry>, WriteError<P::Error>>>()?;
        let of_now =
            burst.entries.iter().zip(&all).filter(|(planned, _)| matches!(planned.when, When::FromStart(_)));
        if let Some(last) = of_now.map(|(_, entry)| entry.timebase).max() {
            let ahead = self.clock.duration(last.saturating_sub(self.now()));
            let limit = READ_LIMIT + ahead;
            let what = || format!("the time of an entry in line {} had come", burst.line);
            until(control, limit, what, |_| Ok((self.now() >= last).then_some(())))?;
        }
        let entries: Vec<LogEntry> =
            all.into_iter().filter(|entry| EntryClass::of(entry.preempt).bit() & log.mask() != 0).collect();
        progress.written.masked += (burst.entries.len() - entries.len()) as u64;
        let places = self.places;
        self.guest.while_paused(|ram| log.append(&places, ram, &entries))??;
        progress.unread.entry(burst.cpu).or_default().extend(entries);
        Ok(())
    }

    fn poll<P: RecordingControl>(
        &self,
        progress: &mut Progress,
        control: &mut P,
    ) -> Result<(), WriteError<P::Error>> {
        for (cpu, log) in &mut progress.logs {
            let what = || format!("the guest had read the log of CPU {cpu}");
            until(control, READ_LIMIT, what, |_| {
                Ok(log.is_read(&self.places, self.guest.ram())?.then_some(()))
            })?;
        }
        // The kernel says that it has read the entries before it copies them, in its timer's interrupt.
        quiesce(control, "what was written had been read")?;
        for (cpu, entries) in std::mem::take(&mut progress.unread) {
            let lost = (entries.len() as u64).saturating_sub(UNREAD_MAX);
            let kept = entries.into_iter().skip(usize::try_from(lost).unwrap_or(usize::MAX));
            progress.written.read.entry(cpu).or_default().extend(kept);
            *progress.written.lost.entry(cpu).or_default() += lost;
        }
        Ok(())
    }

    /// The timebase now, or a little before now.
    fn now(&self) -> u64 {
        self.clock.now(self.guest.paused().saturating_sub(self.paused))
    }

    fn entry<E: Display>(
        &self,
        planned: &PlannedEntry,
        cpu: u32,
        moments: Moments,
    ) -> Result<LogEntry, WriteError<E>> {
        let after = |moment: u64, nanoseconds: i64| {
            moment.saturating_add_signed(self.clock.ticks(nanoseconds.into()))
        };
        let timebase = match planned.when {
            When::FromStart(nanoseconds) => after(moments.start, nanoseconds),
            When::FromNow(nanoseconds) => after(moments.now, nanoseconds),
            When::Timebase(timebase) => timebase,
        };
        Ok(LogEntry {
            dispatch: planned.dispatch,
            preempt: planned.preempt,
            processor: planned.processor.unwrap_or(u16::try_from(cpu).unwrap_or(u16::MAX)),
            enqueue_to_dispatch: planned.enqueue_to_dispatch,
            ready_to_enqueue: planned.ready_to_enqueue,
            waiting_to_ready: planned.waiting_to_ready,
            timebase,
            fault_addr: self.address(&planned.fault_addr)?,
            srr0: self.address(&planned.srr0)?,
            srr1: planned.srr1,
        })
    }

    fn address<E: Display>(&self, address: &Address) -> Result<u64, WriteError<E>> {
        match address {
            Address::Number(address) => Ok(*address),
            Address::Symbol { name, offset } => {
                let found = self.symbols.address(name).map_err(|error| WriteError::Address {
                    error,
                    help: did_you_mean(name, self.symbols.names()),
                })?;
                Ok(found.wrapping_add(*offset))
            }
        }
    }
}

/// Wait until the guest's interrupt handlers have ended; its timebase then.
fn quiesce<P: RecordingControl>(control: &mut P, before: &str) -> Result<u64, WriteError<P::Error>> {
    let timebase = control.quiesce().map_err(WriteError::Guest)?;
    timebase.ok_or_else(|| WriteError::Ended(before.to_owned()))
}

/// Look until something is there.
fn until<T, P: RecordingControl>(
    control: &mut P,
    limit: Duration,
    what: impl Fn() -> String,
    mut look: impl FnMut(&P) -> Result<Option<T>, WriteError<P::Error>>,
) -> Result<T, WriteError<P::Error>> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(found) = look(control)? {
            return Ok(found);
        }
        if Instant::now() > deadline {
            return Err(WriteError::TimedOut { what: what(), limit });
        }
        if !control.wait(INTERVAL).map_err(WriteError::Guest)? {
            return Err(WriteError::Ended(what()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::super::fake_kernel::FakeKernel;
    use super::*;
    use dtl::testing::{burst, planned};

    /// A monitor that does as told.
    fn control_of(kernel: FakeKernel) -> (GuestControl, Symbols, tempfile::TempDir) {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("m");
        let listener = UnixListener::bind(&path).expect("bound");
        std::thread::spawn(move || {
            let mut qemu = UnixStream::connect(path)?;
            qemu.write_all(b"{\"QMP\":{}}\n")?;
            for _ in BufReader::new(qemu.try_clone()?).lines() {
                qemu.write_all(b"{\"return\":{}}\n")?;
            }
            io::Result::Ok(())
        });
        let FakeKernel { ram, symbols } = kernel;
        (GuestControl::for_tests(ram, listener), symbols, dir)
    }

    /// Calls a function each time it is waited for; the command prints something after so many times.
    struct Each<F>(F, u32);

    impl<F: FnMut() -> bool> RecordingControl for Each<F> {
        type Error = String;

        fn wait(&mut self, _: Duration) -> Result<bool, String> {
            self.1 = self.1.saturating_sub(1);
            Ok(self.0())
        }

        fn has_printed(&self) -> bool {
            self.1 == 0
        }

        fn quiesce(&mut self) -> Result<Option<u64>, String> {
            Ok(Some(77_000_000))
        }
    }

    fn carry_out(
        plan: &LogPlan,
        guest: FakeKernel,
        mut each: impl FnMut(&FakeKernel) -> bool,
    ) -> Result<Written, String> {
        let kernel = FakeKernel { ram: guest.ram.again(), symbols: guest.symbols.clone() };
        let (mut control, symbols, _dir) = control_of(guest);
        let writer = Writer::new::<String>(&mut control, &symbols, 2_000_000).map_err(|e| e.to_string())?;
        writer.carry_out(plan, 2, &mut Each(|| each(&kernel), WAITS)).map_err(|e| e.to_string())
    }

    /// How often the writer waits before the command prints something.
    const WAITS: u32 = 5;

    #[test]
    fn nothing_is_written_before_the_command_has_printed_something() {
        let mut seen = Vec::new();
        let items = vec![LogAction::WaitOutput, burst(0, 3)];
        carry_out(&plan(items), FakeKernel::new(), |guest| {
            let mut count = 0;
            guest.poll(0, |_| count += 1);
            seen.push(count);
            true
        })
        .expect("done");
        assert_eq!(seen.iter().position(|count| *count > 0), Some(WAITS as usize), "{seen:?}");
    }

    fn plan(items: Vec<LogAction>) -> LogPlan {
        LogPlan { items, leaves_unread: false }
    }

    fn poll(guest: &FakeKernel) -> bool {
        guest.poll(0, |_| ());
        guest.poll(1, |_| ());
        true
    }

    #[test]
    fn what_is_read_is_what_was_written_less_what_was_lost() {
        let items = vec![burst(0, 84), LogAction::WaitDrained, burst(0, 86), burst(1, 1)];
        let written = carry_out(&plan(items), FakeKernel::new(), poll).expect("done");
        let marks: Vec<u32> = written.read[&0].iter().map(|entry| entry.enqueue_to_dispatch).collect();
        assert_eq!(marks, (0..84).chain(2..86).collect::<Vec<u32>>());
        assert_eq!((written.read[&1].len(), written.lost[&0], written.masked), (1, 2, 0));
        let entry = written.read[&1][0];
        assert_eq!((entry.srr0, entry.processor), (0xc000_0000_0000_9008, 1));
        assert!(entry.timebase >= 2_000_000);
    }

    #[test]
    fn the_mask_is_honoured() {
        let guest = FakeKernel::new();
        guest.enable(0, 4);
        let written = carry_out(&plan(vec![burst(0, 3)]), guest, poll).expect("done");
        assert_eq!((written.masked, written.read.get(&0)), (3, Some(&Vec::new())));
    }

    #[test]
    fn what_is_left_unread_is_not_expected() {
        let plan = LogPlan { items: vec![burst(0, 3)], leaves_unread: true };
        let written = carry_out(&plan, FakeKernel::new(), |_| true).expect("done");
        assert_eq!(written.read.get(&0), None);
    }

    #[test]
    fn times_count_from_the_start_of_the_recording() {
        let at = |ns| planned(When::FromStart(ns), 0);
        let absolute = planned(When::Timebase(7), 0);
        let now = planned(When::FromNow(-1_000_000), 0);
        let entries = vec![at(-1_000_000), at(0), at(2_000_000), absolute, now];
        let items = vec![LogAction::Write(Burst { line: 1, cpu: 0, entries })];
        let written = carry_out(&plan(items), FakeKernel::new(), poll).expect("done");
        let times: Vec<u64> = written.read[&0].iter().map(|entry| entry.timebase).collect();
        assert_eq!((times[1] - times[0], times[2] - times[1]), (512_000, 1_024_000));
        assert_eq!((times[3], times[4]), (7, 77_000_000 - 512_000));
    }

    #[test]
    fn a_recording_that_is_not_as_expected_is_told() {
        let one = || plan(vec![burst(1, 1)]);
        let off = FakeKernel::new();
        off.enable(1, 0);
        let error = carry_out(&one(), off, |_| false).expect_err("never on");
        assert_eq!(error, "the command ended before the guest asked for the log of CPU 1");
        let error = carry_out(&plan(vec![burst(5, 1)]), FakeKernel::new(), poll).expect_err("no such CPU");
        assert_eq!(error, "the log of CPU 5 was to be written, and the guest has 2 CPUs");
        let again = |guest: &FakeKernel| {
            guest.enable(1, 7);
            true
        };
        let error = carry_out(&one(), FakeKernel::new(), again).expect_err("begun again");
        assert!(error.contains("CPU 1") && error.contains("its index is 0, and 1 entries"), "{error}");
        let mut wrong = planned(When::FromStart(0), 0);
        wrong.srr0 = Address::Symbol { name: "ff".to_owned(), offset: 0 };
        let items = vec![LogAction::Write(Burst { line: 1, cpu: 0, entries: vec![wrong] })];
        let error = carry_out(&plan(items), FakeKernel::new(), poll).expect_err("no such symbol");
        assert!(error.contains("no symbol `ff`"), "{error}");
    }
}
