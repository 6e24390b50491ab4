//! The tester tested on real guests: what goldtrace reports when a guest, a step or QEMU misbehaves.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{TestProject, shown};
use guest::{KnownMessage, Quirk};
use trial::{Outcome, TrialResult};

const GUESTS: [&str; 2] = ["x86_64", "ppc64le"];

/// A case of one script whose output is captured as `out`.
fn script(script: &str, timeout: &str) -> String {
    let body: String = script.lines().map(|line| format!("      {line}\n")).collect();
    format!("title: T\nsteps:\n  - run: |\n{body}    timeout: {timeout}\n    capture: out\n")
}

fn run_script(text: &str, golden: &str, guest: &str) -> (TrialResult, TestProject) {
    let project = TestProject::new(&script(text, "20s"), &[("out", golden)]);
    (project.run(guest), project)
}

#[track_caller]
fn assert_error(finished: &TrialResult, parts: &[&str]) {
    let text = shown(finished);
    assert!(matches!(finished.outcome, Outcome::Error(_)), "{text}");
    for part in parts {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
}

#[track_caller]
fn assert_fail(finished: &TrialResult, parts: &[&str]) {
    let text = shown(finished);
    assert!(matches!(finished.outcome, Outcome::Fail(_)), "{text}");
    for part in parts {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
}

#[test]
fn right_output_passes_and_a_changed_letter_fails() {
    for guest in GUESTS {
        let (finished, _project) = run_script("echo right", "right\n", guest);
        assert!(matches!(finished.outcome, Outcome::Pass), "{}", shown(&finished));
        let (finished, _project) = run_script("echo right", "righT\n", guest);
        assert_fail(&finished, &["cases/t/out.golden:2: the capture differs", "-righT", "+right"]);
    }
}

#[test]
fn panic_is_a_failure_with_its_line_and_step() {
    for guest in GUESTS {
        let (finished, _project) = run_script("echo c > /proc/sysrq-trigger", "", guest);
        assert_fail(
            &finished,
            &[
                "kernel splat that ended the guest: Kernel panic - not syncing: sysrq triggered crash",
                "cases/t/case.yaml:3: echo c > /proc/sysrq-trigger",
            ],
        );
    }
}

#[test]
fn splat_fails_a_trial_whose_captures_are_right() {
    let (finished, _project) =
        run_script("echo '<4>BUG: made up' > /dev/kmsg\necho right", "right\n", "ppc64le");
    assert_fail(&finished, &["kernel splat: BUG: made up"]);
}

#[test]
fn step_that_hangs_is_killed_at_its_timeout() {
    let project = TestProject::new(&script("echo begun >&2\nsleep 1000", "1s"), &[("out", "")]);
    let finished = project.run("x86_64");
    assert_fail(
        &finished,
        &[
            "hung: timed out after 1s: the step was killed (`timeout:`",
            "stderr: begun",
            "cases/t/case.yaml:3: echo begun >&2 ...",
        ],
    );
}

#[test]
fn step_may_take_longer_on_a_kernel_with_a_slow_detector() {
    let project = TestProject::new(&script("sleep 3; echo right", "1s"), &[("out", "right\n")]);
    assert_fail(&project.run("x86_64"), &["hung: timed out after 1s"]);
    let finished = project.run_changed("x86_64", |prepared| {
        prepared.kernel.symbols = Arc::new(["CONFIG_PROVE_LOCKING".to_owned()].into());
    });
    assert!(matches!(finished.outcome, Outcome::Pass), "{}", shown(&finished));
}

#[test]
fn step_that_floods_is_killed_at_its_output_limit() {
    let (finished, _project) = run_script("dd if=/dev/zero bs=65536 count=800", "", "x86_64");
    assert_fail(&finished, &["flooded: the output reached 8MiB: the step was killed (`output_limit:`"]);
}

#[test]
fn step_may_print_as_much_as_its_output_limit() {
    let run = |limit: &str| {
        let text = format!(
            "title: T\nsteps:\n  - run: dd if=/dev/zero bs=65536 count=144 2> /dev/null\n    output_limit: {limit}\n  - run: echo done\n    capture: out\n"
        );
        TestProject::new(&text, &[("out", "done\n")]).run("x86_64")
    };
    let finished = run("9217KiB");
    assert!(matches!(finished.outcome, Outcome::Pass), "{}", shown(&finished));
    assert_fail(
        &run("9215KiB"),
        &["flooded: the output reached 9215KiB: the step was killed (`output_limit:`"],
    );
}

#[test]
fn output_is_exact_to_the_byte() {
    for guest in GUESTS {
        let (finished, project) = run_script("printf 'a\\0b\\r\\377\\033[31m\\n'", "a\n", guest);
        assert_fail(&finished, &["-a", "+a\\x00b\\x0d\\xff\\x1b[31m"]);
        assert_eq!(project.capture(guest, "out"), b"a\0b\r\xff\x1b[31m\n");
    }
}

#[test]
fn output_streams_are_apart() {
    let text = script("echo one\necho noise >&2\necho two", "20s");
    let project = TestProject::new(&format!("{text}    stderr: any\n"), &[("out", "one\ntwo\n")]);
    let finished = project.run("x86_64");
    assert!(matches!(finished.outcome, Outcome::Pass), "{}", shown(&finished));
    assert_eq!(project.capture("x86_64", "out"), b"one\ntwo\n");
    assert_fail(
        &TestProject::new(&text, &[("out", "one\ntwo\n")]).run("x86_64"),
        &[
            "noisy: unexpected output on standard error (`stderr: any`",
            "stderr: noise",
            "case.yaml:3: echo one",
        ],
    );
}

/// The bytes of an end record with status 0, as printf(1) writes them.
const FORGED: &str = r"GTA1\204\0\0\0\1\0\0\0\0\0\0\0\60\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

#[test]
fn forged_end_record_is_text() {
    for guest in GUESTS {
        let text = format!("printf '{FORGED}'\nprintf '{FORGED}' >&2\necho; echo after");
        let (finished, project) = run_script(&text, "", guest);
        assert_fail(&finished, &["+GTA1\\x84\\x00", "+after"]);
        let capture = project.capture(guest, "out");
        assert!(capture.starts_with(b"GTA1\x84\0\0\0\x01") && capture.ends_with(b"\nafter\n"), "{capture:?}");
        assert_eq!(capture.len(), 24 + 48 + 7);
    }
}

#[test]
fn guest_command_cannot_write_to_the_agents_port() {
    let text = format!(
        "for port in /dev/vport*; do printf '{FORGED}' > $port && echo written; done 2> /dev/null; true"
    );
    let (finished, _project) = run_script(&text, "", "x86_64");
    assert!(matches!(finished.outcome, Outcome::Pass), "{}", shown(&finished));
}

#[test]
fn process_left_behind_holds_up_no_step() {
    let (finished, _project) = run_script("sleep 1000 > /dev/null 2>&1 &\necho done", "done\n", "x86_64");
    assert!(matches!(finished.outcome, Outcome::Pass), "{}", shown(&finished));
    let (finished, _project) = run_script("sleep 1000 &\necho done", "done\n", "x86_64");
    assert_fail(&finished, &["left open: a process that the step left behind holds its output open"]);
}

/// `cat` splices, which holds the pipe's mutex for as long as nothing is traced.
#[test]
fn step_whose_output_cannot_be_read_ends_at_its_timeout_and_the_next_one_works() {
    for text in ["cat trace_pipe & sleep 0.3", "cat trace_pipe"] {
        let case = format!(
            "title: T\nsteps:\n  - run: echo next\n    capture: next\n  - run: {text}\n    timeout: 2s\n"
        );
        for guest in GUESTS {
            let finished = TestProject::new(&case, &[("next", "next\n")]).run(guest);
            assert_fail(&finished, &["hung: timed out after 2s: the step was killed"]);
        }
    }
}

#[test]
fn standard_streams_can_be_opened_by_name() {
    let text = "echo a; echo b > /dev/stdout; echo c; echo d > /dev/fd/1; echo e | cat /dev/stdin";
    for guest in GUESTS {
        let (finished, _project) = run_script(text, "a\nb\nc\nd\ne\n", guest);
        assert!(matches!(finished.outcome, Outcome::Pass), "{}", shown(&finished));
    }
}

#[test]
fn pipeline_fails_with_any_of_its_parts() {
    for guest in GUESTS {
        let (finished, _project) = run_script("sh -c 'kill -SEGV $$' | cat; echo right", "right\n", guest);
        assert_fail(&finished, &["refused: exit status 139, expected 0"]);
        let (finished, _project) = run_script("cat /nonexistent | head", "", guest);
        assert_fail(&finished, &["refused: exit status 1", "stderr: cat: can't open '/nonexistent'"]);
    }
}

#[test]
fn unexpected_exit_status_is_a_failure_with_the_steps_stderr() {
    let (finished, _project) = run_script("ls /nowhere", "", "x86_64");
    assert_fail(&finished, &["refused: exit status 1, expected 0", "stderr: ls: /nowhere: No such file"]);
}

#[test]
fn missing_file_is_a_failure() {
    let project =
        TestProject::new("title: T\nsteps:\n  - read: absent/hist\n    capture: out\n", &[("out", "")]);
    let finished = project.run("ppc64le");
    assert_fail(
        &finished,
        &["refused: failed to read absent/hist: No such file or directory", "cases/t/case.yaml:3"],
    );
}

#[test]
fn guest_that_shuts_down_during_a_step_is_a_failure() {
    for guest in GUESTS {
        let (finished, _project) = run_script("echo b > /proc/sysrq-trigger; sleep 10", "", guest);
        assert_fail(
            &finished,
            &["shut down: the guest shut down before it was asked to", "cases/t/case.yaml:3: echo b"],
        );
    }
}

#[test]
fn missing_qemu_is_an_error_that_names_its_package() {
    let project = TestProject::new(&script("true", "5s"), &[("out", "")]);
    let finished =
        project.run_changed("x86_64", |ready| ready.guest.qemu.binary = "qemu-system-absent".to_owned());
    assert_error(&finished, &["program qemu-system-absent not found", "qemu-system-x86", "ci/bootstrap"]);
}

#[test]
fn qemu_that_exits_at_once_is_shown_with_its_command_and_stderr() {
    let project = TestProject::new(&script("true", "5s"), &[("out", "")]);
    let finished =
        project.run_changed("x86_64", |ready| ready.guest.qemu.machine = "no-such-machine".to_owned());
    assert_error(
        &finished,
        &["QEMU exited with exit status: 1", "unsupported machine type", "-machine 'no-such-machine,"],
    );
}

fn run_with_argument(project: &TestProject, guest: &str, word: &str, seconds: u64) -> TrialResult {
    let quirk = Quirk { set: vec![word.to_owned()], why: "a test".to_owned() };
    project.run_changed(guest, |ready| {
        ready.guest.kernel.arguments.push(quirk);
        ready.boot_timeout = Duration::from_secs(seconds);
    })
}

#[test]
fn kernel_that_panics_at_boot_is_an_error_with_the_panic() {
    for guest in GUESTS {
        let project = TestProject::new(&script("true", "5s"), &[("out", "")]);
        let finished = run_with_argument(&project, guest, "rdinit=/bin/false", 30);
        assert_error(
            &finished,
            &["the kernel panicked before the agent's greeting", "Attempted to kill init"],
        );
    }
}

#[test]
fn guest_that_never_reaches_the_agent_times_out() {
    let project = TestProject::new(&script("true", "5s"), &[("out", "")]);
    let finished = run_with_argument(&project, "x86_64", "rdinit=/bin/sh", 3);
    assert_error(
        &finished,
        &[
            "timed out after 3.0 s waiting for the agent's greeting",
            "QEMU was started as: setpriv --no-new-privs",
            " qemu-system-x86_64 -nodefaults",
        ],
    );
}

#[test]
fn kernel_that_is_not_the_built_one_is_an_error() {
    let project = TestProject::new(&script("true", "5s"), &[("out", "")]);
    let finished =
        project.run_changed("x86_64", |ready| ready.kernel.kernel.release = "0.0-other".to_owned());
    assert_error(&finished, &["expected 0.0-other"]);
}

#[test]
fn case_that_needs_another_kernel_config_is_skipped_with_the_symbol() {
    let case = format!("requires: [CONFIG_NO_SUCH_THING]\n{}", script("true", "5s"));
    let finished = TestProject::new(&case, &[("out", "")]).run("x86_64");
    let text = shown(&finished);
    assert!(matches!(finished.outcome, Outcome::Skip(_)), "{text}");
    assert!(text.contains("has no CONFIG_NO_SUCH_THING"), "{text}");
}

#[test]
fn known_bug_is_xfail_and_its_absence_is_xpass() {
    let golden = "#@ xfail \"the kernel says wrong\"\nright\n#@ actual\nwrong\n#@ end\nrest\n";
    let run = |text: &str| TestProject::new(&script(text, "5s"), &[("out", golden)]).run("x86_64");
    let finished = run("echo wrong; echo rest");
    assert!(matches!(finished.outcome, Outcome::Xfail(_)), "{}", shown(&finished));
    assert!(shown(&finished).contains("the kernel says wrong"), "{}", shown(&finished));
    let finished = run("echo right; echo rest");
    assert!(matches!(finished.outcome, Outcome::Xpass { .. }), "{}", shown(&finished));
    assert!(shown(&finished).contains("out.golden:2: expected failure did not occur"));
    assert_fail(&run("echo wrong; echo rest; echo more"), &["+more"]);
    assert_fail(&run("echo other; echo rest"), &["-right", "+other"]);
}

#[test]
fn expected_panic_is_xfail_and_clean_run_is_xpass() {
    let case = |text: &str, symbol: &str| {
        let xfail = format!("xfail:\n  - splat: panic\n    symbol: {symbol}\n    reason: it dies\n");
        format!("{}{xfail}", script(text, "5s"))
    };
    for guest in GUESTS {
        let run = |text: &str, symbol: &str| TestProject::new(&case(text, symbol), &[("out", "")]).run(guest);
        let finished = run("echo c > /proc/sysrq-trigger", "sysrq_handle_crash");
        assert!(matches!(finished.outcome, Outcome::Xfail(_)), "{}", shown(&finished));
        assert_fail(
            &run("echo c > /proc/sysrq-trigger", "vpa_dtl_event_add"),
            &["kernel splat that ended the guest: Kernel panic - not syncing: sysrq triggered crash"],
        );
        let finished = run("true", "sysrq_handle_crash");
        assert!(matches!(finished.outcome, Outcome::Xpass { .. }), "{}", shown(&finished));
    }
}

#[test]
fn other_splat_beside_an_expected_one_is_a_failure() {
    let xfail = "xfail:\n  - splat: panic\n    symbol: sysrq_handle_crash\n    reason: it dies\n";
    let text =
        "echo '<1>BUG: KASAN: made up in quite_another+0x1/0x2' > /dev/kmsg\necho c > /proc/sysrq-trigger";
    for guest in GUESTS {
        let project = TestProject::new(&format!("{}{xfail}", script(text, "20s")), &[("out", "")]);
        assert_fail(&project.run(guest), &["kernel splat: BUG: KASAN: made up in quite_another"]);
    }
}

#[test]
fn message_at_warning_level_fails_a_trial_and_one_below_does_not() {
    for guest in GUESTS {
        let run = |level: u8| {
            let text =
                format!("echo '<{level}>Ring buffer clock went backwards: 5 -> 3' > /dev/kmsg\necho right");
            run_script(&text, "right\n", guest).0
        };
        assert_fail(
            &run(4),
            &["kernel splat: Ring buffer clock went backwards: 5 -> 3", "cases/t/case.yaml:3: echo '<4>Ring"],
        );
        let finished = run(5);
        assert!(matches!(finished.outcome, Outcome::Pass), "{}", shown(&finished));
        let (finished, _project) = run_script("echo '<3>something: went wrong' > /dev/kmsg", "", guest);
        assert_fail(&finished, &["kernel message at level 3: something: went wrong"]);
    }
}

/// A module that warns when it is loaded.
const WARNS: &str = "#include <linux/module.h>\n\
    static __attribute__((noipa)) void warns(void) { WARN_ON(1); }\n\
    static int __init warns_init(void) { warns(); return 0; }\n\
    static void __exit warns_exit(void) { }\n\
    module_init(warns_init);\nmodule_exit(warns_exit);\nMODULE_DESCRIPTION(\"warns\");\nMODULE_LICENSE(\"GPL\");\n";

/// A case of these steps, the last of which captures nothing, with that module.
fn warning_case(steps: &[&str], more: &str) -> TestProject {
    let (last, first) = steps.split_last().expect("a step");
    let step = |text: &&str| format!("  - run: |\n      {}\n", text.replace('\n', "\n      "));
    let text = format!(
        "title: T\nmodules:\n  - directory: module\nsteps:\n{}{}    capture: out\n{more}",
        first.iter().map(step).collect::<String>(),
        step(last)
    );
    let project = TestProject::new(&text, &[("out", "")]);
    project.write("cases/t/module/Kbuild", b"obj-m += warns.o\n");
    project.write("cases/t/module/warns.c", WARNS.as_bytes());
    project
}

#[test]
fn warning_on_a_silenced_console_is_no_pass() {
    for guest in GUESTS {
        for silence in ["dmesg -n 1", "echo 1 > /proc/sys/kernel/printk"] {
            let finished = warning_case(&[silence, "modprobe warns"], "").run(guest);
            assert_error(
                &finished,
                &[
                    "the levels in /proc/sys/kernel/printk are 1 4 after the step at cases/t/case.yaml:5, expected 5 4",
                    "the kernel is tainted: W (a warning)",
                ],
            );
        }
        // Silenced and not silenced again within one step.
        let finished = warning_case(&["true", "dmesg -n 1\nmodprobe warns\ndmesg -n 5"], "").run(guest);
        assert_fail(&finished, &["kernel tainted: W (a warning)", "at cases/t/case.yaml:7: dmesg -n 1"]);
    }
}

#[test]
fn expected_warning_is_that_of_its_step() {
    for guest in GUESTS {
        let run = |step: usize| {
            let xfail = format!(
                "xfail:\n  - splat: warning\n    symbol: warns\n    step: {step}\n    reason: it warns\n"
            );
            warning_case(&["true", "modprobe warns", "true"], &xfail).run(guest)
        };
        let finished = run(2);
        assert!(matches!(finished.outcome, Outcome::Xfail(_)), "{}", shown(&finished));
        for other in [1, 3] {
            assert_fail(&run(other), &["kernel splat: WARNING: ", "at cases/t/case.yaml:7: modprobe warns"]);
        }
    }
}

#[test]
fn boot_that_is_not_fit_for_a_trial_is_an_error_and_another_message_of_the_boot_a_failure() {
    let pattern = "clocksource: clock=pmtmr is deprecated .*".to_owned();
    let message =
        KnownMessage { pattern, reason: "its clocks may be wrong".to_owned(), sometimes: false, line: 1 };
    for guest in GUESTS {
        let project = TestProject::new(&script("echo a > /tmp/a", "5s"), &[("out", "")]);
        let run = |boot_errors: &[KnownMessage]| {
            project.run_changed(guest, |ready| {
                let quirk = Quirk { set: vec!["clock=pmtmr".to_owned()], why: "a test".to_owned() };
                ready.guest.kernel.arguments.push(quirk);
                ready.guest.boot_errors.extend(boot_errors.iter().cloned());
            })
        };
        let finished = run(std::slice::from_ref(&message));
        assert_error(
            &finished,
            &[
                "the guest is not fit for a trial: clocksource: clock=pmtmr is deprecated",
                "its clocks may be wrong",
            ],
        );
        assert_fail(&run(&[]), &["kernel message at level 4: clocksource: clock=pmtmr is deprecated"]);
    }
}

#[test]
fn lost_messages_are_an_error() {
    let (finished, _project) =
        run_script("echo '** 7 printk messages dropped **' > /dev/console", "", "x86_64");
    assert_error(&finished, &["the kernel's log overflowed: 7 messages are missing on the console"]);
}

#[test]
fn splat_is_not_hidden_by_what_a_process_prints_on_the_console() {
    for guest in GUESTS {
        let text = "printf '<4>[    1.000000] reboot: Restarting system' > /dev/console\nsleep 0.1\n\
                    echo '<3>something: went wrong' > /dev/kmsg";
        let (finished, _project) = run_script(text, "", guest);
        assert_fail(&finished, &["kernel message at level 3: something: went wrong\n"]);
    }
}
