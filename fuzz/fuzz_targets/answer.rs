//! Fuzzes `throughline_fuzz::answer`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| throughline_fuzz::answer(data));
