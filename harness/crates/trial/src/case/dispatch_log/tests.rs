use dtl::{Address, Burst, When};
use expect_test::{Expect, expect};
use yaml::Document;

use super::*;

fn read(text: &str) -> Result<LogPlan, String> {
    let document = Document::parse("case.yaml", text).expect("valid YAML");
    let mut reader = Reader::new();
    let plan = plan(&mut reader, &document.root());
    let errors: Vec<String> = reader.into_errors().iter().map(ToString::to_string).collect();
    plan.filter(|_| errors.is_empty()).ok_or_else(|| errors.join("\n"))
}

fn check(text: &str, expected: &Expect) {
    expected.assert_eq(&read(text).expect_err("an error"));
}

fn bursts(plan: &LogPlan) -> Vec<&Burst> {
    let bursts = plan.items.iter().filter_map(|item| match item {
        LogAction::Write(burst) => Some(burst),
        LogAction::WaitDrained | LogAction::WaitOutput => None,
    });
    bursts.collect()
}

fn times(burst: &Burst) -> Vec<When> {
    burst.entries.iter().map(|entry| entry.when).collect()
}

#[test]
fn entries_are_as_their_burst_unless_they_differ() {
    let text = "\
- cpu: 1
  at: 1ms
  every: 5us
  preempt: H_CEDE
  processor_id: 7
  srr0: f+0x18
  entries:
    - {dispatch: H_PROD}
    - {dispatch: 200, at: -2.5ms, waiting_to_ready: 7, processor_id: 8}
    - {timebase: 9}
";
    let plan = read(text).expect("valid");
    let [burst] = bursts(&plan)[..] else { panic!("one burst") };
    assert_eq!((burst.line, burst.cpu), (1, 1));
    assert_eq!(times(burst), [When::FromStart(1_000_000), When::FromStart(-2_500_000), When::Timebase(9)]);
    let codes: Vec<(u8, u8)> = burst.entries.iter().map(|entry| (entry.dispatch, entry.preempt)).collect();
    assert_eq!(codes, [(2, 2), (200, 2), (0, 2)]);
    let processors: Vec<Option<u16>> = burst.entries.iter().map(|entry| entry.processor).collect();
    assert_eq!(processors, [Some(7), Some(8), Some(7)]);
    assert_eq!(burst.entries[1].waiting_to_ready, 7);
    assert_eq!(burst.entries[2].srr0, Address::Symbol { name: "f".to_owned(), offset: 0x18 });
}

#[test]
fn counted_entries_differ_in_time_and_mark() {
    let plan = read("- {cpu: 0, count: 3, enqueue_to_dispatch: 40}\n").expect("valid");
    let series: Vec<(When, u32)> =
        bursts(&plan)[0].entries.iter().map(|entry| (entry.when, entry.enqueue_to_dispatch)).collect();
    assert_eq!(series, [(0, 40), (10_000, 41), (20_000, 42)].map(|(at, mark)| (When::FromStart(at), mark)));
}

#[test]
fn now_is_the_time_of_the_last_entry() {
    let plan = read("- {cpu: 0, count: 3, at: now}\n").expect("valid");
    assert_eq!(times(bursts(&plan)[0]), [-20_000, -10_000, 0].map(When::FromNow));
}

#[test]
fn waits_and_unread_end_are_actions() {
    let plan = read("- wait: output\n- {cpu: 0, count: 1}\n- wait: drained\n- leave_unread: true\n");
    let plan = plan.expect("valid");
    assert!(plan.leaves_unread);
    assert_eq!(
        (&plan.items[0], &plan.items[2], plan.items.len()),
        (&LogAction::WaitOutput, &LogAction::WaitDrained, 3)
    );
}

#[test]
fn repetition_is_the_same_as_its_actions_written_out() {
    let repeated = "\
- repeat: 3
  add: {at: 1ms, enqueue_to_dispatch: 100}
  actions:
    - {cpu: 0, count: 84, every: 100ns, at: 2ms, preempt: H_CEDE}
    - wait: drained
    - {cpu: 1, entries: [{timebase: 5}, {at: now}]}
";
    let mut written_out = String::new();
    for (at, mark) in [("2ms", 0), ("3ms", 100), ("4ms", 200)] {
        written_out += &format!(
            "- {{cpu: 0, count: 84, every: 100ns, at: {at}, enqueue_to_dispatch: {mark}, preempt: H_CEDE}}\n\
             - wait: drained\n\
             - {{cpu: 1, enqueue_to_dispatch: {mark}, entries: [{{timebase: 5}}, {{at: now}}]}}\n"
        );
    }
    let mut written_out = read(&written_out).expect("valid");
    for item in &mut written_out.items {
        if let LogAction::Write(burst) = item {
            burst.line = if burst.cpu == 0 { 4 } else { 6 };
        }
    }
    // A time that is `now` is later with each repetition, too.
    for (index, item) in written_out.items.iter_mut().enumerate() {
        if let LogAction::Write(Burst { cpu: 1, entries, .. }) = item {
            let When::FromNow(at) = &mut entries[1].when else { panic!("now") };
            *at += 1_000_000 * (i64::try_from(index).expect("small") / 3);
        }
    }
    assert_eq!(read(repeated).expect("valid"), written_out);
}

#[test]
fn unknown_actions_are_errors() {
    check(
        "- pol\n",
        &expect![
            "case.yaml:1:3: unknown dispatch_log action `pol` (write entries (`cpu: N` and more), `wait: drained`, `wait: output`, `repeat: N` or `leave_unread: true`)"
        ],
    );
    check("- wait: drain\n", &expect!["case.yaml:1:9: unknown wait `drain` (did you mean `drained`?)"]);
    check(
        "- wiat: drained\n",
        &expect![[r#"
        case.yaml:1:3: unknown key `wiat` (did you mean `wait`?)
        case.yaml:1:3: missing key `cpu`
        case.yaml:1:3: a burst needs `entries` or `count`"#]],
    );
    check(
        "- {wait: output, cpu: 0}\n",
        &expect![[r#"
        case.yaml:1:1: the log has no entries (write entries (`cpu: N` and more), `wait: drained`, `wait: output`, `repeat: N` or `leave_unread: true`)
        case.yaml:1:18: unknown key `cpu` (known keys: wait)"#]],
    );
    check("- [1]\n", &expect!["case.yaml:1:3: expected a mapping of keys to values, found a list"]);
}

#[test]
fn renamed_actions_are_errors_that_name_the_new_ones() {
    check(
        "- {cpu: 0, count: 1}\n- poll\n",
        &expect!["case.yaml:2:3: `poll` has been renamed (write `wait: drained`)"],
    );
    check(
        "- output\n- {cpu: 0, count: 1}\n",
        &expect!["case.yaml:1:3: `output` has been renamed (write `wait: output`)"],
    );
    check(
        "- {cpu: 0, count: 1}\n- end unread\n",
        &expect!["case.yaml:2:3: `end unread` has been renamed (write `leave_unread: true`)"],
    );
    check(
        "- {cpu: 0, count: 1, processor: 3}\n",
        &expect!["case.yaml:1:22: `processor` has been renamed (write `processor_id: N`)"],
    );
    check(
        "- {cpu: 0, entries: [{processor: 3}]}\n",
        &expect!["case.yaml:1:23: `processor` has been renamed (write `processor_id: N`)"],
    );
}

#[test]
fn log_without_entries_is_an_error() {
    check(
        "[]\n",
        &expect![
            "case.yaml:1:1: the log has no entries (write entries (`cpu: N` and more), `wait: drained`, `wait: output`, `repeat: N` or `leave_unread: true`)"
        ],
    );
    check(
        "- wait: drained\n",
        &expect![
            "case.yaml:1:1: the log has no entries (write entries (`cpu: N` and more), `wait: drained`, `wait: output`, `repeat: N` or `leave_unread: true`)"
        ],
    );
    check("- {cpu: 0}\n", &expect!["case.yaml:1:3: a burst needs `entries` or `count`"]);
    check("- {cpu: 0, entries: []}\n", &expect!["case.yaml:1:3: a burst without entries"]);
    check("- {cpu: 0, count: 0}\n", &expect!["case.yaml:1:19: 0 is not from 1 to 10000"]);
}

#[test]
fn fields_of_entries_are_checked() {
    check(
        "- {cpu: 64, dispatch: h_prod, preempt: xyzzy, srr0: 'f 1', fault_addr: f+0xg, every: 5, count: 1}\n",
        &expect![[r#"
            case.yaml:1:9: 64 is not from 0 to 63
            case.yaml:1:23: unknown reason `h_prod` (did you mean `H_PROD`?)
            case.yaml:1:40: unknown reason `xyzzy` (write a code, or one of unused, firmware_internal_event, H_CEDE, H_CONFER, time_slice, migration_hibernation_page_fault, virtual_memory_page_fault, H_CONFER_ADJUNCT, hcall_adjunct, HDEC_adjunct)
            case.yaml:1:53: `f 1` is not an address (write a number, or a symbol and its offset such as plpar_hcall+0x18)
            case.yaml:1:72: `f+0xg` is not an address (write a number, or a symbol and its offset such as plpar_hcall+0x18)
            case.yaml:1:86: expected a duration, found the number 5 (write a number and its unit (ns, us, ms, s or min), such as 10us, 1.5ms or 60s)"#]],
    );
    check(
        "- {cpu: 0, processor_id: 65536, waiting_to_ready: -1, srr1: f, at: 5h, count: 1}\n",
        &expect![[r#"
            case.yaml:1:26: 65536 is not from 0 to 65535
            case.yaml:1:51: expected a whole number from 0 to 4294967295, found the number -1
            case.yaml:1:61: expected a whole number from 0 to 18446744073709551615, found the text `f`
            case.yaml:1:68: `5h` is not a duration: unknown unit (write a number and its unit (ns, us, ms, s or min), such as 10us, 1.5ms or 60s)"#]],
    );
    check(
        "- {cpu: 0, count: 1, at: 1us, timebase: 1}\n",
        &expect!["case.yaml:1:31: an entry has either `at` or `timebase`"],
    );
    check(
        "- {cpu: 0, entries: [{dispatch: 256}, {preemt: 1}, {at: 1}]}\n",
        &expect![[r#"
            case.yaml:1:33: 256 is not from 0 to 255
            case.yaml:1:40: unknown key `preemt` (did you mean `preempt`?)
            case.yaml:1:57: expected a duration, found the number 1 (write a number and its unit (ns, us, ms, s or min), such as 10us, 1.5ms or 60s)"#]],
    );
    check(
        "- {cpu: 0, count: 1, entries: [{at: 1us}]}\n",
        &expect!["case.yaml:1:12: a burst has either `entries` or `count`"],
    );
    check("- {count: 1}\n", &expect!["case.yaml:1:3: missing key `cpu`"]);
}

#[test]
fn unread_end_is_the_last_action() {
    check(
        "- leave_unread: true\n- {cpu: 0, count: 1}\n",
        &expect![
            "case.yaml:1:3: `leave_unread` ends the recording (make it the last item of `dispatch_log`)"
        ],
    );
    check(
        "- {cpu: 0, count: 1}\n- leave_unread: false\n",
        &expect!["case.yaml:2:17: without `leave_unread: true`, the guest reads all entries (remove it)"],
    );
    check(
        "- {cpu: 0, count: 1}\n- leave_unread: yes please\n",
        &expect!["case.yaml:2:17: expected true or false, found the text `yes please`"],
    );
}

#[test]
fn entries_whose_loss_depends_on_timing_are_an_error() {
    check(
        "- {cpu: 0, count: 80}\n- {cpu: 0, count: 5}\n",
        &expect![
            "case.yaml:1:1: more than 84 entries may be unread after those of line 2: which are lost would depend on when the guest looks (write them as one burst, or put `wait: drained` in between)"
        ],
    );
    check(
        "- repeat: 2\n  actions: [{cpu: 0, count: 43}]\n",
        &expect![
            "case.yaml:1:1: more than 84 entries may be unread after those of line 2: which are lost would depend on when the guest looks (write them as one burst, or put `wait: drained` in between)"
        ],
    );
    read("- {cpu: 0, count: 80}\n- wait: drained\n- {cpu: 0, count: 5}\n").expect("valid");
}

#[test]
fn repetition_is_bounded_and_flat() {
    check(
        "- repeat: 0\n  actions: [{cpu: 0, count: 1}]\n",
        &expect!["case.yaml:1:11: 0 is not from 1 to 1000"],
    );
    check("- repeat: 2\n", &expect!["case.yaml:1:3: missing key `actions`"]);
    check(
        "- repeat: 2\n  actions: [{repeat: 2, actions: []}, {leave_unread: true}]\n",
        &expect![[r#"
        case.yaml:2:13: only entries and `wait` can be repeated
        case.yaml:2:39: only entries and `wait` can be repeated"#]],
    );
    check(
        "- repeat: 2\n  add: {every: 1ms}\n  actions: [{cpu: 0, count: 1}]\n",
        &expect!["case.yaml:2:9: unknown key `every` (known keys: at, enqueue_to_dispatch)"],
    );
    check(
        "- repeat: 1000\n  actions: [{cpu: 0, count: 10000}, wait: drained]\n",
        &expect!["case.yaml:1:3: this repeats more than 100000 entries"],
    );
    let log = "- {cpu: 0, count: 10000}\n- wait: drained\n".repeat(11);
    check(&log, &expect!["case.yaml:1:1: the log has 110000 entries, more than 100000"]);
}
