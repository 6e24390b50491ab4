//! What a kernel has in its memory for the logs, without the kernel: for tests.

use camino::Utf8Path;

use dtl::{ENTRY_SIZE, SLOTS, Symbols};

use super::log::{ENABLE_MASK, EYE_CATCHER, INDEX, KernelLayout, LAST_READ, LINEAR};
use crate::memory::Ram;

const RAM: u64 = 0x4_0000;
const OFFSETS: u64 = 0x1000;
const PACAS: u64 = 0x2000;
const CLOCK: u64 = 0x3000;
const PER_CPU: u64 = 0x100;
const AREA: u64 = 0x1_0000;

/// The memory of a kernel with two processors that records both.
pub(crate) struct FakeKernel {
    /// Its memory.
    pub(crate) ram: Ram,
    /// Its symbols, and a function `f`.
    pub(crate) symbols: Symbols,
}

/// Where the lppaca of a processor is.
pub(crate) fn lppaca(cpu: u64) -> u64 {
    0x4000 + 0x400 * cpu
}

/// Where the log of a processor is.
pub(crate) fn buffer(cpu: u64) -> u64 {
    0x8000 + 0x1000 * cpu
}

/// Where `vpa_dtl_cpu` of a processor is.
pub(crate) fn log(cpu: u64) -> u64 {
    PER_CPU + AREA * (cpu + 1)
}

// All addresses here are inside of the memory.
impl FakeKernel {
    pub(crate) fn new() -> FakeKernel {
        let ram = Ram::new(RAM).expect("room for a quarter of a MiB");
        let set = |at, value| ram.set_le64(at, value).expect("inside");
        set(PACAS, LINEAR + PACAS + 0x100);
        set(CLOCK, 1_000_000);
        set(CLOCK + 8, 512_000_000);
        for cpu in 0..2 {
            set(OFFSETS + 8 * cpu, AREA * (cpu + 1));
            set(PACAS + 0x100 + 8 * cpu, LINEAR + PACAS + 0x200 + 0x40 * cpu);
            set(PACAS + 0x200 + 0x40 * cpu, LINEAR + lppaca(cpu));
            ram.set_be64(lppaca(cpu), u64::from(EYE_CATCHER) << 32).expect("inside");
        }
        let symbols = [
            (OFFSETS, "__per_cpu_offset"),
            (PER_CPU, "vpa_dtl_cpu"),
            (PACAS, "paca_ptrs"),
            (CLOCK, "boot_tb"),
            (CLOCK + 8, "tb_ticks_per_sec"),
            (0x9000, "f"),
        ];
        let map: String = symbols.iter().map(|(at, name)| format!("{:x} T {name}\n", LINEAR + at)).collect();
        let kernel = FakeKernel { ram, symbols: Symbols::parse(Utf8Path::new("System.map"), &map) };
        kernel.enable(0, 7);
        kernel.enable(1, 7);
        kernel
    }

    /// What the kernel does when a recording begins.
    pub(crate) fn enable(&self, cpu: u64, mask: u8) {
        self.ram.set_le64(log(cpu), LINEAR + buffer(cpu)).expect("inside");
        self.ram.set_le64(log(cpu) + LAST_READ, 0).expect("inside");
        self.ram.set_be64(lppaca(cpu) + INDEX, 0).expect("inside");
        self.ram.set_be64(lppaca(cpu) + ENABLE_MASK, u64::from(mask) << 56).expect("inside");
    }

    /// What the kernel does when it looks: it reads up to the index, giving each entry to `take`, and
    /// says so. How many entries that were.
    pub(crate) fn poll(&self, cpu: u64, mut take: impl FnMut([u64; ENTRY_SIZE / 8])) -> u64 {
        let index = self.ram.be64(lppaca(cpu) + INDEX).expect("inside");
        let read = self.ram.le64(log(cpu) + LAST_READ).expect("inside");
        for at in read.max(index.saturating_sub(SLOTS - 1))..index {
            let slot = buffer(cpu) + at % SLOTS * ENTRY_SIZE as u64;
            take(std::array::from_fn(|word| self.ram.le64(slot + 8 * word as u64).expect("inside")));
        }
        self.ram.set_le64(log(cpu) + LAST_READ, index).expect("inside");
        index - read
    }

    pub(crate) fn layout(&self) -> KernelLayout {
        KernelLayout::find(&self.symbols).expect("all there")
    }
}
