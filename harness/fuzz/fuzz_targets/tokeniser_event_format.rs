#![no_main]
//! See `goldtrace_fuzz`.

use goldtrace::normalise::Format;

libfuzzer_sys::fuzz_target!(|data: &[u8]| goldtrace_fuzz::tokeniser(Format::EventFormat, data));
