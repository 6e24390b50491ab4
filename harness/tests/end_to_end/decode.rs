//! Recordings of real guests, decoded a second time in a guest of another architecture.

use std::sync::Arc;

use crate::support::{TestProject, shown};
use guest::Quirk;
use trial::{Outcome, PreparedGuest};

/// A case that records switches of tasks and decodes them twice.
fn switches(decode: &str) -> TestProject {
    let case = format!(
        "title: T\nrequires: [perf]\ncwd: /tmp\nsteps:\n  - run: mkdir sub && perf record -o sub/p.data -e \
         sched:sched_switch -a -c 1 sleep 0.1 2> /dev/null\n  - decode: {decode}\n    data: sub/p.data\n    capture: out\n"
    );
    TestProject::new(&case, &[("out", "#@ any 1..\n")])
}

#[test]
fn each_guest_decodes_what_the_other_has_recorded() {
    for (guest, decoder) in [("ppc64le", "x86_64"), ("x86_64", "ppc64le")] {
        let project = switches("script");
        let finished = project.run(guest);
        assert!(matches!(finished.outcome, Outcome::Pass), "{}", shown(&finished));
        let capture = String::from_utf8(project.capture(guest, "out")).expect("text");
        assert!(capture.contains("sched:sched_switch: "), "{capture}");
        // Nothing of the recording was decoded on the host, which has a copy of it for a person.
        let kept = project.root.join(format!("target/goldtrace/last/t@{guest}/decoder"));
        let names = ["console.log", "kallsyms", "p.data", "qemu-command", "qemu-stderr.log"];
        assert!(names.iter().all(|name| kept.join(name).exists()), "{kept}");
        let command = std::fs::read_to_string(kept.join("qemu-command")).expect("a command");
        assert!(command.contains(&format!("initramfs-{decoder}-perf-")), "{command}");
    }
}

#[test]
fn path_of_the_data_is_the_same_in_both_guests() {
    let finished = switches("report -D").run("ppc64le");
    assert!(matches!(finished.outcome, Outcome::Pass), "{}", shown(&finished));
}

#[test]
fn data_that_is_decoded_differently_is_a_failure() {
    // perf of a ppc64le guest leaves out an entry from before the boot, and that of an x86-64 guest does not.
    let case = "title: T\nrequires: [perf, tcg]\ncwd: /tmp\nsteps:\n  - run: perf record -o perf.data -C 0 -e \
                vpa_dtl/dtl_all/ -c 1000000 cat 2> /dev/null\n    dispatch_log:\n      - {cpu: 0, dispatch: H_PROD, \
                preempt: H_CEDE, entries: [{timebase: 1}, {at: 0us}]}\n  - decode: script\n    format: plain\n    capture: out\n";
    let finished = TestProject::new(case, &[("out", "#@ any\n")]).run("ppc64le");
    let text = shown(&finished);
    assert!(matches!(finished.outcome, Outcome::Fail(_)), "{text}");
    for part in [
        "cases/t/case.yaml:8: `decode script` does not print the same in guest x86_64",
        "--- where it was recorded\n  +++ guest x86_64",
        "in guest x86_64: perf script -i perf.data --kallsyms /kallsyms",
    ] {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
}

fn run_with_decoder(change: impl FnOnce(&mut PreparedGuest)) -> String {
    let finished = switches("script").run_changed("ppc64le", |ready| {
        let decoder = Arc::make_mut(ready.decoder.as_mut().expect("prepared"));
        change(decoder);
    });
    let text = shown(&finished);
    assert!(matches!(finished.outcome, Outcome::Error(_)), "{text}");
    text
}

#[test]
fn guest_that_does_not_decode_is_an_error() {
    let text = run_with_decoder(|decoder| {
        let set = vec!["rdinit=/bin/false".to_owned()];
        decoder.guest.kernel.arguments.push(Quirk { set, why: "a test".to_owned() });
    });
    let lost = "failed to decode in guest x86_64: the kernel panicked: ";
    assert!(
        text.contains(lost) && text.contains("    console: ") && text.contains("case.yaml:6: decode script"),
        "{text}"
    );
    let text = run_with_decoder(|decoder| decoder.guest.qemu.binary = "qemu-system-absent".to_owned());
    assert!(text.contains("failed to decode in guest x86_64: failed to start QEMU: "), "{text}");
}
