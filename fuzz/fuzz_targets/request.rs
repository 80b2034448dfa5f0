//! Fuzzes `throughline_fuzz::request`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| throughline_fuzz::request(data));
