//! Writing what a case plans, while its recording runs.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use diagnostic::did_you_mean;
use dtl::reason::EntryClass;
use dtl::{
    Address, Burst, Clock, LogAction, LogEntry, LogPlan, PlannedEntry, Symbols, UNREAD_MAX, When, Written,
};

use super::control::{RecordingControl, quiesce, until};
use super::error::WriteError;
use super::log::{CpuLog, KernelLayout, LogError};
use crate::qemu::GuestControl;

/// How long the guest may take to begin its recording.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the guest may take to read what was written, beyond the time that entries ask for.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Writes logs into a running guest, as its hypervisor would.
#[derive(Debug)]
pub struct Writer<'a> {
    guest: &'a mut GuestControl,
    symbols: &'a Symbols,
    layout: KernelLayout,
    clock: Clock,
    /// How long the guest had been paused when the clock was read.
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
    logs: BTreeMap<u32, CpuLog>,
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
        let layout = KernelLayout::find(symbols).map_err(LogError::from)?;
        let read = |what: &'static str| {
            let at = symbols.address(what).map_err(LogError::from)?;
            KernelLayout::word(guest.ram(), at).map_err(|error| WriteError::Clock { what, error })
        };
        let clock = Clock::new(read("boot_tb")?, read("tb_ticks_per_sec")?, timebase);
        let paused = guest.paused();
        Ok(Writer { guest, symbols, layout, clock, paused })
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
                    until(control, START_TIMEOUT, what, |control| Ok(control.has_printed().then_some(())))?;
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
            let state = until(control, START_TIMEOUT, what, |_| {
                Ok(Some(self.layout.state(self.guest.ram(), cpu)?).filter(|state| state.is_on()))
            })?;
            // The mask is set last, so what is read after it is what belongs to it.
            let state = if state.is_on() { self.layout.state(self.guest.ram(), cpu)? } else { state };
            logs.insert(cpu, CpuLog::new(cpu, state)?);
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
            let timeout = READ_TIMEOUT + ahead;
            let what = || format!("the time of an entry in line {} had come", burst.line);
            until(control, timeout, what, |_| Ok((self.now() >= last).then_some(())))?;
        }
        let entries: Vec<LogEntry> =
            all.into_iter().filter(|entry| EntryClass::of(entry.preempt).bit() & log.mask() != 0).collect();
        progress.written.masked += (burst.entries.len() - entries.len()) as u64;
        let layout = self.layout;
        self.guest.while_paused(|ram| log.append(&layout, ram, &entries))??;
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
            until(control, READ_TIMEOUT, what, |_| {
                Ok(log.is_read(&self.layout, self.guest.ram())?.then_some(()))
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

#[cfg(test)]
mod tests;
