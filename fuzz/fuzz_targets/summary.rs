//! Fuzzes `throughline_fuzz::summary`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| throughline_fuzz::summary(data));
