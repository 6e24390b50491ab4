//! Records for tests.

use formats::dispatch_log::DispatchSample;

/// A record with these waits, in ticks and in order of time.
pub(super) fn record(cpu: u32, time_ns: u64, waits: [u32; 3]) -> DispatchSample {
    let [waiting_to_ready, ready_to_enqueue, enqueue_to_dispatch] = waits;
    DispatchSample {
        cpu: Some(cpu),
        time_ns,
        timebase: 7,
        dispatch: "H_PROD".to_owned(),
        preempt: "H_CEDE".to_owned(),
        enqueue_to_dispatch,
        ready_to_enqueue,
        waiting_to_ready,
        processor: Some(3),
        address: Some(0xc000_0000_000f_8094),
        symbol: Some("f+0x18".to_owned()),
        line: 1,
    }
}
