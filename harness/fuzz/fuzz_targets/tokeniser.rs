#![no_main]
//! See `goldtrace_fuzz`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| goldtrace_fuzz::tokeniser(data));
