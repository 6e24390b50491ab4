//! What holds of every picture: it is well-formed, and no dispatch is missing.

use proptest::prelude::*;

use super::render;
use super::testing::record;
use formats::dispatch_log::{DispatchSample, read_script};

fn reason() -> impl Strategy<Value = String> {
    let known = ["H_PROD", "decrementer interrupt", "unused", "H_CEDE"].map(str::to_owned);
    prop_oneof![3 => prop::sample::select(known.to_vec()), 1 => any::<String>()]
}

fn records() -> impl Strategy<Value = Vec<DispatchSample>> {
    let cpu = prop_oneof![4 => (0u32..3).prop_map(Some), 1 => any::<Option<u32>>()];
    let time = prop_oneof![4 => 1_000_000_000u64..1_000_100_000, 1 => any::<u64>()];
    let wait = || prop_oneof![2 => 0u32..9000, 1 => any::<u32>()];
    let place = (any::<Option<u64>>(), any::<Option<String>>(), any::<Option<u16>>());
    let one = (cpu, time, [wait(), wait(), wait()], reason(), reason(), place).prop_map(
        |(cpu, time_ns, waits, dispatch, preempt, (address, symbol, processor))| DispatchSample {
            cpu,
            dispatch,
            preempt,
            address,
            symbol,
            processor,
            ..record(0, time_ns, waits)
        },
    );
    prop::collection::vec(one, 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn picture_is_well_formed_and_whole(
        records in records(),
        title in any::<String>(),
        frequency in prop_oneof![Just(512_000_000), any::<u64>()],
    ) {
        let svg = render(&records, &title, frequency);
        let document = roxmltree::Document::parse(&svg).expect("well-formed");
        prop_assert!(!svg.contains("NaN") && !svg.contains("inf\""));
        let stems = document.descendants().filter(|node| node.attribute("stroke-width") == Some("2.4"));
        prop_assert_eq!(stems.count(), records.len());
        let widths = document.descendants().filter_map(|node| node.attribute("width")?.parse::<f64>().ok());
        prop_assert!(widths.into_iter().all(|width| width >= 0.0));
    }
}

#[test]
fn picture_of_a_transcript_names_what_it_shows() {
    let records = read_script(include_bytes!("../../crates/formats/src/testdata/dispatch.perf_script"))
        .expect("readable");
    let svg = render(&records, "a < b & c", 512_000_000);
    let document = roxmltree::Document::parse(&svg).expect("well-formed");
    let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
    for text in [
        "a < b & c",
        "3 entries of the dispatch trace log, on 2 CPUs, in 197 us; times are since the first dispatch, 41.250113000 s after boot",
        "CPU 1",
        "8.39 s / 8.39 s",
        "decrementer_interrupt (1)",
        "H_CEDE (2)",
        "enqueue to dispatch",
    ] {
        assert!(texts.contains(&text), "no `{text}` in {texts:#?}");
    }
    let title = concat!(
        "CPU 0\ndispatch: decrementer_interrupt\npreempt: H_CEDE\n",
        "time: 41.250113000 s, timebase: 21120064057\nwaiting to ready: 2000 us (1024000 ticks)\n",
        "ready to enqueue: 0.031 us (16 ticks)\nenqueue to dispatch: 1 us (512 ticks)\nprocessor: 3\n",
        "at: c0000000000f8094 plpar_hcall_norets_notrace+0x18\nline 3"
    );
    assert!(texts.contains(&title), "{texts:#?}");
}
