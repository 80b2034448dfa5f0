//! Fuzzes `throughline_fuzz::sse`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| throughline_fuzz::sse(data));
