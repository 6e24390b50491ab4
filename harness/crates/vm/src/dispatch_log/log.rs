//! The log of one processor, in a running guest's memory.
//!
//! Linux registers a buffer for each processor that it records, resets the index in the processor's
//! lppaca, and then sets the mask there (arch/powerpc/perf/vpa-dtl.c, `vpa_dtl_event_add`, Linux 7.2).
//! From then on the hypervisor writes entries, and counts the index up after each; the kernel's timer
//! reads what is new.

use dtl::{ENTRY_SIZE, LogEntry, NoSymbol, SLOTS, Symbols};

use crate::memory::{NoSuchWord, Ram};

/// Where the kernel's linear mapping of memory begins (`PAGE_OFFSET` of 64-bit powerpc).
pub(super) const LINEAR: u64 = 0xc000_0000_0000_0000;
/// What an lppaca begins with: "SLPL" in EBCDIC.
pub(super) const EYE_CATCHER: u32 = 0xd397_d781;
/// Offsets in the lppaca (PAPR; `struct lppaca` in arch/powerpc/include/asm/lppaca.h).
pub(super) const ENABLE_MASK: u64 = 184;
pub(super) const INDEX: u64 = 536;
/// Offset of the last read index in `struct vpa_dtl` (vpa-dtl.c), after the buffer's address.
pub(super) const LAST_READ: u64 = 8;

/// What is wrong with a processor's log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The kernel is not as expected.
    #[error(transparent)]
    Symbol(#[from] NoSymbol),
    /// A pointer in the guest leads nowhere.
    #[error("CPU {cpu}: failed to read {what}: {error}")]
    Pointer {
        /// The processor.
        cpu: u32,
        /// What was to be read.
        what: &'static str,
        /// Where it was to be read.
        error: NoSuchWord,
    },
    /// There is no lppaca where the kernel should have one.
    #[error(
        "CPU {cpu}: no lppaca at guest-physical {at:#x}: it begins with {found:#010x}, expected \
         {EYE_CATCHER:#010x}; does System.map belong to the guest's kernel?"
    )]
    EyeCatcher {
        /// The processor.
        cpu: u32,
        /// Where it was looked for.
        at: u64,
        /// What it begins with instead.
        found: u32,
    },
    /// The guest has ended the recording, or begun another one, since the log was found.
    #[error("CPU {cpu}: the log is no longer the one that was being written: {what}")]
    Gone {
        /// The processor.
        cpu: u32,
        /// What was read and what was expected.
        what: String,
    },
}

/// Where the kernel keeps what belongs to the logs, as addresses.
#[derive(Debug, Clone, Copy)]
pub struct KernelLayout {
    per_cpu_offset: u64,
    vpa_dtl_cpu: u64,
    paca_ptrs: u64,
}

/// What the guest's memory holds of one processor's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogState {
    /// The buffer's guest-physical address; 0 for none.
    pub buffer: u64,
    /// The lppaca's guest-physical address.
    lppaca: u64,
    /// The classes that the guest asks for; 0 for none: no recording.
    pub mask: u8,
    /// How many entries were ever written.
    pub index: u64,
    /// How many of them the kernel has read.
    pub read: u64,
}

impl LogState {
    /// Whether the guest asks for entries.
    pub fn is_on(&self) -> bool {
        self.buffer != 0 && self.mask != 0
    }
}

impl KernelLayout {
    /// The layout of the kernel with these symbols.
    ///
    /// # Errors
    /// When it has no vpa_dtl PMU.
    pub fn find(symbols: &Symbols) -> Result<KernelLayout, NoSymbol> {
        Ok(KernelLayout {
            per_cpu_offset: physical(symbols.address("__per_cpu_offset")?),
            vpa_dtl_cpu: symbols.address("vpa_dtl_cpu")?,
            paca_ptrs: physical(symbols.address("paca_ptrs")?),
        })
    }

    /// The 64-bit word at a kernel address.
    ///
    /// # Errors
    /// When it is not in the guest's memory.
    pub fn word(ram: &Ram, address: u64) -> Result<u64, NoSuchWord> {
        ram.le64(physical(address))
    }

    /// What the guest's memory holds of the log of a processor.
    ///
    /// # Errors
    /// When what is found there is not what a kernel has there.
    pub fn state(&self, ram: &Ram, cpu: u32) -> Result<LogState, LogError> {
        let pointer = |what: &'static str| move |error| LogError::Pointer { cpu, what, error };
        let nth = 8 * u64::from(cpu);
        let offset = ram.le64(self.per_cpu_offset + nth).map_err(pointer("its entry of __per_cpu_offset"))?;
        let log = physical(self.vpa_dtl_cpu.wrapping_add(offset));
        let buffer = ram.le64(log).map_err(pointer("its vpa_dtl_cpu"))?;
        let read = ram.le64(log + LAST_READ).map_err(pointer("its vpa_dtl_cpu"))?;
        let pacas = ram.le64(self.paca_ptrs).map_err(pointer("paca_ptrs"))?;
        let paca = ram.le64(physical(pacas) + nth).map_err(pointer("its entry of paca_ptrs"))?;
        // The paca begins with the lppaca's address.
        let lppaca = physical(ram.le64(physical(paca)).map_err(pointer("its paca"))?);
        let found = ram.be32(lppaca).map_err(pointer("its lppaca"))?;
        if found != EYE_CATCHER {
            return Err(LogError::EyeCatcher { cpu, at: lppaca, found });
        }
        let mask = ram.byte(lppaca + ENABLE_MASK).map_err(pointer("its lppaca"))?;
        let index = ram.be64(lppaca + INDEX).map_err(pointer("its lppaca"))?;
        let buffer = if buffer == 0 { 0 } else { physical(buffer) };
        Ok(LogState { buffer, lppaca, mask, index, read })
    }
}

/// A log that is being written.
#[derive(Debug, Clone)]
pub struct CpuLog {
    cpu: u32,
    /// What was found when the recording was on; its index and what is read move on.
    state: LogState,
}

impl CpuLog {
    /// The log of a processor, as found when the recording was on.
    ///
    /// # Errors
    /// When it is not empty.
    pub fn new(cpu: u32, state: LogState) -> Result<CpuLog, LogError> {
        if state.index != 0 {
            let what = format!("it begins with index {}, and a new one begins with 0", state.index);
            return Err(LogError::Gone { cpu, what });
        }
        Ok(CpuLog { cpu, state })
    }

    /// What the guest asks for.
    pub fn mask(&self) -> u8 {
        self.state.mask
    }

    /// Write entries and then publish them all at once. The guest must stand still.
    ///
    /// # Errors
    /// When the log is no longer the one that was found; then nothing is written.
    pub fn append(&mut self, layout: &KernelLayout, ram: &Ram, entries: &[LogEntry]) -> Result<(), LogError> {
        self.check(layout, ram)?;
        let cpu = self.cpu;
        let pointer = |error| LogError::Pointer { cpu, what: "its log", error };
        let mut index = self.state.index;
        for entry in entries {
            let slot = self.state.buffer + index % SLOTS * ENTRY_SIZE as u64;
            ram.set_bytes(slot, &entry.encode()).map_err(pointer)?;
            index += 1;
        }
        ram.set_be64(self.state.lppaca + INDEX, index).map_err(pointer)?;
        self.state.index = index;
        Ok(())
    }

    /// Whether the kernel has read all that was written.
    ///
    /// # Errors
    /// When the log is no longer the one that was found.
    pub fn is_read(&mut self, layout: &KernelLayout, ram: &Ram) -> Result<bool, LogError> {
        Ok(self.check(layout, ram)?.read == self.state.index)
    }

    /// Whether it is still the log that was found.
    fn check(&self, layout: &KernelLayout, ram: &Ram) -> Result<LogState, LogError> {
        let now = layout.state(ram, self.cpu)?;
        let was = &self.state;
        let what = if now.mask != was.mask {
            format!("its mask is {:#x}, and was {:#x}", now.mask, was.mask)
        } else if (now.buffer, now.lppaca) != (was.buffer, was.lppaca) {
            format!("its buffer is at guest-physical {:#x}, and was at {:#x}", now.buffer, was.buffer)
        } else if now.index != was.index {
            format!("its index is {}, and {} entries were written", now.index, was.index)
        } else {
            return Ok(now);
        };
        Err(LogError::Gone { cpu: self.cpu, what })
    }
}

/// The guest-physical address of a kernel-linear one. Any other address becomes one outside of
/// every memory.
fn physical(linear: u64) -> u64 {
    const NOWHERE: u64 = 1 << 60;
    if linear >> 60 == LINEAR >> 60 { linear - LINEAR } else { NOWHERE }
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::*;

    use super::super::fake_kernel::{FakeKernel, buffer, log, lppaca};

    fn log_of(kernel: &FakeKernel, cpu: u32) -> CpuLog {
        CpuLog::new(cpu, kernel.layout().state(&kernel.ram, cpu).expect("good")).expect("empty")
    }

    fn entry(mark: u32) -> LogEntry {
        LogEntry {
            dispatch: 3,
            preempt: 2,
            processor: 0,
            enqueue_to_dispatch: mark,
            ready_to_enqueue: 0,
            waiting_to_ready: 0,
            timebase: 1,
            fault_addr: 0,
            srr0: 0,
            srr1: 0,
        }
    }

    #[test]
    fn entries_go_round_and_the_index_counts_on() {
        let guest = FakeKernel::new();
        let layout = guest.layout();
        let mut log = log_of(&guest, 1);
        let entries: Vec<LogEntry> = (0..100).map(entry).collect();
        log.append(&layout, &guest.ram, &entries[..84]).expect("written");
        assert!(!log.is_read(&layout, &guest.ram).expect("there"));
        guest.poll(1, |_| ());
        assert!(log.is_read(&layout, &guest.ram).expect("there"));
        log.append(&layout, &guest.ram, &entries[84..]).expect("written");
        assert_eq!(guest.ram.be64(lppaca(1) + INDEX), Ok(100));
        let mark = |slot: u64| guest.ram.be32(buffer(1) + slot * 48 + 4).expect("inside");
        assert_eq!((mark(84), mark(0), mark(14), mark(15)), (84, 85, 99, 15));
        // The byte that follows the last slot, and the other processor's log, are untouched.
        assert_eq!(guest.ram.be64(buffer(1) + SLOTS * 48), Ok(0));
        assert_eq!(guest.ram.be64(buffer(0)), Ok(0));
    }

    #[test]
    fn memory_that_is_not_an_lppaca_is_never_written() {
        let guest = FakeKernel::new();
        guest.ram.set_be64(lppaca(1), 0x1234_5678_0000_0000).expect("inside");
        let error = guest.layout().state(&guest.ram, 1).expect_err("no lppaca");
        assert_eq!(error, LogError::EyeCatcher { cpu: 1, at: lppaca(1), found: 0x1234_5678 });
        let text = error.to_string();
        assert!(
            text.contains("CPU 1") && text.contains("0x12345678") && text.contains("0xd397d781"),
            "{text}"
        );
        assert!(guest.layout().state(&guest.ram, 0).is_ok());
    }

    #[test]
    fn wrong_symbol_is_an_error() {
        let guest = FakeKernel::new();
        // A map of another kernel: paca_ptrs is somewhere else.
        let map = "c000000000001000 D __per_cpu_offset\nc000000000000100 d vpa_dtl_cpu\nc000000000008000 B paca_ptrs\n";
        let layout = KernelLayout::find(&Symbols::parse(Utf8Path::new("m"), map)).expect("all there");
        let error = layout.state(&guest.ram, 0).expect_err("nowhere").to_string();
        assert!(error.starts_with("CPU 0: failed to read its entry of paca_ptrs"), "{error}");
        let map = "c000000000001000 D __per_cpu_offset\nc000000000008000 B paca_ptrs\n";
        let error =
            KernelLayout::find(&Symbols::parse(Utf8Path::new("m"), map)).expect_err("missing").to_string();
        assert_eq!(error, "the kernel has no symbol `vpa_dtl_cpu` (in m)");
    }

    #[test]
    fn log_that_has_ended_or_begun_again_is_never_written() {
        let refused = |change: &dyn Fn(&FakeKernel)| {
            let guest = FakeKernel::new();
            let layout = guest.layout();
            let mut log = log_of(&guest, 0);
            log.append(&layout, &guest.ram, &[entry(1)]).expect("written");
            change(&guest);
            let before = guest.ram.be64(buffer(0) + 48);
            let error = log.append(&layout, &guest.ram, &[entry(2)]).expect_err("refused").to_string();
            assert_eq!(guest.ram.be64(buffer(0) + 48), before);
            error
        };
        let error = refused(&|guest| guest.ram.set_be64(lppaca(0) + ENABLE_MASK, 0).expect("inside"));
        assert!(error.contains("its mask is 0x0, and was 0x7"), "{error}");
        let error = refused(&|guest| guest.enable(0, 7));
        assert!(error.contains("its index is 0, and 1 entries were written"), "{error}");
        let error = refused(&|guest| guest.ram.set_le64(log(0), 0).expect("inside"));
        assert!(error.contains("its buffer is at guest-physical 0x0, and was at 0x8000"), "{error}");
    }

    #[test]
    fn log_without_a_mask_is_off() {
        let guest = FakeKernel::new();
        guest.enable(0, 0);
        let state = guest.layout().state(&guest.ram, 0).expect("good");
        assert!(!state.is_on());
        assert!(guest.layout().state(&guest.ram, 1).expect("good").is_on());
    }
}
