//! Plans carried out in the memory of a fake kernel.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use super::*;
use crate::dispatch_log::fake_kernel::FakeKernel;
use dtl::testing::{burst, planned};

/// The control of a guest whose monitor answers every command.
fn control_of(kernel: FakeKernel) -> (GuestControl, Symbols) {
    let (monitor, mut qemu) = UnixStream::pair().expect("a pair");
    std::thread::spawn(move || {
        qemu.write_all(b"{\"QMP\":{}}\n")?;
        for _ in BufReader::new(qemu.try_clone()?).lines() {
            qemu.write_all(b"{\"return\":{}}\n")?;
        }
        std::io::Result::Ok(())
    });
    let FakeKernel { ram, symbols } = kernel;
    (GuestControl::for_tests(ram, monitor), symbols)
}

/// Calls a function each time it is waited for; the command prints something after the number of times in the second field.
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
    let (mut control, symbols) = control_of(guest);
    let writer = Writer::new::<String>(&mut control, &symbols, 2_000_000).map_err(|e| e.to_string())?;
    writer.carry_out(plan, 2, &mut Each(|| each(&kernel), WAITS)).map_err(|e| e.to_string())
}

/// How often the writer waits before the command prints something.
const WAITS: u32 = 5;

#[test]
fn waiting_for_output_writes_nothing_before_it() {
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
fn read_entries_are_the_written_less_the_lost() {
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
fn mask_selects_the_entries() {
    let guest = FakeKernel::new();
    guest.enable(0, 4);
    let written = carry_out(&plan(vec![burst(0, 3)]), guest, poll).expect("done");
    assert_eq!((written.masked, written.read.get(&0)), (3, Some(&Vec::new())));
}

#[test]
fn unread_entries_are_not_expected() {
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
fn unexpected_recording_is_an_error() {
    let one = || plan(vec![burst(1, 1)]);
    let off = FakeKernel::new();
    off.enable(1, 0);
    let error = carry_out(&one(), off, |_| false).expect_err("never on");
    assert_eq!(error, "the command ended before the guest asked for the log of CPU 1");
    let error = carry_out(&plan(vec![burst(5, 1)]), FakeKernel::new(), poll).expect_err("no such CPU");
    assert_eq!(error, "cannot write the log of CPU 5: the guest has 2 CPUs");
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
