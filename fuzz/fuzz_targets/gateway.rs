//! Fuzzes `throughline_fuzz::gateway`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| throughline_fuzz::gateway(data));
