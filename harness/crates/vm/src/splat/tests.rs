//! Splats of real consoles, and the corners of the scanner.

use std::collections::BTreeSet;
use std::fmt::Write;

use camino::{Utf8Path, Utf8PathBuf};
use expect_test::expect_file;
use guest::{Guest, KnownMessage, Project};

use super::{KnownMessages, Splat, SplatKind, SplatScanner};

/// `kind function fatal lines: line` of each splat, and its call trace.
fn summary(splats: &[Splat]) -> String {
    splats.iter().fold(String::new(), |mut text, splat| {
        let function = splat.function.as_deref().unwrap_or("-");
        let fatal = if splat.fatal { ", fatal" } else { "" };
        let lines = splat.block.len();
        let level = splat.level.map(|level| format!("<{level}> ")).unwrap_or_default();
        let _ = writeln!(text, "  {level}{}{fatal} in {function}, {lines} lines: {}", splat.kind, splat.line);
        if !splat.frames.is_empty() {
            let _ = writeln!(text, "    {}", splat.frames.join(" < "));
        }
        text
    })
}

/// Lines as the kernel prints them at warning level, a microsecond after each other.
fn logged(text: &str) -> String {
    at_level(4, text)
}

fn at_level(level: u8, text: &str) -> String {
    let line = |(at, line): (usize, &str)| format!("<{level}>[    1.{at:06}] {line}\n");
    text.lines().enumerate().map(line).collect()
}

fn scan(console: &str) -> Vec<Splat> {
    Splat::scan(console.as_bytes())
}

/// What is found where these patterns are known.
fn scan_with(console: &[u8], known: &[&str]) -> SplatScanner {
    let message = |pattern: &&str| KnownMessage {
        pattern: (*pattern).to_owned(),
        reason: "a test".to_owned(),
        sometimes: false,
        line: 1,
    };
    let known: Vec<KnownMessage> = known.iter().map(message).collect();
    let mut scanner = SplatScanner::new(KnownMessages::new(&known).expect("valid patterns"));
    scanner.feed(console);
    scanner.finish();
    scanner
}

#[track_caller]
fn one(console: &str) -> Splat {
    let found = scan(console);
    assert_eq!(found.len(), 1, "{}", summary(&found));
    found.into_iter().next().expect("one")
}

fn kinds(console: &str) -> Vec<SplatKind> {
    scan(console).iter().map(|splat| splat.kind).collect()
}

fn guests() -> Vec<Guest> {
    let root = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).expect("the workspace");
    guest::load_all(&Project::at(root).expect("a project")).expect("valid guests")
}

/// The known messages of the guests, and those of the guests that the recordings were made in.
fn known() -> Vec<KnownMessage> {
    // The second is of level 6, which a console without levels does not say.
    let then = [
        "tsc: Unable to calibrate against PIT",
        "sysrq: Trigger a crash",
        "CE: hpet\\d increased min_delta_ns to \\d+ nsec",
    ];
    let message = |pattern: &str| KnownMessage {
        pattern: pattern.to_owned(),
        reason: "then".to_owned(),
        sometimes: false,
        line: 1,
    };
    let now = guests().into_iter().flat_map(|guest| guest.known_messages);
    now.chain(then.map(message)).collect()
}

/// The recorded consoles of a directory, by name.
fn consoles(directory: &str) -> Vec<(String, Vec<u8>)> {
    let dir = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/consoles").join(directory);
    let mut files: Vec<Utf8PathBuf> =
        dir.read_dir_utf8().expect("the consoles").map(|file| file.expect("a file").into_path()).collect();
    files.sort();
    let files = files.into_iter().filter(|file| file.extension() == Some("log"));
    let read = |file: Utf8PathBuf| {
        let console = std::fs::read(&file).expect("readable");
        (file.file_name().expect("a name").to_owned(), console)
    };
    files.map(read).collect()
}

fn check_consoles(directory: &str) -> String {
    let known = KnownMessages::new(&known()).expect("valid patterns");
    let mut text = String::new();
    for (name, console) in consoles(directory) {
        let scan = |pieces: usize| {
            let mut scanner = SplatScanner::new(known.clone());
            console.chunks(pieces).for_each(|piece| scanner.feed(piece));
            scanner.finish();
            scanner.into_splats()
        };
        let splats = scan(console.len());
        let _ = write!(text, "{name}\n{}", summary(&splats));
        // However the console arrives, the same is found.
        assert_eq!(scan(7), splats, "{name}");
    }
    text
}

#[test]
fn real_consoles_have_the_splats_that_were_made() {
    expect_file!["../../testdata/consoles/splats.txt"].assert_eq(&check_consoles(""));
    expect_file!["../../testdata/consoles/levels/splats.txt"].assert_eq(&check_consoles("levels"));
}

#[test]
fn known_messages_of_the_guests_match_no_line_of_a_real_splat() {
    let lines: BTreeSet<String> = ["", "levels"]
        .iter()
        .flat_map(|directory| consoles(directory))
        .flat_map(|(_, console)| Splat::scan(&console))
        .filter(|splat| splat.kind != SplatKind::Message && splat.block.len() > 1)
        // Without what may have come before it.
        .flat_map(|splat| splat.block.into_iter().skip_while(move |line| *line != splat.line))
        .collect();
    assert!(lines.len() > 1000, "{} lines", lines.len());
    for guest in guests() {
        let known = KnownMessages::new(&guest.known_messages).expect("valid patterns");
        for line in &lines {
            let matches: Vec<usize> = known.matches(line).collect();
            assert!(matches.is_empty(), "{}: message {matches:?} matches `{line}`", guest.name);
        }
    }
}

#[test]
fn panic_across_pieces_is_found_without_its_stamp() {
    let mut scanner = SplatScanner::default();
    scanner.feed(b"\x1bc\x1b[?7l<6>[    0.100000] all is well\r\n<0>[    1.234567] Kernel pan");
    scanner.feed(b"ic - not syncing: sysrq triggered crash\r\n<4>[    1.300000] CPU: 0\n");
    let found: Vec<&Splat> = scanner.splats().collect();
    assert_eq!((found[0].kind, found[0].fatal), (SplatKind::Panic, true));
    assert_eq!(found[0].line, "Kernel panic - not syncing: sysrq triggered crash");
}

#[test]
fn text_of_a_process_before_a_report_is_not_part_of_it() {
    for line in ["[    0.707813] ", "<3>[    0.707813] "] {
        let splat = one(&format!("ENABLE{line}BUG: Kernel NULL pointer dereference on write"));
        assert_eq!(splat.line, "BUG: Kernel NULL pointer dereference on write");
    }
}

#[test]
fn message_at_warning_level_is_a_splat_and_another_is_not() {
    for level in 0..=4 {
        let splat = one(&at_level(level, "something: went wrong"));
        assert_eq!((splat.kind, splat.level), (SplatKind::Message, Some(level)));
    }
    for level in 5..=7 {
        assert_eq!(scan(&at_level(level, "WARNING: what is said at this level is none")), []);
    }
    // Neither is what firmware and processes print, and an empty line.
    assert_eq!(scan("SLOF\nLinux ppc64le\r\n#1 SMP PREEMPT 1<4>[    1.000000] \nhello\n"), []);
    // A process that writes to the kernel's log can make one.
    assert_eq!(one("<12>[    1.000000] BUG: made up\n").kind, SplatKind::Bug);
    // Without levels, the console was set to carry nothing else.
    assert_eq!(one("[    1.000000] something: went wrong\n").level, None);
}

#[test]
fn known_message_is_no_splat_and_only_as_a_whole_line() {
    let known = ["CE: hpet\\d increased min_delta_ns to \\d+ nsec", "reboot: .*"];
    let scan = |console: &str| scan_with(console.as_bytes(), &known);
    let healthy = scan(&logged("CE: hpet1 increased min_delta_ns to 5000 nsec"));
    assert_eq!((healthy.splats().count(), healthy.seen().clone()), (0, BTreeSet::from([0])));
    for line in
        ["x CE: hpet1 increased min_delta_ns to 5000 nsec", "CE: hpet1 increased min_delta_ns to 5 nsec!"]
    {
        let other = scan(&logged(line));
        assert_eq!((other.splats().count(), other.seen().len()), (1, 0), "{line}");
    }
}

#[test]
fn splat_is_not_hidden_by_text_that_looks_like_a_known_message() {
    let known = ["reboot: .*"];
    let found = |console: &str| {
        let scanner = scan_with(console.as_bytes(), &known);
        scanner.splats().map(|splat| splat.line.clone()).collect::<Vec<_>>()
    };
    let warning = "WARNING: kernel/x.c:1 at f+0x1/0x2, CPU#1: sh/1";
    let record = format!("<4>[    1.000000] {warning}");
    // A process printed the beginning of a line, or a whole one, and the kernel's line follows it.
    for fake in
        ["<4>[    1.000000] reboot: ", "<4>[    1.000000] reboot: x\r", "[    1.000000] reboot: ", "<4>"]
    {
        assert_eq!(found(&format!("{fake}{record}\n")), [warning], "{fake}");
    }
    // Text of a process within the kernel's line.
    assert_eq!(found("<4>[    1.000000] WARNIreboot: x\n").len(), 1);
    assert_eq!(found("reboot: WARNING: at f+0x1/0x2\n").len(), 1);
    // The kernel's line without its time.
    assert_eq!(found(&format!("<4>{warning}\n")), [warning]);
    // A known message within a report, and after it.
    assert_eq!(found(&format!("{record}\n<4>[    1.000001] reboot: x\n")), [warning]);
}

#[test]
fn line_without_a_level_in_a_report_is_not_its_end() {
    let report = "WARNING: kernel/x.c:1 at f+0x1/0x2, CPU#1: sh/1\nCall Trace:\n <TASK>\n g+0x1/0x2\n";
    let end = "</TASK>\n---[ end trace 0000000000000000 ]---\n";
    for text in ["a process prints\n", "---[ end trace of a process\n", "\n"] {
        let splat = one(&format!("{}{text}{}", logged(report), logged(end)));
        assert_eq!(splat.block.len(), 6, "{:?}", splat.block);
    }
    // One that names a splat is another.
    let found = scan(&format!("{}BUG: of a process\n{}", logged(report), logged(end)));
    assert_eq!(found.iter().map(|splat| splat.block.len()).collect::<Vec<_>>(), [1, 6]);
}

#[test]
fn message_in_or_after_a_report_is_another_splat() {
    let report = "WARNING: kernel/x.c:1 at f+0x1/0x2, CPU#1: sh/1\nCall Trace:\n <TASK>\n g+0x1/0x2\n";
    let end = " </TASK>\n---[ end trace 0000000000000000 ]---\n";
    let other = "Ring buffer clock went backwards: 2 -> 1\n";
    let expected = [SplatKind::Warning, SplatKind::RingBuffer];
    assert_eq!(kinds(&logged(&format!("{report}{end}{other}"))), expected);
    assert_eq!(kinds(&logged(&format!("{report}{other}"))), expected);
    assert_eq!(
        kinds(&logged(&format!("{report}something: went wrong\n"))),
        [expected[0], SplatKind::Message]
    );
    // The killer of processes has more to say after its call trace, and other messages are not that.
    let oom = "tail invoked oom-killer: gfp_mask=0x1\nCPU: 0\nCall Trace:\n <TASK>\n g+0x1/0x2\n </TASK>\nMem-Info:\n\
               Node 0 Normal\nOut of memory: Killed process 38 (tail)\n";
    assert_eq!(
        kinds(&logged(&format!("{oom}something: went wrong\n"))),
        [SplatKind::OutOfMemory, SplatKind::Message]
    );
}

#[test]
fn text_before_a_report_belongs_to_it_unless_it_is_a_splat_by_itself() {
    let warning = "WARNING: kernel/x.c:1 at f+0x1/0x2, CPU#1: sh/1";
    let splat = one(&logged(&format!("the text of a warning\n{warning}\n")));
    assert_eq!((splat.kind, splat.line.as_str(), splat.block.len()), (SplatKind::Warning, warning, 2));
    let splat = one(&logged(&format!("------------[ cut here ]------------\nits text\n{warning}\n")));
    assert_eq!((splat.kind, splat.line.as_str(), splat.block.len()), (SplatKind::Warning, warning, 3));
    let ring = "Ring buffer clock went backwards: 2 -> 1";
    assert_eq!(kinds(&logged(&format!("{ring}\n{warning}\n"))), [SplatKind::RingBuffer, SplatKind::Warning]);
    // Long before it is another matter.
    let early = "<4>[    0.000001] something: went wrong\n<4>[    1.500000] something: again\n";
    assert_eq!(kinds(&format!("{early}<4>[    2.600000] {warning}\n")).len(), 3);
}

#[test]
fn lines_of_one_record_are_one_splat() {
    let splat = one("<3>[    1.000000] an error\n<3>[    1.000000] and its second line\n");
    assert_eq!(splat.block, ["an error", "and its second line"]);
    assert_eq!(kinds("<3>[    1.000000] an error\n<3>[    1.000001] another\n").len(), 2);
}

#[test]
fn oops_and_its_panic_are_one_splat_and_a_second_warning_is_another() {
    let oops = "BUG: kernel NULL pointer dereference, address: 0000000000000008\n\
                Oops: Oops: 0002 [#1] SMP\nRIP: 0010:f+0x1/0x2\n---[ end trace 0000000000000000 ]---\n";
    let panic = "Kernel panic - not syncing: Fatal exception\n---[ end Kernel panic - not syncing: Fatal exception ]---\n";
    let splat = one(&logged(&format!("{oops}{panic}")));
    assert_eq!((splat.kind, splat.fatal, splat.function.as_deref()), (SplatKind::Oops, true, Some("f")));
    let warning = "WARNING: kernel/x.c:1 at g+0x1/0x2, CPU#1: sh/1\n";
    assert_eq!(scan(&logged(&format!("{warning}{oops}{panic}"))).len(), 2);
    assert_eq!(scan(&logged(&format!("{oops}{warning}{panic}"))).len(), 3);
    // A second oops is another report, and a panic of another cause is none of this one.
    assert_eq!(scan(&logged(&format!("{oops}{oops}"))).len(), 2);
    assert_eq!(
        scan(&logged(&format!("{oops}Kernel panic - not syncing: Attempted to kill init!\n"))).len(),
        2
    );
}

#[test]
fn phrase_determines_kind_and_function() {
    use SplatKind::*;
    let kinds = [
        (3, "BUG: KASAN: slab-out-of-bounds in f+0x1/0x2", Kasan, Some("f")),
        (3, "BUG: KFENCE: out-of-bounds read in f.isra.0+0x1/0x2", Kfence, Some("f.isra.0")),
        (3, "BUG: KMSAN: uninit-value in f+0x1/0x2", Kmsan, Some("f")),
        (3, "BUG: KCSAN: data-race in f / g", Kcsan, Some("f")),
        (3, "UBSAN: array-index-out-of-bounds in kernel/x.c:1:2", Ubsan, None),
        (4, "WARNING: possible circular locking dependency detected", Lockdep, None),
        (4, "WARNING: suspicious RCU usage", Lockdep, None),
        (4, "WARNING: sh/1 still has locks held!", Lockdep, None),
        (3, "INFO: trying to register non-static key.", Lockdep, None),
        (4, "WARNING: CPU: 0 PID: 1 at kernel/x.c:1 f+0x1/0x2 [mod]", Warning, Some("f")),
        (3, "BUG: sleeping function called from invalid context at kernel/x.c:1", AtomicSleep, None),
        (1, "BUG: Bad page state in process sh  pfn:00100", Bug, None),
        (3, "mm/pgtable-generic.c:53: bad pmd 00000000a7b8d08e(0000000000000001)", Bug, None),
        (0, "Thread overran stack, or stack corrupted", Bug, None),
        (0, "watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [sh:1]", Lockup, None),
        (0, "watchdog: Watchdog detected hard LOCKUP on cpu 0", Lockup, None),
        (0, "watchdog: CPU 1 detected hard LOCKUP on other CPUs 0", Lockup, None),
        (0, "watchdog: CPU 0 self-detected hard LOCKUP @ f+0x1/0x2", Lockup, Some("f")),
        (0, "BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 30s!", Lockup, None),
        (3, "INFO: task sh:1 blocked for more than 120 seconds.", HungTask, None),
        (3, "INFO: task sh:1 is blocked on a mutex likely owned by task sh:2.", HungTask, None),
        (3, "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", RcuStall, None),
        (3, "Out of memory: Killed process 38 (tail)", OutOfMemory, None),
        (
            4,
            "tail invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0",
            OutOfMemory,
            None,
        ),
        (4, "sh: page allocation failure: order:4, mode:0x40820", AllocationFailure, None),
        (3, "irq 9: nobody cared (try booting with the \"irqpoll\" option)", UnhandledIrq, None),
        (0, "unregister_netdevice: waiting for lo to become free. Usage count = 2", NetdeviceLeak, None),
        (4, "sh[1]: segfault (11) at 0 nip 1000 lr 1000 code 1 in sh[10000+1000]", Segfault, None),
        (4, "sh[1]: segfault at 0 ip 00007f sp 00007f error 4", Segfault, None),
        (4, "traps: sh[1] general protection fault ip:1 sp:2 error:0", Segfault, None),
        (1, "general protection fault: 0000 [#1]", Oops, None),
        (3, "BUG kmalloc-64 (Tainted: G    B      O       ): Right Redzone overwritten", Slab, None),
        (3, "FIX kmalloc-64: Object at 0x0000000053f63dc7 not freed", Slab, None),
        (
            3,
            "list_add corruption. prev->next should be next (c1), but was c2. (prev=c3).",
            ListCorruption,
            None,
        ),
        (3, "list_del corruption, c1->next is LIST_POISON1 (dead000000000100)", ListCorruption, None),
        (4, "Ring buffer clock went backwards: 200 -> 100", RingBuffer, None),
        (4, "Failed to allocate ring buffer", RingBuffer, None),
        (4, "TRACE EVENT ERROR: Bad dereference argument: 'REC->p'", Tracer, None),
        (4, "Failed to enable trace event: foo_bar", Tracer, None),
        (4, "Failed to register trigger 'hist' on event foo_bar", Tracer, None),
        (4, "Could not create tracefs 'enable' entry", Tracer, None),
        (3, "ERROR: tracer: failed to allocate the pages", Tracer, None),
        (3, "rethook: Return address not found! Maybe there is a bug in the kernel", Tracer, None),
        (4, "------------[ ftrace bug ]------------", Tracer, None),
        (4, "kprobe failed to arm", Tracer, None),
        (3, "percpu_ref underflow", Message, None),
        (
            3,
            "softirq: huh, entered softirq 1 TIMER with preempt_count 00000100, exited with 00000101?",
            Message,
            None,
        ),
        (
            3,
            "kobject: kobject_add_internal failed for a with -EEXIST, don't try to register things",
            Message,
            None,
        ),
        (4, "sysfs: cannot create duplicate filename '/kernel/a'", Message, None),
        (4, "kmemleak: Cannot insert 0xc1 into the object search tree (overlaps existing)", Message, None),
    ];
    for (level, line, kind, function) in kinds {
        let splat = one(&at_level(level, line));
        assert_eq!((splat.kind, splat.function.as_deref()), (kind, function), "{line}");
        assert_eq!((splat.line.as_str(), splat.level), (line, Some(level)));
    }
}

/// The lines of `__print_unreferenced` and `dedup_flush`, mm/kmemleak.c, Linux 7.2.12, of a module that loses memory.
#[test]
fn leak_is_named_by_the_function_that_allocated() {
    use SplatKind::{Leak, Message};
    let report = |address: &str| {
        format!(
            "\
<4>[   21.100000] kmemleak: unreferenced object 0x{address} (size 64):
<4>[   21.100000] kmemleak:   comm \"modprobe\", pid 63, jiffies 4294892096
<4>[   21.100000] kmemleak:   hex dump (first 32 bytes):
<4>[   21.100000] kmemleak:     00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
<4>[   21.100000] kmemleak:     42 55 47 3a 20 78 00 00 00 00 00 00 00 00 00 00  BUG: x..........
<4>[   21.100000] kmemleak:   backtrace (crc 0):
<4>[   21.100000] kmemleak:     kmemleak_alloc+0x1/0x2
<4>[   21.100000] kmemleak:     __kmalloc_cache_noprof+0x1e4/0x2f0
<4>[   21.100000] kmemleak:     lose+0x2c/0x40 [loses]
<4>[   21.100000] kmemleak:     do_one_initcall+0x1/0x2
<4>[   21.100000] kmemleak:   ... and 3 more object(s) with the same backtrace
"
        )
    };
    let console = format!("{}{}<4>[   21.100001] other\n", report("ffff88800a"), report("c000000002"));
    let splats = scan(&console);
    let kinds: Vec<_> = splats.iter().map(|splat| (splat.kind, splat.function.as_deref())).collect();
    assert_eq!(kinds, [(Leak, Some("lose")), (Leak, Some("lose")), (Message, None)]);
    assert_eq!(splats[0].frames, ["lose", "do_one_initcall"]);
    assert_eq!(splats[0].block.len(), 11);
    assert_eq!(splats[0].fingerprint(), splats[1].fingerprint());
}

#[test]
fn lost_messages_are_counted_and_are_no_splat() {
    let scanner = scan_with(
        b"<4>[    1.000000] a\n** 12 printk messages dropped **\n<3>[    1.000001] a\nx** 1 printk messages dropped **\r\n\
          <3>[    1.000000] printk: dropped 5 messages\n",
        &["a"],
    );
    assert_eq!((scanner.lost(), scanner.splats().count()), (18, 0));
}

#[test]
fn splat_comes_after_the_last_request_that_has_ended() {
    let console = "<4>[    1.000000] one\n<12>[    1.000001] goldtrace: end of request 0000000000000000\n\
                   <4>[    1.000002] two\n<12>[    1.000003] goldtrace: end of request 00000000000000ff\r\n\
                   <4>[    1.000004] three\n";
    let after: Vec<Option<u64>> = scan(console).iter().map(|splat| splat.after).collect();
    assert_eq!(after, [None, Some(0), Some(255)]);
    // The kernel itself, or a process on the console, ends no request.
    for line in [
        "<4>[    1.000000] goldtrace: end of request 00000000000000ff",
        "goldtrace: end of request 00000000000000ff",
    ] {
        let scanner = scan_with(format!("{line}\n").as_bytes(), &[]);
        assert_eq!(scanner.mark(), None, "{line}");
    }
}

#[test]
fn fingerprint_is_the_same_at_other_addresses_and_in_other_processes() {
    let report = |offset: &str, process: &str| {
        let text = format!(
            "WARNING: kernel/x.c:1 at f+0x{offset}/0x20, CPU#1: {process}\nCPU: 1\nCall Trace:\n <TASK>\n \
             ? chance+0x1/0x2\n dump_stack+0x1/0x2\n a+0x{offset}/0x20\n b+0x1/0x2\n c+0x1/0x2\n d+0x1/0x2\n \
             e+0x1/0x2\n g+0x1/0x2\n </TASK>\n"
        );
        one(&logged(&text)).fingerprint()
    };
    assert_eq!(report("1", "sh/1"), "warning in f: a < b < c < d < e");
    assert_eq!(report("1", "sh/1"), report("2", "modprobe/7"));
    let message = |text: &str| one(&logged(text)).fingerprint();
    assert_eq!(message("sh[12]: segfault at 10 ip 00007f"), "segfault: N segfault at N ip N");
}

#[test]
fn byte_at_the_longest_line_is_kept_and_a_phrase_across_the_cut_is_found() {
    let phrase = "BUG: Kernel NULL pointer dereference";
    for prefix in ["", "<4>[    1.000000] "] {
        let text = format!("{prefix}{phrase}");
        for before in (1 << 16) - text.len() - 2..(1 << 16) + 2 {
            let console = format!("{}{text}\n", " ".repeat(before));
            assert_eq!(scan(&console).len(), 1, "{before} bytes before `{text}`");
        }
        // What is judged twice is found once.
        let console = format!("{}{text}{}\n", " ".repeat((1 << 16) - 100), "x".repeat(1 << 17));
        assert_eq!(scan(&console).len(), 1);
    }
}

#[test]
fn flood_of_splats_fills_no_memory_and_its_panic_is_kept() {
    let line = logged(&format!("WARNING: at f+0x1/0x2 {}", "x".repeat(4000)));
    let splats = scan(&format!("{}{}", line.repeat(2000), at_level(0, "Kernel panic - not syncing: x")));
    let bytes: usize = splats.iter().flat_map(|splat| &splat.block).map(String::len).sum();
    assert!(splats.len() <= 257 && bytes < 1 << 19, "{} splats, {bytes} bytes", splats.len());
    assert!(splats.last().is_some_and(|splat| splat.fatal));
    let endless = format!("WARNING: at f+0x1/0x2\n{}", "CPU: 1\n".repeat(10_000));
    assert_eq!(one(&logged(&endless)).block.len(), 250);
}

/// `.TOC.` is the only symbol near data that a stack may hold on ppc64le (`print_ip_sym`, arch/powerpc/kernel/process.c).
#[test]
fn symbol_that_begins_with_a_dot_is_a_line_of_the_call_trace() {
    let console = "\
<1>[    2.100000] BUG: Kernel NULL pointer dereference on write at 0x00000004
<4>[    2.100000] Oops: Kernel access of bad area, sig: 11 [#1]
<4>[    2.100000] NIP [c00000000009be94] vpa_dtl_event_add+0x68/0x178
<4>[    2.100000] Call Trace:
<4>[    2.100000] [c000000002677700] [c000000000658000] .TOC.+0x0/0x8000 (unreliable)
<4>[    2.100000] [c000000002677760] [c000000000228be8] event_sched_in+0xe0/0x248
<4>[    2.200000] ---[ end trace 0000000000000000 ]---
<4>[    2.200000] 
<0>[    3.200000] Kernel panic - not syncing: Fatal exception
";
    let splats = Splat::scan(console.as_bytes());
    assert_eq!(splats.len(), 1, "{splats:?}");
    assert!(splats[0].fatal);
}
