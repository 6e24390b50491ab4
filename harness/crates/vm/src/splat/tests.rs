//! Splats of real consoles, and the corners of the scanner.

use std::fmt::Write;

use camino::Utf8Path;
use expect_test::expect_file;

use super::{Splat, SplatKind, SplatScanner};

/// `kind function fatal lines: line` of each splat.
fn summary(splats: &[Splat]) -> String {
    splats.iter().fold(String::new(), |mut text, splat| {
        let function = splat.function.as_deref().unwrap_or("-");
        let fatal = if splat.fatal { ", fatal" } else { "" };
        let lines = splat.block.len();
        let _ = writeln!(text, "  {}{fatal} in {function}, {lines} lines: {}", splat.kind, splat.line);
        text
    })
}

fn scan(text: &str) -> Vec<Splat> {
    Splat::scan(text.as_bytes())
}

#[track_caller]
fn one(text: &str) -> Splat {
    let found = scan(text);
    assert_eq!(found.len(), 1, "{}", summary(&found));
    found.into_iter().next().expect("one")
}

#[test]
fn real_consoles_have_the_splats_that_were_made() {
    let dir = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/consoles");
    let mut files: Vec<_> = dir.read_dir_utf8().expect("the consoles").flatten().collect();
    files.sort_by(|a, b| a.file_name().cmp(b.file_name()));
    let mut text = String::new();
    for file in files.iter().filter(|file| file.path().extension() == Some("log")) {
        let console = std::fs::read(file.path()).expect("readable");
        let _ = write!(text, "{}\n{}", file.file_name(), summary(&Splat::scan(&console)));
        // However the console arrives, the same is found.
        let mut scanner = SplatScanner::default();
        for piece in console.chunks(7) {
            scanner.feed(piece);
        }
        scanner.finish();
        assert_eq!(scanner.into_splats(), Splat::scan(&console), "{}", file.file_name());
    }
    expect_file!["../../testdata/consoles/splats.txt"].assert_eq(&text);
}

#[test]
fn panic_across_pieces_is_found_without_its_stamp() {
    let mut scanner = SplatScanner::default();
    scanner.feed(b"\x1bc\x1b[?7l[    0.100000] all is well\r\n[    1.234567] Kernel pan");
    scanner.feed(b"ic - not syncing: sysrq triggered crash\r\n[    1.300000] CPU: 0\n");
    let found: Vec<&Splat> = scanner.splats().collect();
    assert_eq!((found[0].kind, found[0].fatal), (SplatKind::Panic, true));
    assert_eq!(found[0].line, "Kernel panic - not syncing: sysrq triggered crash");
}

#[test]
fn text_of_a_process_before_a_report_is_not_part_of_it() {
    let splat = one("ENABLE[    0.707813] BUG: Kernel NULL pointer dereference on write");
    assert_eq!(splat.line, "BUG: Kernel NULL pointer dereference on write");
}

#[test]
fn ordinary_boot_has_no_splat() {
    let console = "[    0.000000] Linux version 7.2.13\n[    0.1] random: crng init done\n\
                   [    0.2] printk: legacy console [hvc0] enabled\n[    0.3] debug: ignoring loglevel setting.\n";
    assert_eq!(scan(console), []);
}

#[test]
fn oops_and_its_panic_are_one_splat_and_a_second_warning_is_another() {
    let oops = "BUG: kernel NULL pointer dereference, address: 0000000000000008\n\
                Oops: Oops: 0002 [#1] SMP\nRIP: 0010:f+0x1/0x2\n---[ end trace 0000000000000000 ]---\n";
    let panic = "Kernel panic - not syncing: Fatal exception\n---[ end Kernel panic - not syncing: Fatal exception ]---\n";
    let splat = one(&format!("{oops}{panic}"));
    assert_eq!((splat.kind, splat.fatal, splat.function.as_deref()), (SplatKind::Oops, true, Some("f")));
    let warning = "WARNING: kernel/x.c:1 at g+0x1/0x2, CPU#1: sh/1\n";
    assert_eq!(scan(&format!("{warning}{oops}{panic}")).len(), 2);
    assert_eq!(scan(&format!("{oops}{warning}{panic}")).len(), 3);
    // A second oops is another report, and a panic of another cause is none of this one.
    assert_eq!(scan(&format!("{oops}{oops}")).len(), 2);
    assert_eq!(scan(&format!("{oops}Kernel panic - not syncing: Attempted to kill init!\n")).len(), 2);
}

#[test]
fn phrase_determines_kind_and_function() {
    use SplatKind::*;
    let kinds = [
        ("BUG: KASAN: slab-out-of-bounds in f+0x1/0x2", Kasan, Some("f")),
        ("BUG: KFENCE: out-of-bounds read in f.isra.0+0x1/0x2", Kfence, Some("f.isra.0")),
        ("BUG: KMSAN: uninit-value in f+0x1/0x2", Kmsan, Some("f")),
        ("BUG: KCSAN: data-race in f / g", Kcsan, Some("f")),
        ("UBSAN: array-index-out-of-bounds in kernel/x.c:1:2", Ubsan, None),
        ("WARNING: possible circular locking dependency detected", Lockdep, None),
        ("WARNING: suspicious RCU usage", Lockdep, None),
        ("WARNING: sh/1 still has locks held!", Lockdep, None),
        ("WARNING: CPU: 0 PID: 1 at kernel/x.c:1 f+0x1/0x2 [mod]", Warning, Some("f")),
        ("BUG: sleeping function called from invalid context at kernel/x.c:1", AtomicSleep, None),
        ("BUG: Bad page state in process sh  pfn:00100", Bug, None),
        ("watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [sh:1]", Lockup, None),
        ("BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 30s!", Lockup, None),
        ("INFO: task sh:1 blocked for more than 120 seconds.", HungTask, None),
        ("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", RcuStall, None),
        ("Out of memory: Killed process 38 (tail)", OutOfMemory, None),
        ("sh: page allocation failure: order:4, mode:0x40820", AllocationFailure, None),
        ("irq 9: nobody cared (try booting with the \"irqpoll\" option)", UnhandledIrq, None),
        ("unregister_netdevice: waiting for lo to become free. Usage count = 2", NetdeviceLeak, None),
        ("sh[1]: segfault (11) at 0 nip 1000 lr 1000 code 1 in sh[10000+1000]", Segfault, None),
        ("sh[1]: segfault at 0 ip 00007f sp 00007f error 4", Segfault, None),
        ("traps: sh[1] general protection fault ip:1 sp:2 error:0", Segfault, None),
        ("general protection fault: 0000 [#1]", Oops, None),
    ];
    for (line, kind, function) in kinds {
        let splat = one(&format!("[    1.000000] {line}\n"));
        assert_eq!((splat.kind, splat.function.as_deref()), (kind, function), "{line}");
        assert_eq!(splat.line, line);
    }
}

#[test]
fn byte_at_the_longest_line_is_kept_and_a_phrase_across_the_cut_is_found() {
    let phrase = "BUG: Kernel NULL pointer dereference";
    for before in (1 << 16) - phrase.len() - 2..(1 << 16) + 2 {
        let console = format!("{}{phrase}\n", " ".repeat(before));
        assert_eq!(scan(&console).len(), 1, "{before} bytes before the phrase");
    }
    // What is judged twice is found once.
    let console = format!("{}{phrase}{}\n", " ".repeat((1 << 16) - 100), "x".repeat(1 << 17));
    assert_eq!(scan(&console).len(), 1);
}

#[test]
fn flood_of_splats_fills_no_memory_and_its_panic_is_kept() {
    let line = format!("WARNING: at f+0x1/0x2 {}\n", "x".repeat(4000));
    let splats = scan(&format!("{}Kernel panic - not syncing: x\n", line.repeat(2000)));
    let bytes: usize = splats.iter().flat_map(|splat| &splat.block).map(String::len).sum();
    assert!(splats.len() <= 257 && bytes < 1 << 19, "{} splats, {bytes} bytes", splats.len());
    assert!(splats.last().is_some_and(|splat| splat.fatal));
    let endless = format!("WARNING: at f+0x1/0x2\n{}", "line\n".repeat(10_000));
    assert_eq!(one(&endless).block.len(), 250);
}
