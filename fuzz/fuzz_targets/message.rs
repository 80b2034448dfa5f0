//! Fuzzes `throughline_fuzz::message`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| throughline_fuzz::message(data));
