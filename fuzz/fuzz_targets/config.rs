//! Fuzzes `throughline_fuzz::config`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| throughline_fuzz::config(data));
