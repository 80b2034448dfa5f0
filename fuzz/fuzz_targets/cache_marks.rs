//! Fuzzes `throughline_fuzz::cache_marks`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| throughline_fuzz::cache_marks(data));
