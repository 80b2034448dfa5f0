//! Fuzzes `throughline_fuzz::search`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| throughline_fuzz::search(data));
