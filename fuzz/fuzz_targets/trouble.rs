//! Fuzzes `throughline_fuzz::trouble`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| throughline_fuzz::trouble(data));
