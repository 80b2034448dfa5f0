//! Fuzzes `throughline_fuzz::decode`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| throughline_fuzz::decode(data));
